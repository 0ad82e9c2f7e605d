// The SDK transpiles extensions with jiti. That keeps the result under a known name below the temporary directory, and runs
// it the next time. If another user could have put a file there, nothing is kept.

import { lstatSync, mkdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const OTHERS_WRITE = 0o022;
const WORLD_WRITES = 0o002;
const STICKY = 0o1000;

/** Turns jiti's cache off, unless only we and root can have written it. */
export function guardTranspiled() {
  const directory = join(tmpdir(), "jiti");
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch {
    // It is there already, or it cannot be made. What is there now is judged below.
  }
  // jiti reads this variable each time. A command that we start and that uses jiti only loses its cache.
  if (!isOurs(directory)) process.env.JITI_FS_CACHE = "false";
}

/** @param {string} directory */
function isOurs(directory) {
  try {
    const parent = statSync(tmpdir());
    const seen = lstatSync(directory);
    const parentIsSafe = (parent.mode & WORLD_WRITES) === 0 || (parent.mode & STICKY) !== 0;
    return parentIsSafe && seen.isDirectory() && seen.uid === process.geteuid?.() && (seen.mode & OTHERS_WRITE) === 0;
  } catch {
    return false;
  }
}
