// Calls that could hold up the host for too long: a large change, images. Each runs in a process of its own, which loads
// the SDK, makes this one call with the same guard, and then ends.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ABORTED, MAX_APART_HEAP_MIB, MAX_APART_IMAGE_PAGES, MAX_APART_MS, TOO_COSTLY } from "./bounds.mjs";
import { Turnstile } from "./turnstile.mjs";

const PROGRAM = fileURLToPath(new URL("./apart_program.mjs", import.meta.url));
const BOUNDS = [`--max-old-space-size=${MAX_APART_HEAP_MIB}`, `--wasm-max-mem-pages=${MAX_APART_IMAGE_PAGES}`];
/** How many such processes may run at the same time, for all sessions of the host. */
const MAX_PROCESSES = 2;
/** The word by which the process asks whether it may change a file now, and by which the host agrees. */
export const WRITING = "writing";

/**
 * What the process is asked to do. It answers once, with a `Reply`.
 * @typedef {(import("./file_tools.mjs").Asked | import("./granted.mjs").ScaledImages) & { sdk: string, compileCache?: string | null }} Task
 */
/** @typedef {{ result: any } | { sentence: string }} Reply */

export class Apart {
  #sdk;
  #compileCache;
  #turnstile = new Turnstile(MAX_PROCESSES);

  /** @param {string} sdk the module that was loaded @param {string | null} [compileCache] */
  constructor(sdk, compileCache) {
    this.#sdk = sdk;
    this.#compileCache = compileCache;
  }

  /**
   * The result of one call of one of Pi's tools, or of scaling images. If there is none, it throws what the model is told.
   * @param {import("./file_tools.mjs").Asked | import("./granted.mjs").ScaledImages} call
   * @param {AbortSignal} signal
   * @returns {Promise<any>}
   */
  run(call, signal) {
    const task = { ...call, sdk: this.#sdk, compileCache: this.#compileCache };
    return this.#turnstile.through(signal, async () => {
      const reply = await replyTo(task, signal);
      if ("sentence" in reply) throw new Error(reply.sentence);
      return reply.result;
    });
  }
}

/** @param {Task} task @param {AbortSignal} signal @returns {Promise<Reply>} */
async function replyTo(task, signal) {
  const child = fork(PROGRAM, [], { cwd: "/", execArgv: BOUNDS, stdio: ["ignore", "ignore", "ignore", "ipc"] });
  const ends = AbortSignal.any([signal, AbortSignal.timeout(MAX_APART_MS)]);
  const giveUp = () => child.kill("SIGKILL");
  ends.addEventListener("abort", giveUp, { once: true });
  try {
    return await new Promise((resolve) => {
      const ended = () => resolve({ sentence: signal.aborted ? ABORTED : TOO_COSTLY });
      child.on("message", (message) => {
        if (message !== WRITING) return resolve(/** @type {Reply} */ (message));
        if (ends.aborted) return;
        // A file that was written by half would be worse than a late end.
        ends.removeEventListener("abort", giveUp);
        child.send(WRITING);
      });
      child.on("error", ended);
      child.on("close", ended);
      child.send(task, () => {});
      if (ends.aborted) giveUp();
    });
  } finally {
    giveUp();
  }
}
