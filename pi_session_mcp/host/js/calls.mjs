// Calls of granted tools, which the server runs.

import { MAX_TEXT_UNITS } from "./frames.mjs";

/** @typedef {import("./sdk.d.ts").Call} Call */
/** @typedef {import("./sdk.d.ts").Done} Done */
/** @typedef {import("./sdk.d.ts").ImageBlock} ImageBlock */
/** @typedef {(images: ImageBlock[]) => Promise<(ImageBlock | undefined | null)[]>} Show */

/** What the model is told when there is no answer. The server says the same of every other failure. */
const FAILED = "External MCP operation failed";

export class Calls {
  #send;
  #last = 0;
  /** @type {Map<number, (done: Done) => void>} */
  #waiting = new Map();

  /** @param {(frame: object) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /**
   * Has the server run a call, and returns the result in Pi's form. If the call failed, it throws what the model is told.
   * @param {Call} call
   * @param {AbortSignal} ends ends the wait, and tells the server so
   * @param {Show} show makes of images what the session's model takes
   * @returns {Promise<object>}
   */
  async run(call, ends, show) {
    // A text within a text may become seven times as long, and both must fit into one frame.
    if (ends.aborted || Math.max(call.arguments.length, call.given.length) > MAX_TEXT_UNITS) throw new Error(FAILED);
    const done = await this.#done(call, ends);
    if (done === undefined || done.failed) throw new Error(done?.texts[0] ?? FAILED);
    return { content: await contentOf(done, show), details: done.details ?? undefined };
  }

  /**
   * @param {Call} call
   * @param {AbortSignal} ends
   * @returns {Promise<Done | undefined>} nothing when the wait has ended
   */
  #done(call, ends) {
    const number = ++this.#last;
    return new Promise((resolve) => {
      const giveUp = () => {
        this.#waiting.delete(number);
        this.#send({ cancel: number, session: call.session });
        resolve(undefined);
      };
      ends.addEventListener("abort", giveUp, { once: true });
      this.#waiting.set(number, (done) => {
        ends.removeEventListener("abort", giveUp);
        resolve(done);
      });
      this.#send({ call: number, ...call });
    });
  }

  /** @param {Done} done ignored if no call waits for it any more */
  settle(done) {
    const settle = this.#waiting.get(done.done);
    this.#waiting.delete(done.done);
    settle?.(done);
  }
}

/**
 * The texts. Where a text stands for an image, the image takes its place.
 * @param {Done} done
 * @param {Show} show
 */
async function contentOf(done, show) {
  /** @type {object[]} */
  const content = done.texts.map((text) => ({ type: "text", text }));
  const images = done.images ?? [];
  const shown = await show(images.map(({ data, mimeType }) => ({ type: "image", data, mimeType })));
  images.forEach(({ at }, place) => (content[at] = shown[place] ?? content[at]));
  return content;
}
