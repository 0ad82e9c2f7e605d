// `find` without `fd`: one ripgrep lists the files, another picks those whose path matches.

import { access } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  CHANGED,
  ENDED_EARLY,
  MAX_ENTRIES,
  MAX_PATTERN_UNITS,
  NO_PATTERN,
  SEARCH_FAILED,
  TOO_COSTLY,
  TOO_LONG_A_PATTERN,
} from "./bounds.mjs";
import { globExpression } from "./glob.mjs";
import { Run } from "./ripgrep.mjs";

/** @typedef {import("./pinned.mjs").Pinned} Pinned */
/** @typedef {{ paths: string[], notes: string[] }} Found */

const LIST = ["--files", "--sort", "path", "--null", "--hidden", "--no-config", "--no-messages", "--no-ignore-messages"];
const PICK = ["--no-config", "--color", "never", "--no-filename", "--no-line-number", "--line-buffered", "--null-data"];
const FILE = "f";
const DIRECTORY = "d";

/**
 * The matching files and non-empty directories below `place`, at most `limit`, sorted. Hidden ones are included. `.git`,
 * `node_modules` and what `.gitignore` names are not. Symlinks are neither followed nor listed.
 * @param {object} search
 * @param {string} search.pattern
 * @param {string} search.directory as the model named it, absolute; results begin with it
 * @param {Pinned} search.place where that really is
 * @param {string} search.program ripgrep
 * @param {number} search.limit
 * @param {AbortSignal | undefined} search.signal
 * @param {number} [search.withinMs]
 * @returns {Promise<Found>} directories end with `/`
 */
export async function findFiles({ pattern, directory, place, program, limit, signal, withinMs }) {
  if (pattern.length > MAX_PATTERN_UNITS) throw new Error(TOO_LONG_A_PATTERN);
  if (pattern.includes("\0")) throw new Error(NO_PATTERN);
  const { expression, ignoreCase, absolute } = globExpression(pattern);
  const most = Math.min(limit, MAX_ENTRIES);
  // Each text to match begins with a mark. For an absolute pattern it is the whole path.
  const prefix = absolute ? join(directory, "/") : "";
  /** @type {string[]} */
  const found = [];
  const common = { program, delimiter: /** @type {const} */ ("\0"), signal, withinMs };
  const picker = new Run({
    ...common,
    args: [...PICK, ...(ignoreCase ? ["--ignore-case"] : []), "--line-regexp", `--max-count=${most}`, "-e", `[${FILE}${DIRECTORY}](?:${expression})`, "-"],
    cwd: "/",
    input: "pipe",
    take: (records) => {
      found.push(...records.slice(0, most - found.length).map((record) => record.toString("utf-8")));
      return found.length < most;
    },
  });
  let before = ".";
  const lister = new Run({
    ...common,
    args: await listArguments(place.real),
    cwd: place.cwd,
    input: "ignore",
    take: (records) => {
      const entries = records.flatMap((record) => {
        const name = record.toString("utf-8");
        const parents = newParents(name, before).map((parent) => `${DIRECTORY}${prefix}${parent}\0`);
        before = dirname(name);
        return [...parents, `${FILE}${prefix}${name}\0`];
      });
      picker.feed(entries.join(""), lister);
      return true;
    },
  });
  void picker.ended.then(() => lister.stop("enough"));
  const listing = await lister.ended;
  picker.finish();
  const picking = await picker.ended;
  const isEarly = judge(picking) || judge(listing);
  const { kept, changed } = await place.confirmed(found, (entry) => entry.slice(1 + prefix.length));
  const notes = [...(isEarly ? [ENDED_EARLY] : []), ...(changed ? [CHANGED] : [])];
  const paths = kept.map((entry) => join(directory, entry.slice(1 + prefix.length)) + (entry[0] === DIRECTORY ? "/" : ""));
  return { paths: paths.sort(), notes };
}

/** @param {string} location */
async function listArguments(location) {
  const left = ["node_modules", ".git"].flatMap((name) => ["--glob", `!**/${name}`]);
  // As in Pi with fd: ignore files count outside of a repository as well.
  return [...LIST, ...left, ...((await insideRepository(location)) ? [] : ["--no-require-git"])];
}

/** @param {string} location */
async function insideRepository(location) {
  for (let current = location; ; current = dirname(current)) {
    const isRepository = await access(join(current, ".git")).then(
      () => true,
      () => false,
    );
    if (isRepository) return true;
    if (current === dirname(current)) return false;
  }
}

/** @param {import("./ripgrep.mjs").Ending} ending @returns {boolean} whether there may be more */
function judge({ end }) {
  if (end === "memory") throw new Error(TOO_COSTLY);
  if (end === "failed") throw new Error(SEARCH_FAILED);
  return end === "late";
}

/**
 * The directories above a file that are not above the file before it. All files of a directory come together.
 * @param {string} name
 * @param {string} before the directory of the one before
 * @returns {string[]}
 */
function newParents(name, before) {
  const parents = [];
  for (let parent = dirname(name); parent !== "." && !`${before}/`.startsWith(`${parent}/`); parent = dirname(parent))
    parents.push(parent);
  return parents;
}
