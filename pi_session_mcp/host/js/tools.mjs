// Pi's built-in tools as definitions of our own, so that no extension can replace one, with guarded file access.

import { join } from "node:path";
import { bashTool } from "./commands.mjs";
import { findFiles } from "./find.mjs";
import { Guard, OUTSIDE } from "./guard.mjs";

/** @typedef {import("./sdk.d.ts").Sdk} Sdk */
/** @typedef {import("./sdk.d.ts").ToolDefinition} ToolDefinition */
/** @typedef {(guard: Guard, signal: AbortSignal | undefined) => object} Operations */

/**
 * The definitions of those of the names that are built-in tools.
 * @param {Sdk} sdk
 * @param {string[]} names
 * @param {{ cwd: string, root: string | undefined, autoResizeImages: boolean }} place `root` bounds the file tools;
 *   undefined does not
 * @param {{ outputs: import("./outputs.mjs").OutputFiles, commands: import("./commands.mjs").Commands | undefined }} left
 *   own what `bash` leaves behind, files and processes
 * @returns {ToolDefinition[]}
 */
export function builtinTools(sdk, names, { cwd, root, autoResizeImages }, { outputs, commands }) {
  const createRead = (/** @type {string} */ place, /** @type {{ operations: object }} */ options) =>
    sdk.createReadToolDefinition(place, { ...options, autoResizeImages });
  /** @type {Record<string, () => ToolDefinition>} */
  const makers = {
    bash: () => outputs.watch(bashTool(sdk, cwd, commands)),
    read: () => guarded(createRead, cwd, root, readOperations),
    write: () => guarded(sdk.createWriteToolDefinition, cwd, root, writeOperations),
    edit: () => guarded(sdk.createEditToolDefinition, cwd, root, editOperations),
    ls: () => guarded(sdk.createLsToolDefinition, cwd, root, lsOperations),
    grep: () => guarded(sdk.createGrepToolDefinition, cwd, root, grepOperations),
    find: () => guarded(sdk.createFindToolDefinition, cwd, root, (guard, signal) => findOperations(sdk, guard, signal)),
  };
  return names.filter((name) => Object.hasOwn(makers, name)).map((name) => makers[name]());
}

/**
 * The definitions of tools that the server runs. They run one after the other.
 * @param {import("./sdk.d.ts").Grant[]} grants
 * @param {(call: { tool: string, arguments: string, given: string }, signal: AbortSignal | undefined) => Promise<object>} run
 * @returns {ToolDefinition[]}
 */
export function grantedTools(grants, run) {
  return grants.map(({ name, description, parameters }) => {
    let given = "{}";
    return {
      name,
      label: name,
      description,
      parameters,
      executionMode: "sequential",
      // Called right before the execution. Pi fits arguments to the schema; the server judges what the model wrote, too.
      prepareArguments(value) {
        given = JSON.stringify(value ?? {});
        return value;
      },
      execute: (_callId, value, signal) => run({ tool: name, arguments: JSON.stringify(value ?? {}), given }, signal),
    };
  });
}

/**
 * Each call gets a guard of its own; what it refused is what the model is told, in our fixed sentence.
 * @param {(cwd: string, options: { operations: object }) => ToolDefinition} create
 * @param {string} cwd
 * @param {string | undefined} root
 * @param {Operations} operations
 * @returns {ToolDefinition}
 */
function guarded(create, cwd, root, operations) {
  const definition = create(cwd, { operations: operations(new Guard(root), undefined) });
  return {
    ...definition,
    async execute(callId, parameters, signal, onUpdate, context) {
      const guard = new Guard(root);
      const tool = create(cwd, { operations: operations(guard, signal) });
      try {
        return await tool.execute(callId, parameters, signal, onUpdate, context);
      } catch (error) {
        throw guard.refusal ?? (root !== undefined && isResolutionError(error) ? new Error(OUTSIDE) : error);
      }
    },
  };
}

