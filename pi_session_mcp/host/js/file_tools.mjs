// One call of a file tool: Pi's own tool, whose operations go through the guard of this call and keep to its bounds.

import { basename } from "node:path";
import {
  ABORTED,
  MAX_CALL_MS,
  MAX_EDITED_LINES,
  MAX_ENTRIES,
  MAX_PATH_BYTES,
  MAX_UNSCALED_IMAGE_BYTES,
  MAX_WHOLE_FILE_BYTES,
  NO_PATH,
  OUTSIDE,
  READ_IN_PART,
  TOO_LARGE,
  TOO_LONG,
} from "./bounds.mjs";
import { isCostly } from "./cost.mjs";
import { findFiles } from "./find.mjs";
import { grep } from "./grep.mjs";
import { Guard } from "./guard.mjs";
import { imageType } from "./images.mjs";
import { evenRange, lineCount, rangeFromEnd } from "./ranges.mjs";
import { findRipgrep } from "./ripgrep.mjs";
import { told } from "./told.mjs";

/** @typedef {import("./sdk.d.ts").Sdk} Sdk */
/** @typedef {import("./sdk.d.ts").ToolResult} ToolResult */
/** @typedef {{ tool: string, parameters: any, context: any } & import("./tools.mjs").Place} Asked */
/**
 * `apart` runs what costs too much for this process. It is missing in the process that it has started. `beforeWrite` is
 * called right before a file is changed.
 * @typedef {{ signal: AbortSignal | undefined, apart?: import("./apart.mjs").Apart, beforeWrite?: () => Promise<void> }} Means
 */

/** How Pi makes each of these tools. @type {Record<string, (sdk: Sdk) => import("./sdk.d.ts").CreateTool>} */
export const FILE_TOOLS = {
  read: (sdk) => sdk.createReadToolDefinition,
  write: (sdk) => sdk.createWriteToolDefinition,
  edit: (sdk) => sdk.createEditToolDefinition,
  ls: (sdk) => sdk.createLsToolDefinition,
  grep: (sdk) => sdk.createGrepToolDefinition,
  find: (sdk) => sdk.createFindToolDefinition,
};
const DEFAULT_LS_LIMIT = 500;
/** The SDK is given so many names beyond its limit, because it does not count an entry that has gone when it looks. */
const SPARE_ENTRIES = 100;

export class FileCall {
  #sdk;
  #asked;
  #means;
  #late = new AbortController();
  #ends;
  #guard;
  /** The result of the call, if it did not come from the SDK. @type {ToolResult | undefined} */
  #instead;
  /** @type {string[]} */
  #notes = [];

  /** @param {Sdk} sdk @param {Asked} asked @param {Means} means */
  constructor(sdk, asked, means) {
    this.#sdk = sdk;
    this.#asked = asked;
    this.#means = means;
    this.#ends = AbortSignal.any([this.#late.signal, ...(means.signal ? [means.signal] : [])]);
    this.#guard = new Guard(asked.root, this.#ends);
  }

