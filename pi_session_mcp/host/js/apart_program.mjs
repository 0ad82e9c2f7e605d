// The process that makes one call which costs too much for the host: see `apart.mjs`. It ends with its host.

import module from "node:module";
import { pathToFileURL } from "node:url";
import { WRITING } from "./apart.mjs";
import { FileCall } from "./file_tools.mjs";
import { scaledImages } from "./granted.mjs";
import { told } from "./told.mjs";

const MAX_DETAILS_UNITS = 1024 * 1024;

/** @typedef {import("./apart.mjs").Task} Task */
/** @typedef {import("./apart.mjs").Reply} Reply */

/** @param {Task} task @returns {Promise<Reply>} */
async function replyTo({ sdk: entry, compileCache, ...call }) {
  if (compileCache) module.enableCompileCache(compileCache);
  const sdk = await import(pathToFileURL(entry).href);
  if ("images" in call) return { result: await scaledImages(sdk, call) };
  try {
    const result = await new FileCall(sdk, call, { signal: undefined, beforeWrite: leaveToWrite }).result();
    return { result: { content: result.content, details: isShort(result.details) ? result.details : undefined } };
  } catch (error) {
    return { sentence: told(error).message };
  }
}

/** The host may end this process at any time, except while it writes. @returns {Promise<void>} */
function leaveToWrite() {
  return new Promise((resolve) => {
    process.once("message", () => resolve());
    process.send?.(WRITING);
  });
}

/** Whether details, which only a person would see, are short enough to be sent. @param {unknown} details */
function isShort(details) {
  return JSON.stringify(details ?? null).length <= MAX_DETAILS_UNITS;
}

process.on("disconnect", () => process.exit());
process.once("message", (task) => {
  void replyTo(/** @type {Task} */ (task)).then((reply) => process.send?.(reply));
});
