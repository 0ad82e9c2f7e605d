// Pi's built-in tools as definitions of our own, with guarded file access. No extension can replace a tool that is ours.

import { MAX_CALLS } from "./bounds.mjs";
import { bashTool } from "./commands.mjs";
import { FileCall, FILE_TOOLS } from "./file_tools.mjs";
import { told } from "./told.mjs";
import { Turnstile } from "./turnstile.mjs";

/** @typedef {import("./sdk.d.ts").Sdk} Sdk */
/** @typedef {import("./sdk.d.ts").ToolDefinition} ToolDefinition */
/** `root` bounds the file tools; undefined does not. @typedef {{ cwd: string, root: string | undefined, autoResizeImages: boolean }} Place */

/**
 * The definitions of the built-in tools among the names.
 * @param {Sdk} sdk
 * @param {string[]} names
 * @param {Place} place
 * @param {{
 *   outputs: import("./outputs.mjs").OutputFiles, commands: import("./commands.mjs").Commands | undefined,
 *   apart: import("./apart.mjs").Apart
 * }} owners of what `bash` leaves behind, files and processes, and of calls that are too costly for the host
 * @returns {ToolDefinition[]}
 */
export function builtinTools(sdk, names, place, { outputs, commands, apart }) {
  const turnstile = new Turnstile(MAX_CALLS);
  return names.flatMap((name) => {
    if (name === "bash") return [withoutPlaces(outputs.watch(bashTool(sdk, place.cwd, commands)))];
    return Object.hasOwn(FILE_TOOLS, name) ? [guarded(sdk, name, place, turnstile, apart)] : [];
  });
}

/**
 * When a command cannot be started or its output cannot be kept, the system's sentence is told without the place. What the
 * command itself says is not changed.
 * @param {ToolDefinition} bash
 * @returns {ToolDefinition}
 */
function withoutPlaces(bash) {
  return {
    ...bash,
    execute: (...call) =>
      bash.execute(...call).catch((error) => {
        throw error instanceof Error && "code" in error ? told(error) : error;
      }),
  };
}

/**
 * @param {Sdk} sdk
 * @param {string} tool
 * @param {Place} place
 * @param {Turnstile} turnstile
 * @param {import("./apart.mjs").Apart} apart
 * @returns {ToolDefinition}
 */
function guarded(sdk, tool, place, turnstile, apart) {
  return {
    ...FILE_TOOLS[tool](sdk)(place.cwd),
    execute: (_callId, parameters, signal, _onUpdate, context) =>
      turnstile.through(signal, () =>
        new FileCall(sdk, { tool, ...place, parameters, context }, { signal, apart }).result(),
      ),
  };
}
