// The directory of a search, held open, and the check of what the search has found. Ripgrep uses paths, so a directory that
// was looked at may have become a link out of the workspace by the time its files are read.

import { constants } from "node:fs";
import { lstat, open, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { realLocation } from "./real_location.mjs";

/** @typedef {import("node:fs/promises").FileHandle} FileHandle */

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
/** How much of a file in UTF-16 is read to compare it: ripgrep shows such a file as UTF-8. */
const MAX_TRANSLATED_BYTES = 8 * 1024 * 1024;
/** A name that is not UTF-8 has this character in it. No file can be found by such a name. */
const REPLACEMENT = "\uFFFD";

export class Pinned {
  #handle;
  #isBounded;
  real;
  cwd;

  /**
   * @param {FileHandle} handle
   * @param {string} real where it is
   * @param {string} cwd what a process that runs there is started with
   * @param {boolean} isBounded whether what is found has to be inside
   */
  constructor(handle, real, cwd, isBounded) {
    this.#handle = handle;
    this.real = real;
    this.cwd = cwd;
    this.#isBounded = isBounded;
  }

  /**
   * A directory that is open and certainly the one at this place. If the system has a path for an open directory, a
   * process is started in that, and later changes of the place do not matter.
   * @param {FileHandle} handle
   * @param {string} real
   * @param {boolean} isBounded
   */
  static async at(handle, real, isBounded) {
    const itself = `/proc/self/fd/${handle.fd}`;
    const [opened, there] = await Promise.all([handle.stat(), stat(itself).catch(() => undefined)]);
    const isThere = there !== undefined && isSame(opened, there);
    return new Pinned(handle, real, isThere ? itself : real, isBounded);
  }

  close() {
    return this.#handle.close();
  }

  /**
   * The entries that are still where they were found, with no link on the way.
   * @template T
   * @param {T[]} entries
   * @param {(entry: T) => string} pathOf relative to this directory
   * @returns {Promise<{ kept: T[], changed: boolean }>}
   */
  async confirmed(entries, pathOf) {
    if (!this.#isBounded) return { kept: entries, changed: false };
    /** @type {Map<string, boolean>} */
    const directories = new Map();
    const kept = [];
    for (const entry of entries) {
      const path = join(this.real, pathOf(entry));
      const parent = dirname(path);
      if (!directories.has(parent)) directories.set(parent, await isItsOwnLocation(parent));
      if (directories.get(parent) && (path.includes(REPLACEMENT) || (await isNoLink(path)))) kept.push(entry);
    }
    return { kept, changed: kept.length < entries.length };
  }

  /**
   * Whether each of these texts stands in the file at its offset. A text that ripgrep has read elsewhere does not.
   * @param {Buffer} name of the file, relative to this directory
   * @param {{ offset: number, text: Buffer }[]} lines
   * @returns {Promise<boolean>}
   */
  async holds(name, lines) {
    if (!this.#isBounded) return true;
    const path = Buffer.concat([Buffer.from(`${this.real}/`), name]);
    const parent = dirname(path.toString("utf-8"));
    if (!(await isItsOwnLocation(parent))) return false;
    const handle = await open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW).catch(() => undefined);
    if (!handle) return false;
    try {
      const opened = await handle.stat();
      if (!opened.isFile() || !(await isItsOwnLocation(parent)) || !isSame(opened, await lstat(path))) return false;
      return await standIn(handle, lines);
    } catch {
      return false;
    } finally {
      await handle.close();
    }
  }
}

/**
 * @param {{ ino: number, dev: number }} one
 * @param {{ ino: number, dev: number }} other
 */
export function isSame(one, other) {
  return one.ino === other.ino && one.dev === other.dev;
}

/** @param {string} path */
async function isItsOwnLocation(path) {
  return !path.includes(REPLACEMENT) && (await realLocation(path).catch(() => undefined)) === path;
}

/** @param {string} path */
async function isNoLink(path) {
  const seen = await lstat(path).catch(() => undefined);
  return seen !== undefined && !seen.isSymbolicLink();
}

/**
 * @param {FileHandle} handle
 * @param {{ offset: number, text: Buffer }[]} lines
 */
async function standIn(handle, lines) {
  const start = Buffer.alloc(3);
  await handle.read(start, 0, 3, 0);
  const encoding = { fffe: "utf-16le", feff: "utf-16be" }[start.toString("hex", 0, 2)];
  const translated = encoding === undefined ? undefined : await asUtf8(handle, encoding);
  // Ripgrep counts from behind the mark.
  const skipped = start.toString("hex") === "efbbbf" ? 3 : 0;
  for (const { offset, text } of lines) {
    const there = translated?.subarray(offset, offset + text.length) ?? Buffer.alloc(text.length);
    if (!translated) await handle.read(there, 0, there.length, offset + skipped);
    if (!there.equals(text)) return false;
  }
  return true;
}

/** @param {FileHandle} handle @param {string} encoding */
async function asUtf8(handle, encoding) {
  const content = Buffer.alloc(Math.min((await handle.stat()).size, MAX_TRANSLATED_BYTES));
  await handle.read(content, 0, content.length, 0);
  return Buffer.from(new TextDecoder(encoding).decode(content), "utf-8");
}
