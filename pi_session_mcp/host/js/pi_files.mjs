// Whether Pi's own configuration can be used. Where Pi would go on without a file that it cannot read, we refuse: a
// profile that is meant for a proxy could reach a public endpoint.

import { constants } from "node:fs";
import { access, lstat, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { chosenSettings } from "./pi_settings.mjs";

const ATTEMPTS = 3;
const PAUSE_MS = 40;

/** @typedef {Record<string, unknown>} JsonObject */

/**
 * What the SDK does not say itself: that `auth.json` is broken, that reading either file could never end, or that
 * `models.json` is JSON for the SDK only, which forgives comments and trailing commas. `doctor` judges the same way.
 * @param {string} agentDirectory
 */
export async function areReadable(agentDirectory) {
  const files = ["models.json", "auth.json"].map((name) => readObject(join(agentDirectory, name)));
  return (await Promise.all(files)).every((object) => object !== undefined);
}

/**
 * What of Pi's `settings.json` counts here, or nothing if the file or one of these settings cannot be used.
 * @param {string} agentDirectory
 */
export async function readSettings(agentDirectory) {
  const object = await readObject(join(agentDirectory, "settings.json"));
  return object && chosenSettings(object);
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

/**
 * The object in the file, an empty one if there is no file, nothing if it cannot be used.
 * @param {string} path
 * @returns {Promise<JsonObject | undefined>}
 */
async function readObject(path) {
  if (!(await isPlainFile(path))) return undefined;
  // Pi writes its files in place, so one look may find half of it.
  for (let attempt = 1; ; attempt++) {
    const object = await objectIn(path);
    if (object || attempt === ATTEMPTS) return object;
    await wait(PAUSE_MS);
  }
}

/** @param {string} path @returns {Promise<JsonObject | undefined>} */
async function objectIn(path) {
  try {
    const text = (await readFile(path, "utf-8")).replace(/^\uFEFF/, "");
    // The SDK takes an empty file for an empty object.
    const value = text === "" ? {} : JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch (error) {
    return isMissing(error) ? {} : undefined;
  }
}

/** @param {unknown} error */
function isMissing(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT";
}
