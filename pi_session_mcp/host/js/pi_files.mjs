// Whether Pi's own configuration can be used. Pi would go on without a file that it cannot read, but we refuse: a profile
// that is meant for a proxy could reach a public endpoint.

import { constants } from "node:fs";
import { access, lstat, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { chosenSettings } from "./pi_settings.mjs";

const ATTEMPTS = 3;
/** Between two attempts to read a file that another program may be writing. */
const PAUSE_MS = 40;

/** @typedef {Record<string, unknown>} JsonObject */

/** @typedef {import("./errors.mjs").PiFault} PiFault */
/** @typedef {{ models: JsonObject, auth: JsonObject, settings: import("./pi_settings.mjs").Settings, faults: PiFault[] }} PiFiles */

/**
 * What the files in Pi's agent directory hold, and what is wrong with them, except for what only the SDK can say about
 * `models.json`. The SDK does not tell that `auth.json` is broken, that reading a file would never end, or that
 * `models.json` has comments or trailing commas, which the SDK forgives and JSON does not.
 * @param {string} agentDirectory
 * @returns {Promise<PiFiles>}
 */
export async function readPiFiles(agentDirectory) {
  /** @type {PiFault[]} */
  const faults = [];
  const [models, auth, stated] = await Promise.all(
    /** @type {const} */ (["models", "auth", "settings"]).map(async (name) => {
      const found = await readObject(join(agentDirectory, `${name}.json`));
      if (typeof found !== "string") return found;
      faults.push(`${name}_${found}`);
      return {};
    }),
  );
  const settings = chosenSettings(stated);
  if (!settings) faults.push("settings_refused");
  return { models: models ?? {}, auth: auth ?? {}, settings: settings ?? {}, faults: faults.sort(byFile) };
}

/** @param {PiFault} one @param {PiFault} other in a fixed order, whichever was read first */
function byFile(one, other) {
  const place = (/** @type {PiFault} */ fault) => ["models", "auth", "settings"].findIndex((name) => fault.startsWith(name));
  return place(one) - place(other);
}

/** @param {string} path */
async function isPlainFile(path) {
  try {
    if (!(await stat(path)).isFile()) return false;
    await access(path, constants.R_OK);
    return true;
  } catch (error) {
    // A link to nowhere is a file that cannot be read now: its volume may not be mounted.
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
 * The object in the file, or what is wrong with it. Without a file it is an empty object.
 * @param {string} path
 * @returns {Promise<JsonObject | "unreadable" | "not_json">}
 */
async function readObject(path) {
  if (!(await isPlainFile(path))) return "unreadable";
  // Pi writes its files in place, so we may find half of one.
  for (let attempt = 1; ; attempt++) {
    const found = await objectIn(path);
    if (typeof found === "object" || attempt === ATTEMPTS) return found;
    await wait(PAUSE_MS);
  }
}

/** @param {string} path @returns {Promise<JsonObject | "unreadable" | "not_json">} */
async function objectIn(path) {
  let text;
  try {
    text = (await readFile(path, "utf-8")).replace(/^\uFEFF/, "");
  } catch (error) {
    return isMissing(error) ? {} : "unreadable";
  }
  try {
    // For the SDK, an empty file is an empty object.
    const value = text === "" ? {} : JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : "not_json";
  } catch {
    return "not_json";
  }
}

/** @param {unknown} error */
function isMissing(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT";
}
