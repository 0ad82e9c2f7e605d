// What a host does after a moment without work: it gives memory back, and then sleeps until it is spoken to.
//
// V8 has a timer for this (`--memory-reducer`, off here). It waits eight seconds and collects several times on all
// threads: a host would hold the memory until then, and wake up dozens of times long after its last turn.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** After the last work, before memory is given back. */
const QUIET_MS = 250;
/** So much memory is worth a pause of a tenth of a second: fifty sessions had 60 MiB to give back after three turns each. */
const WORTH_BYTES = 16 * 1024 * 1024;

/** @returns {() => void} */
function collector() {
  setFlagsFromString("--expose-gc");
  const collect = /** @type {(how: object) => void} */ (runInNewContext("gc"));
  setFlagsFromString("--no-expose-gc");
  // No other kind of collection returns the emptied pages to the system.
  return () => collect({ type: "major", execution: "sync", flavor: "last-resort" });
}

export class Rest {
  #collect;
  #used;
  #quietMs;
  #working = 0;
  #kept = 0;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /**
   * @param {() => void} [collect] collects garbage
   * @param {() => number} [used] how many bytes of the heap are in use
   */
  constructor(collect = collector(), used = () => process.memoryUsage().heapUsed, quietMs = QUIET_MS) {
    this.#collect = collect;
    this.#used = used;
    this.#quietMs = quietMs;
  }

  /**
   * Keeps the host from resting while it works on something, such as a request.
   * @template T
   * @param {Promise<T>} work
   * @returns {Promise<T>}
   */
  async after(work) {
    this.#working += 1;
    clearTimeout(this.#timer);
    try {
      return await work;
    } finally {
      this.#working -= 1;
      this.disturb();
    }
  }

  /** Starts the wait anew, because something has just happened. */
  disturb() {
    clearTimeout(this.#timer);
    if (this.#working === 0) this.#timer = setTimeout(() => this.#begin(), this.#quietMs).unref();
  }

  #begin() {
    if (this.#used() - this.#kept < WORTH_BYTES) return;
    this.#collect();
    this.#kept = this.#used();
  }
}
