// The files in which Pi's `bash` keeps the whole output of a command when the model gets only its end. The model may still
// want to read them. Pi never removes them, so we do, when the session ends.

import { unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/** @typedef {import("./sdk.d.ts").ToolDefinition} ToolDefinition */

const NAME = /^pi-bash-[0-9a-f]{16}\.log$/;
const IN_AN_ERROR = /Full output: (\/[^\n]+\.log)\]/g;

/**
 * Whether a file has such a name as only Pi gives it: a command can print any name.
 * @param {unknown} path
 * @returns {path is string}
 */
export function isOutputFile(path) {
  return typeof path === "string" && NAME.test(basename(path)) && path === join(tmpdir(), basename(path));
}

export class OutputFiles {
  /** @type {Set<string>} */
  #paths = new Set();
  #removed = false;

  /**
   * The same tool, whose files become known here. A command that fails or is aborted names its file in its text only.
   * @param {ToolDefinition} bash
   * @returns {ToolDefinition}
   */
  watch(bash) {
    return {
      ...bash,
      execute: async (callId, parameters, signal, onUpdate, context) => {
        const update = (/** @type {any} */ partial) => {
          this.#note(partial?.details?.fullOutputPath);
          /** @type {any} */ (onUpdate)?.(partial);
        };
        try {
          const result = await bash.execute(callId, parameters, signal, update, context);
          this.#note(/** @type {any} */ (result)?.details?.fullOutputPath);
          return result;
        } catch (error) {
          for (const [, path] of String(error).matchAll(IN_AN_ERROR)) this.#note(path);
          throw error;
        }
      },
    };
  }

  /** @param {unknown} path */
  #note(path) {
    if (!isOutputFile(path)) return;
    this.#paths.add(path);
    if (this.#removed) void this.remove();
  }

  /** Removes the files. From now on a new file is removed at once. */
  async remove() {
    this.#removed = true;
    const paths = [...this.#paths];
    this.#paths.clear();
    await Promise.all(paths.map((path) => unlink(path).catch(() => {})));
  }
}
