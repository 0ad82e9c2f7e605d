// Lets a bounded number of calls run at the same time. The others wait in the order in which they came.

import { ABORTED } from "./bounds.mjs";

export class Turnstile {
  #free;
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {number} places */
  constructor(places) {
    this.#free = places;
  }

  /**
   * @template T
   * @param {AbortSignal | undefined} signal ends the wait
   * @param {() => Promise<T>} call
   * @returns {Promise<T>}
   */
  async through(signal, call) {
    await this.#enter(signal);
    try {
      return await call();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  /** @param {AbortSignal | undefined} signal @returns {Promise<void>} */
  #enter(signal) {
    if (signal?.aborted) return Promise.reject(new Error(ABORTED));
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(new Error(ABORTED));
      };
      const enter = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.push(enter);
    });
  }
}
