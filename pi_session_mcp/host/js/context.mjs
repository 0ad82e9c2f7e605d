// The instruction files (`AGENTS.md` and the like) of a workspace and of the directories above it. Everybody who can write
// there may have put them there, so they are read with care: see `docs/host-protocol.md`.

import { constants } from "node:fs";
import { lstat, open, realpath } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

const NAMES = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
export const MAX_CONTEXT_BYTES = 1024 * 1024;

/** @typedef {{ path: string, content: string }} ContextFile */
/**
 * Why a file that is there is not taken: it is no regular file, it is too large, it leads out of the workspace (or, above
 * the workspace, out of its own directory), it belongs to another user, or it cannot be read, like a link to nowhere.
 * @typedef {"not_a_file" | "too_large" | "outside" | "foreign_owner" | "unreadable"} Reason
 */
/** @typedef {{ files: ContextFile[], leftOut: Reason[] }} Instructions */
/** @typedef {{ allows: (real: string) => boolean, anyOwner: boolean }} Rule what may be taken from one directory */

class LeftOut extends Error {
  /** @param {Reason} reason */
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

/**
 * The first usable file of each directory, from the root down to `cwd`, and why others were not usable.
 * @param {string} cwd
 * @returns {Promise<Instructions>}
 */
export async function contextFiles(cwd) {
  /** @type {Instructions} */
  const found = { files: [], leftOut: [] };
  let rule = await ruleOfWorkspace(cwd);
  for (let directory = cwd; ; directory = dirname(directory)) {
    const file = await contextFileOf(directory, rule, found.leftOut);
    if (file) found.files.unshift(file);
    if (directory === dirname(directory)) return found;
    rule = await ruleOfParent(dirname(directory));
  }
}

/**
 * In the workspace, what the file tools may read: also a link that stays inside, and files of any owner (a mounted tree).
 * @param {string} cwd
 * @returns {Promise<Rule>}
 */
async function ruleOfWorkspace(cwd) {
  const root = await realpath(cwd);
  const inside = root === sep ? sep : root + sep;
  return { allows: (real) => real.startsWith(inside), anyOwner: true };
}

/**
 * Above the workspace, a link is not followed out of its directory, and a file has to belong to the user or to root. Such
 * a directory may be shared or temporary, so that others can write there.
 * @param {string} directory
 * @returns {Promise<Rule>}
 */
async function ruleOfParent(directory) {
  const place = await realpath(directory).catch(() => undefined);
  return { allows: (real) => dirname(real) === place, anyOwner: false };
}

/**
 * @param {string} directory
 * @param {Rule} rule
 * @param {Reason[]} leftOut takes a reason for each file that is there and not usable
 * @returns {Promise<ContextFile | undefined>}
 */
async function contextFileOf(directory, rule, leftOut) {
  for (const name of NAMES) {
    const path = join(directory, name);
    if (!(await lstat(path).catch(() => undefined))) continue;
    try {
      return { path, content: await contentOf(path, rule) };
    } catch (error) {
      leftOut.push(error instanceof LeftOut ? error.reason : "unreadable");
    }
  }
  return undefined;
}

/**
 * @param {string} path
 * @param {Rule} rule
 */
async function contentOf(path, rule) {
  const real = await locate(path, rule);
  const handle = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const seen = await handle.stat();
    if (!seen.isFile()) throw new LeftOut("not_a_file");
    if (!rule.anyOwner && seen.uid !== 0 && seen.uid !== process.getuid?.()) throw new LeftOut("foreign_owner");
    if (seen.size > MAX_CONTEXT_BYTES) throw new LeftOut("too_large");
    // If a directory on the way was swapped for a link meanwhile, we opened another file than the one that is there now.
    const there = await lstat(await locate(path, rule));
    if (seen.ino !== there.ino || seen.dev !== there.dev) throw new LeftOut("outside");
    return await whole(handle);
  } finally {
    await handle.close();
  }
}

/**
 * The text of a file, which may still grow.
 * @param {import("node:fs/promises").FileHandle} handle
 */
async function whole(handle) {
  const buffer = Buffer.alloc(MAX_CONTEXT_BYTES + 1);
  let size = 0;
  for (let read = -1; read !== 0 && size < buffer.length; size += read)
    read = (await handle.read(buffer, size, buffer.length - size, size)).bytesRead;
  if (size > MAX_CONTEXT_BYTES) throw new LeftOut("too_large");
  return buffer.toString("utf-8", 0, size).replace(/^\uFEFF/, "");
}

/**
 * @param {string} path
 * @param {Rule} rule
 * @returns {Promise<string>} where it really is, which the rule allows
 */
async function locate(path, rule) {
  const real = await realpath(path);
  if (!rule.allows(real)) throw new LeftOut("outside");
  return real;
}
