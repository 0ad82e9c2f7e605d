// Ends a command whose whole output cannot be kept. Pi's `bash` writes a long output to a file. If that file cannot be made
// or has no room, Pi waits for ever until it is closed (1.6.0, dist/core/tools/output-accumulator.js). The failure is an
// exception that Pi does not catch, so we listen where uncaught exceptions arrive.

import { isOutputFile } from "./outputs.mjs";

/** Once a command is over and a file has failed, Pi may take this long to answer. With another file it answers at once. */
const ANSWER_WITHIN_MS = 500;
const NO_ROOM = new Set(["ENOSPC", "EDQUOT", "EIO", "EROFS", "EFBIG"]);
const SENTENCE =
  "[The whole output could not be kept: the temporary directory is not there, cannot be written or has no room.]";

/** @type {Set<() => void>} */
const listeners = new Set();

/** @param {unknown} error an exception that was not caught */
export function noteUncaught(error) {
  if (isOfAnOutputFile(error)) for (const tell of listeners) tell();
}

/** @param {unknown} error */
function isOfAnOutputFile(error) {
  const { syscall, path, code } = /** @type {NodeJS.ErrnoException} */ (error ?? {});
  if (syscall === "write") return NO_ROOM.has(String(code));
  return syscall === "open" && isOutputFile(path);
}

/**
 * The answer of a call of `bash`. If its output is lost, what the model saw of it last, and how the command ended.
 * @param {(onUpdate: (partial: any) => void) => Promise<unknown>} call
 * @param {Promise<string>} over the sentence about how the command ended, "" when it ended well
 * @param {unknown} onUpdate
 */
export function unlessLost(call, over, onUpdate) {
  let shown = "";
  const update = (/** @type {any} */ partial) => {
    shown = partial?.content?.[0]?.text ?? shown;
    /** @type {any} */ (onUpdate)?.(partial);
  };
  return new Promise((resolve, reject) => {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const giveUp = (/** @type {string} */ ending) => {
      done();
      const text = [shown, SENTENCE, ending].filter(Boolean).join("\n\n");
      if (ending) reject(new Error(text));
      else resolve({ content: [{ type: "text", text }], details: undefined });
    };
    const tell = () => void over.then((ending) => (timer ??= setTimeout(giveUp, ANSWER_WITHIN_MS, ending)));
    listeners.add(tell);
    const done = () => {
      listeners.delete(tell);
      clearTimeout(timer);
    };
    void call(update).then(resolve, reject).finally(done);
  });
}
