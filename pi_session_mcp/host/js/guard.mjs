// Where the file tools of one call may go: inside the workspace (or anywhere), and only to regular files and
// directories. A FIFO or a device could hold a thread of this process for ever.

import { constants } from "node:fs";
import { lstat, mkdir, open, readlink, stat } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { MAX_READ_BYTES, MAX_READ_MS, MAX_WHOLE_FILE_BYTES, OUTSIDE, SPECIAL, TOO_LARGE } from "./bounds.mjs";
import { firstNames } from "./listing.mjs";
import { isSame, Pinned } from "./pinned.mjs";
import { realLocation } from "./real_location.mjs";

/** @typedef {import("node:fs/promises").FileHandle} FileHandle */

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
const AT_ONCE_BYTES = 1024 * 1024;

/** The rule for one tool call. It remembers why it refused, because the SDK's tools wrap or replace what is thrown. */
export class Guard {
  /** @type {Error | undefined} */
  refusal;
  /** Whether only a part of a file was read, because it is too long. */
  wasCut = false;
  #root;
  #signal;

  /**
   * @param {string | undefined} root the workspace's real location; undefined allows every place
   * @param {AbortSignal} [signal] ends what takes its time
   */
  constructor(root, signal) {
    this.#root = root;
    this.#signal = signal;
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

  /**
   * The first names in a directory, in the order of the SDK's `ls`. The directory may have any number of them.
   * @param {string} path
   * @param {number} most
   */
  list(path, most) {
    return this.searchIn(path, (place) => firstNames(place.cwd, most, this.#signal));
  }

  /**
   * Runs a search in a directory that is held open. If another directory is at its place afterwards, what the search has
   * found is withheld.
   * @template T
   * @param {string} path
   * @param {(place: Pinned) => Promise<T>} search
   * @returns {Promise<T>}
   */
  async searchIn(path, search) {
    const real = await this.locate(path);
    const handle = await open(real, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOFOLLOW);
    try {
      await this.#verify(handle, path);
      const result = await search(await Pinned.at(handle, real, this.#root !== undefined));
      if (this.#root !== undefined) await this.#verify(handle, path);
      return result;
    } finally {
      await handle.close();
    }
  }

  /**
   * Whether an entry of a listing is a directory. An entry that leads outside is shown like a file, whatever is there. An
   * entry that leads nowhere inside fails, as the SDK expects.
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
   * @returns {Promise<FileHandle>} of a regular file, open for reading
   */
  async openToRead(path) {
    const real = await this.locate(path);
    const seen = await stat(real);
    if (seen.isDirectory()) throw new Error("This path is a directory.");
    if (!seen.isFile()) this.refuse(SPECIAL);
    return this.#verified(await open(real, O_RDONLY | O_NONBLOCK | O_NOFOLLOW), path);
  }

  /**
   * The handle, once it is certain that its file is a regular one, and the one at this place.
   * @param {FileHandle} handle
   * @param {string} path
   */
  async #verified(handle, path) {
    try {
      if (!(await handle.stat()).isFile()) this.refuse(SPECIAL);
      await this.#verify(handle, path);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /**
   * If the file was swapped between looking and opening, the file that is there afterwards has another identity.
   * @param {FileHandle} handle
   * @param {string} path
   */
  async #verify(handle, path) {
    const there = await lstat(await this.locate(path)).catch(() => undefined);
    if (!there || !isSame(await handle.stat(), there)) this.refuse(OUTSIDE);
  }

  /** @param {string} path @returns {Promise<Buffer>} */
  async readWhole(path) {
    const handle = await this.openToRead(path);
    try {
      // A file of size 0 may be long all the same (/proc), and a file that grows has no end.
      const isSmall = (await handle.stat()).size <= MAX_WHOLE_FILE_BYTES;
      const chunks = [];
      let bytes = 0;
      for await (const chunk of handle.createReadStream({ highWaterMark: AT_ONCE_BYTES, autoClose: false })) {
        chunks.push(chunk);
        bytes += chunk.length;
        if (!isSmall || bytes > MAX_WHOLE_FILE_BYTES) this.refuse(TOO_LARGE);
      }
      return Buffer.concat(chunks);
    } finally {
      await handle.close();
    }
  }

  /**
   * @param {string} path
   * @param {{ maxBytes?: number, withinMs?: number }} [bounds]
   * @returns {AsyncGenerator<Buffer>}
   */
  async *readChunks(path, { maxBytes = MAX_READ_BYTES, withinMs = MAX_READ_MS } = {}) {
    const handle = await this.openToRead(path);
    const until = performance.now() + withinMs;
    try {
      const { size } = await handle.stat();
      // A file that grows while it is read still ends here. A file of size 0 (/proc) is read to its end.
      const end = Math.min(size > 0 ? size : Infinity, maxBytes);
      let read = 0;
      for await (const chunk of handle.createReadStream({ end: end - 1, autoClose: false })) {
        if (this.#signal?.aborted) return;
        yield chunk;
        read += chunk.length;
        if (read < end && performance.now() > until) {
          this.wasCut = true;
          return;
        }
      }
      this.wasCut = read >= maxBytes && size !== maxBytes;
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