  /** @returns {Promise<ToolResult>} what the model is told; throws a sentence of ours or of the SDK's */
  async result() {
    const bound = setTimeout(() => this.#late.abort(), MAX_CALL_MS);
    try {
      checkPath(this.#asked.parameters?.path);
      return this.#noted(await orAborted(this.#run(), this.#ends));
    } catch (error) {
      throw this.#sentence(error);
    } finally {
      clearTimeout(bound);
    }
  }

  /** @param {unknown} error @returns {Error} */
  #sentence(error) {
    if (this.#guard.refusal) return this.#guard.refusal;
    if (this.#late.signal.aborted && !this.#means.signal?.aborted) return new Error(TOO_LONG);
    if (this.#asked.root !== undefined && isResolutionError(error)) return new Error(OUTSIDE);
    return this.#guard.wasCut ? new Error(TOO_LARGE) : told(error);
  }

  async #run() {
    if (this.#asked.tool === "grep") return this.#grep();
    return this.#execute(this.#asked.tool === "read" ? await this.#evenRange() : {});
  }

  /** @param {object} changes to what the model gave */
  async #execute(changes) {
    const { tool, cwd, parameters, context, autoResizeImages } = this.#asked;
    const definition = FILE_TOOLS[tool](this.#sdk)(cwd, { operations: this.#operations(), autoResizeImages });
    try {
      return await definition.execute("", { ...parameters, ...changes }, this.#ends, undefined, context);
    } catch (error) {
      if (this.#instead) return this.#instead;
      throw error;
    }
  }

  /** @returns {object} */
  #operations() {
    const guard = this.#guard;
    const access = (/** @type {string} */ path) => guard.stat(path);
    switch (this.#asked.tool) {
      case "read":
        return {
          access,
          readFile: (/** @type {string} */ path) => guard.readWhole(path),
          createReadStream: (/** @type {string} */ path) => guard.readChunks(path),
          detectImageMimeType: (/** @type {string} */ path) => this.#imageType(path),
        };
      case "edit":
        return { access, readFile: (/** @type {string} */ path) => this.#content(path), writeFile: this.#write };
      case "write":
        return { mkdir: (/** @type {string} */ path) => guard.makeDirectory(path), writeFile: this.#write };
      case "ls":
        return this.#listing();
      default:
        return { exists: (/** @type {string} */ path) => guard.exists(path), glob: this.#glob };
    }
  }

  /** Lets another process make the whole call. The SDK's part of it ends here. @returns {Promise<never>} */
  async #doApart() {
    const { context, ...asked } = this.#asked;
    const model = context?.model && { id: context.model.id, input: context.model.input, inputLimits: context.model.inputLimits };
    const call = { ...asked, context: { cwd: context?.cwd, model } };
    this.#instead = await this.#means.apart?.run(call, this.#ends);
    throw new Error("done apart");
  }

  /** @param {string} path */
  async #imageType(path) {
    const type = await imageType(this.#guard, path);
    if (type === undefined || !this.#means.apart) return type;
    const { size } = await this.#guard.stat(path);
    if (!this.#asked.autoResizeImages && size > MAX_UNSCALED_IMAGE_BYTES) this.#guard.refuse(TOO_LARGE);
    return this.#doApart();
  }

  /** What is to be changed. @param {string} path */
  async #content(path) {
    const { size } = await this.#guard.stat(path);
    if (size > MAX_WHOLE_FILE_BYTES) this.#guard.refuse(TOO_LARGE);
    const { edits } = this.#asked.parameters;
    if (this.#means.apart && isCostly(size, edits)) await this.#doApart();
    const content = await this.#guard.readWhole(path);
    if (this.#means.apart && isCostly(content.length, edits)) await this.#doApart();
    if ((await lineCount([content])) > MAX_EDITED_LINES) this.#guard.refuse(TOO_LARGE);
    return content;
  }

  #write = async (/** @type {string} */ path, /** @type {string} */ content) => {
    if (content.length > MAX_WHOLE_FILE_BYTES) this.#guard.refuse(TOO_LARGE);
    await this.#means.beforeWrite?.();
    await this.#guard.write(path, content);
  };

  #listing() {
    const guard = this.#guard;
    const most = Math.min(this.#asked.parameters.limit ?? DEFAULT_LS_LIMIT, MAX_ENTRIES) + SPARE_ENTRIES;
    let listed = "";
    return {
      exists: (/** @type {string} */ path) => guard.exists((listed = path)),
      stat: (/** @type {string} */ path) => (path === listed ? guard.stat(path) : guard.statEntry(path)),
      readdir: (/** @type {string} */ path) => guard.list(path, Math.max(most, SPARE_ENTRIES + 1)),
    };
  }

  #glob = async (/** @type {string} */ pattern, /** @type {string} */ directory, /** @type {{ limit: number }} */ { limit }) => {
    if (!(await this.#guard.stat(directory)).isDirectory()) throw new Error("This path is not a directory.");
    const means = { program: await findRipgrep(this.#sdk.getAgentDir()), signal: this.#ends };
    const { paths, notes } = await this.#guard.searchIn(directory, (place) =>
      findFiles({ pattern, directory, place, limit, ...means }),
    );
    this.#notes.push(...notes);
    return paths;
  };

  /** @returns {Promise<ToolResult>} */
  async #grep() {
    const path = await this.#location();
    const { parameters } = this.#asked;
    const isDirectory = await this.#guard.stat(path).then(
      (seen) => seen.isDirectory(),
      () => this.#missing(path),
    );
    const means = { program: await findRipgrep(this.#sdk.getAgentDir()), signal: this.#ends };
    if (isDirectory) return textResult(await this.#guard.searchIn(path, (place) => grep(parameters, { place }, means)));
    const handle = await this.#guard.openToRead(path);
    try {
      return textResult(await grep(parameters, { descriptor: handle.fd, name: basename(path) }, means));
    } finally {
      await handle.close();
    }
  }

  /** Says what Pi's `grep` would say. @param {string} path @returns {never} */
  #missing(path) {
    throw this.#guard.refusal ?? new Error(`Path not found: ${path}`);
  }

  /** The range of a `read` in whole numbers. @returns {Promise<object>} */
  async #evenRange() {
    const { parameters } = this.#asked;
    const range = evenRange(parameters);
    if (range !== "from the end") return range;
    const path = await this.#location();
    const seen = await this.#guard.stat(path).catch(() => undefined);
    if (!seen?.isFile()) return {};
    if (seen.size > MAX_WHOLE_FILE_BYTES) this.#guard.refuse(TOO_LARGE);
    return rangeFromEnd(parameters, await lineCount(this.#guard.readChunks(path)));
  }

  /** The absolute path that the model means: only the SDK knows what it makes of `~`, `@` and the like. */
  async #location() {
    const { cwd, parameters, context } = this.#asked;
    let location = "";
    const exists = (/** @type {string} */ path) => {
      location = path;
      return false;
    };
    const asking = this.#sdk.createLsToolDefinition(cwd, { operations: { exists } });
    await asking.execute("", { path: parameters.path }, undefined, undefined, context).catch((error) => {
      if (location === "") throw error;
    });
    return location;
  }

  /** @param {ToolResult} result @returns {ToolResult} with what has to be said about it */
  #noted(result) {
    const notes = [...this.#notes, ...(this.#guard.wasCut ? [READ_IN_PART] : [])];
    if (notes.length === 0) return result;
    const [first, ...others] = result.content;
    return { ...result, content: [{ ...first, text: `${first.text}\n\n[${notes.join(". ")}]` }, ...others] };
  }
}

/** @param {string} text @returns {ToolResult} */
function textResult(text) {
  return { content: [{ type: "text", text }], details: undefined };
}

/** @param {unknown} path */
function checkPath(path) {
  if (typeof path !== "string") return;
  if (Buffer.byteLength(path) > MAX_PATH_BYTES || path.includes("\0")) throw new Error(NO_PATH);
}

/**
 * The SDK resolves the path of a change before it asks us. Its error would tell what is there outside of the workspace.
 * @param {unknown} error
 */
function isResolutionError(error) {
  return error instanceof Error && "syscall" in error && error.syscall === "realpath";
}

/**
 * Waits for an answer of the system until the call is aborted, so that its turn can end in any case.
 * @template T
 * @param {Promise<T>} result
 * @param {AbortSignal} signal
 * @returns {Promise<T>}
 */
function orAborted(result, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new Error(ABORTED));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    void result.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
