// The instruction files (`AGENTS.md` and the like) of a workspace and the directories above it. They are content that
// anybody who can write there may have put there, so they are read with care: see `docs/host-protocol.md`.

import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";

const NAMES = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
export const MAX_CONTEXT_BYTES = 1024 * 1024;

/** @typedef {{ path: string, content: string }} ContextFile */

/**
 * The first usable file of each directory, from the root down to `cwd`.
 * @param {string} cwd
 * @returns {Promise<ContextFile[]>}
 */
export async function contextFiles(cwd) {
  const files = [];
  for (let directory = cwd; ; directory = dirname(directory)) {
    const file = await contextFileOf(directory);
    if (file) files.unshift(file);
    if (directory === dirname(directory)) return files;
  }
}

/** @param {string} directory */
async function contextFileOf(directory) {
  for (const name of NAMES) {
    const path = join(directory, name);
    const content = await ownContent(directory, path).catch(() => undefined);
    if (content !== undefined) return { path, content };
  }
  return undefined;
}

/**
 * What the file says, unless it is somebody else's, no regular file, too large, or a link out of its directory: such
 * a link, put into a workspace, would send any file of the user's to the model.
 * @param {string} directory
 * @param {string} path
 * @returns {Promise<string | undefined>}
 */
async function ownContent(directory, path) {
  const real = await realpath(path);
  if (dirname(real) !== (await realpath(directory))) return undefined;
  const handle = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const seen = await handle.stat();
    const isOurs = seen.uid === 0 || seen.uid === process.getuid?.();
    if (!isOurs || !seen.isFile() || seen.size > MAX_CONTEXT_BYTES) return undefined;
    return (await handle.readFile("utf-8")).replace(/^\uFEFF/, "");
  } finally {
    await handle.close();
  }
}
