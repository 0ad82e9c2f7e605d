// Whether Pi's own configuration can be used. Where Pi would go on without a file that it cannot read, we refuse: a
// profile that is meant for a proxy could reach a public endpoint.

import { constants } from "node:fs";
import { access, lstat, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

const ATTEMPTS = 3;
const PAUSE_MS = 40;

/**
 * What the SDK does not say itself: that `auth.json` is broken, that reading either file could never end, or that
 * `models.json` is JSON for the SDK only, which forgives comments and trailing commas. `doctor` judges the same way.
 * @param {string} agentDirectory
 */
export async function areReadable(agentDirectory) {
  const files = ["models.json", "auth.json"].map((name) => isJsonFile(join(agentDirectory, name)));
  return (await Promise.all(files)).every((usable) => usable);
}

/** @param {string} path */
async function isPlainFile(path) {
  try {
    if (!(await stat(path)).isFile()) return false;
    await access(path, constants.R_OK);
    return true;
  } catch (error) {
    // A link that leads nowhere stands for a file that cannot be read now, perhaps on a volume that is not mounted.
    return isMissing(error) && !(await isLink(path));
  }
}

/** @param {string} path */
function isLink(path) {
  return lstat(path).then(
    (seen) => seen.isSymbolicLink(),
    () => false,
  );
}

/** @param {string} path */
async function isJsonFile(path) {
  if (!(await isPlainFile(path))) return false;
  // Pi writes `auth.json` in place, so one look may find half of it.
  for (let attempt = 1; ; attempt++) {
    if (await holdsAnObject(path)) return true;
    if (attempt === ATTEMPTS) return false;
    await wait(PAUSE_MS);
  }
}

/** @param {string} path */
async function holdsAnObject(path) {
  try {
    const text = (await readFile(path, "utf-8")).replace(/^\uFEFF/, "");
    // The SDK takes an empty file for an empty object.
    const value = text === "" ? {} : JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch (error) {
    return isMissing(error);
  }
}

/** @param {unknown} error */
function isMissing(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT";
}
