// Where the file tools of one call may go: inside the workspace (or anywhere), and only to regular files and
// directories. A FIFO or a device could hold a thread of this process for ever.

import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, readlink, stat } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

export const OUTSIDE = "This session can only access files and directories inside its workspace.";
export const SPECIAL = "Only regular files and directories can be accessed.";
export const TOO_LARGE = "This file is too large for this operation.";

/** What has to be held in memory as a whole: an image, a file to edit. */
const MAX_WHOLE_FILE_BYTES = 64 * 1024 * 1024;
const MAX_LINKS = 40;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * The path with every symlink resolved. Parts that do not exist are kept, so that a link that leads nowhere outside
 * is not told apart from one that leads somewhere.
 * @param {string} path absolute
 */
export async function realLocation(path) {
  const pending = path.split(sep).reverse();
  /** @type {string} */
  let real = sep;
  for (let links = 0; pending.length > 0; ) {
    const part = pending.pop();
    if (part === "" || part === ".") continue;
    if (part === "..") {
      real = dirname(real);
      continue;
    }
    const next = join(real, /** @type {string} */ (part));
    const target = await readlink(next).catch(() => undefined);
    if (target === undefined) {
      real = next;
      continue;
    }
    if (++links > MAX_LINKS) throw new Error(OUTSIDE);
    if (target.startsWith(sep)) real = sep;
    pending.push(...target.split(sep).reverse());
  }
  return real;
}

/** The rule for one tool call. It remembers its refusal, because the SDK's tools wrap or replace what is thrown. */
export class Guard {
  /** @type {Error | undefined} */
  refusal;
  #root;

  /** @param {string | undefined} root the workspace's real location; undefined allows every place */
  constructor(root) {
    this.#root = root;
  }

  /**
   * @param {string} sentence
   * @returns {never}
   */
  refuse(sentence) {
    this.refusal ??= new Error(sentence);
    throw this.refusal;
  }

  /** @param {string} real */
  #inside(real) {
    const root = this.#root;
    return root === undefined || real === root || real.startsWith(root.endsWith(sep) ? root : root + sep);
  }

  /** @param {string} path @returns {Promise<string>} where it really is */
  async locate(path) {
    const real = await realLocation(path).catch(() => undefined);
    if (real === undefined || !this.#inside(real)) this.refuse(OUTSIDE);
    return real;
  }

  /** @param {string} path @returns {Promise<import("node:fs").Stats>} of a regular file or directory */
  async stat(path) {
    const seen = await stat(await this.locate(path));
    if (!seen.isFile() && !seen.isDirectory()) this.refuse(SPECIAL);
    return seen;
  }

  /** @param {string} path */
  async exists(path) {
    try {
      await this.stat(path);
      return true;
    } catch (error) {
      if (this.refusal) throw error;
      return false;
    }
  }

  /** @param {string} path @returns {Promise<string[]>} */
  async list(path) {
    const real = await this.locate(path);
    const before = await lstat(real);
    const names = await readdir(real);
    const after = await lstat(await this.locate(path));
    if (before.ino !== after.ino || before.dev !== after.dev) this.refuse(OUTSIDE);
    return names;
  }

  /**
   * Whether an entry of a listing is a directory. An entry that leads outside is shown as any file is, whatever is
   * there; one that leads nowhere inside fails, as the SDK expects.
   * @param {string} path
   */
  async statEntry(path) {
    const seen = await lstat(path);
    if (!seen.isSymbolicLink()) return seen;
    const real = await realLocation(path).catch(() => undefined);
    const isDirectory = real !== undefined && this.#inside(real) && (await stat(real)).isDirectory();
    return { isDirectory: () => isDirectory };
  }

  /**
   * @param {string} path
   * @returns {Promise<import("node:fs/promises").FileHandle>} of a regular file, open for reading
   */
  async openToRead(path) {
    const real = await this.locate(path);
    const seen = await stat(real);
    if (seen.isDirectory()) throw new Error("This path is a directory.");
    if (!seen.isFile()) this.refuse(SPECIAL);
    return this.#verified(await open(real, O_RDONLY | O_NONBLOCK | O_NOFOLLOW), path);
  }

  /**
   * The handle, once its file is known to be the one at this place. What was swapped in between looking and opening
   * would have another identity than what is found there afterwards.
   * @param {import("node:fs/promises").FileHandle} handle
   * @param {string} path
   */
  async #verified(handle, path) {
    try {
      const opened = await handle.stat();
      if (!opened.isFile()) this.refuse(SPECIAL);
      const there = await lstat(await this.locate(path));
      if (opened.ino !== there.ino || opened.dev !== there.dev) this.refuse(OUTSIDE);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** @param {string} path @returns {Promise<Buffer>} */
  async readWhole(path) {
    const handle = await this.openToRead(path);
    try {
      if ((await handle.stat()).size > MAX_WHOLE_FILE_BYTES) this.refuse(TOO_LARGE);
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  }

  /** @param {string} path @returns {AsyncGenerator<Buffer>} */
  async *readChunks(path) {
    const handle = await this.openToRead(path);
    try {
      const { size } = await handle.stat();
      // A file that grows while it is read still ends; one that says 0 (as in /proc) is read to its end.
      yield* handle.createReadStream({ end: size > 0 ? size - 1 : undefined, autoClose: false });
    } finally {
      await handle.close();
    }
  }

  /** @param {string} path */
  async makeDirectory(path) {
    const real = await this.locate(path);
    await mkdir(real, { recursive: true });
  }

  /** @param {string} path @param {string} content */
  async write(path, content) {
    const real = await this.locate(path);
    const seen = await lstat(real).catch(() => undefined);
    if (seen?.isDirectory()) throw new Error("This path is a directory.");
    if (seen && !seen.isFile()) this.refuse(SPECIAL);
    const flags = O_WRONLY | O_NONBLOCK | O_NOFOLLOW | (seen ? 0 : O_CREAT | O_EXCL);
    const handle = await this.#verified(await open(real, flags, 0o666), path);
    try {
      await handle.truncate(0);
      await handle.writeFile(content, "utf-8");
    } finally {
      await handle.close();
    }
  }
}