/** @param {Sdk} _sdk @param {Guard} guard */
/**
 * The SDK resolves the path of a change itself before it asks us, and its error would tell what is there outside.
 * @param {unknown} error
 */
function isResolutionError(error) {
  return error instanceof Error && "syscall" in error && error.syscall === "realpath";
}

/** @type {Operations} */
function readOperations(guard) {
  return {
    access: (/** @type {string} */ path) => guard.stat(path),
    readFile: (/** @type {string} */ path) => guard.readWhole(path),
    createReadStream: (/** @type {string} */ path) => guard.readChunks(path),
    detectImageMimeType: (/** @type {string} */ path) => imageType(guard, path),
  };
}

/** @type {Operations} */
function writeOperations(guard) {
  return {
    mkdir: (/** @type {string} */ path) => guard.makeDirectory(path),
    writeFile: (/** @type {string} */ path, /** @type {string} */ content) => guard.write(path, content),
  };
}

/** @type {Operations} */
function editOperations(guard) {
  return {
    access: (/** @type {string} */ path) => guard.stat(path),
    readFile: (/** @type {string} */ path) => guard.readWhole(path),
    writeFile: (/** @type {string} */ path, /** @type {string} */ content) => guard.write(path, content),
  };
}

/** @type {Operations} */
function lsOperations(guard) {
  let listed = "";
  return {
    exists: (/** @type {string} */ path) => guard.exists((listed = path)),
    stat: (/** @type {string} */ path) => (path === listed ? guard.stat(path) : guard.statEntry(path)),
    readdir: (/** @type {string} */ path) => guard.list(path),
  };
}

/** @type {Operations} */
function grepOperations(guard) {
  return { isDirectory: async (/** @type {string} */ path) => (await guard.stat(path)).isDirectory() };
}

/** @param {Sdk} sdk @param {Guard} guard @param {AbortSignal | undefined} signal */
function findOperations(sdk, guard, signal) {
  return {
    exists: (/** @type {string} */ path) => guard.exists(path),
    glob: async (/** @type {string} */ pattern, /** @type {string} */ directory, /** @type {{ limit: number }} */ { limit }) => {
      if (!(await guard.stat(directory)).isDirectory()) throw new Error("This path is not a directory.");
      const search = { pattern, directory, location: await guard.locate(directory), limit, signal };
      return findFiles({ ...search, ripgrep: "rg" }).catch((error) => {
        if (error.code !== "ENOENT") throw error;
        // Where Pi keeps the one that it has downloaded itself.
        return findFiles({ ...search, ripgrep: join(sdk.getAgentDir(), "bin", "rg") });
      });
    },
  };
}

/**
 * @param {Guard} guard
 * @param {string} path
 * @returns {Promise<string | undefined>}
 */
async function imageType(guard, path) {
  const handle = await guard.openToRead(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4100), 0, 4100, 0);
    return imageTypeOf(buffer.subarray(0, bytesRead));
  } finally {
    await handle.close();
  }
}

/**
 * The types that the SDK's `read` hands to a model as an image. It decides more finely (animated PNG, CMYK JPEG) while
 * processing; what it then cannot process it says so about.
 * @param {Buffer} start
 */
function imageTypeOf(start) {
  const ascii = start.subarray(0, 16).toString("latin1");
  if (ascii.startsWith("\xff\xd8\xff")) return start[3] === 0xf7 ? undefined : "image/jpeg";
  if (ascii.startsWith("\x89PNG\r\n\x1a\n")) return start.includes("acTL") ? undefined : "image/png";
  if (ascii.startsWith("GIF87a") || ascii.startsWith("GIF89a")) return "image/gif";
  if (ascii.startsWith("RIFF") && ascii.startsWith("WEBP", 8)) return "image/webp";
  if (ascii.startsWith("BM") && start.length >= 30 && start.readUInt32LE(14) <= 124 && start.readUInt16LE(26) === 1)
    return "image/bmp";
  return undefined;
}
