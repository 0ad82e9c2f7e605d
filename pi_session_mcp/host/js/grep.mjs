// Like Pi's `grep`, but its ripgrep is bounded, and its results are checked before a model sees them.

import {
  ABORTED,
  CHANGED,
  ENDED_EARLY,
  MAX_PATTERN_UNITS,
  MAX_SEARCHED_FILE,
  MAX_SEARCH_THREADS,
  MAX_SHOWN_BYTES,
  NO_PATTERN,
  NOT_ALL_FILES,
  SEARCH_FAILED,
  TOO_COSTLY,
  TOO_LONG_A_PATTERN,
  UNREADABLE,
} from "./bounds.mjs";
import { Matches } from "./matches.mjs";
import { Run } from "./ripgrep.mjs";

/** @typedef {import("./pinned.mjs").Pinned} Pinned */
/** @typedef {import("./ripgrep.mjs").Ending} Ending */
/**
 * What a model gave, in the form of the schema of Pi's `grep`.
 * @typedef {{ pattern: string, glob?: string, ignoreCase?: boolean, literal?: boolean, context?: number, limit?: number }} Asked
 */
/** A directory, or a file by its open descriptor. @typedef {{ place: Pinned } | { descriptor: number, name: string }} Where */

const DEFAULT_LIMIT = 100;
/** So many lines around a match are more than could ever be shown. */
const MAX_CONTEXT = 10_000;
/** Ripgrep gives only the beginning of a longer line, which is still more than is shown. */
const MAX_COLUMNS = 4096;
const COMPLAINT_ABOUT_A_PATTERN = /^(?:rg: )?(?:regex parse error|error parsing glob|the literal |compiled regex)/i;
const ALWAYS = [
  ...["--no-config", "--color=never", "--hidden", "--no-heading", "--line-number", "--byte-offset", "--null"],
  ...["--no-context-separator", "--no-messages", "--no-ignore-messages", `--threads=${MAX_SEARCH_THREADS}`],
  ...[`--max-columns=${MAX_COLUMNS}`, "--max-columns-preview"],
];

/**
 * @param {Asked} asked
 * @param {Where} where
 * @param {{ program: string, signal: AbortSignal | undefined, withinMs?: number }} means
 * @returns {Promise<string>} what the model is told; throws a sentence for it
 */
export async function grep(asked, where, means) {
  for (const text of [asked.pattern, asked.glob ?? ""]) {
    if (text.length > MAX_PATTERN_UNITS) throw new Error(TOO_LONG_A_PATTERN);
    if (text.includes("\0")) throw new Error(NO_PATTERN);
  }
  const first = await search(asked, where, means, []);
  if (first.ending.end !== "memory" || !("place" in where)) return told(first, where, []);
  return told(await search(asked, where, means, [`--max-filesize=${MAX_SEARCHED_FILE}`]), where, [NOT_ALL_FILES]);
}

/**
 * @param {Asked} asked
 * @param {Where} where
 * @param {{ program: string, signal: AbortSignal | undefined, withinMs?: number }} means
 * @param {string[]} more arguments
 */
async function search(asked, where, means, more) {
  const context = Math.min(Math.floor(Math.max(asked.context ?? 0, 0)), MAX_CONTEXT);
  const limit = Math.max(1, Math.floor(asked.limit ?? DEFAULT_LIMIT));
  const matches = new Matches({ name: "name" in where ? where.name : undefined, context, limit });
  const run = new Run({
    ...means,
    args: [...argumentsOf(asked, context), ...more, ...placeArguments(where, asked.pattern)],
    cwd: "place" in where ? where.place.cwd : "/",
    input: "descriptor" in where ? where.descriptor : "ignore",
    delimiter: "\n",
    take: (records) => records.every((record) => matches.take(record)),
  });
  return { matches, ending: await run.ended };
}

/** @param {Asked} asked @param {number} context @returns {string[]} */
function argumentsOf({ glob, ignoreCase, literal }, context) {
  return [
    ...ALWAYS,
    ...(ignoreCase ? ["--ignore-case"] : []),
    ...(literal ? ["--fixed-strings"] : []),
    // As in Pi: ripgrep never matches a leading "./", and "!" negates.
    ...(glob ? ["--glob", glob.replace(/^(!?)(?:\.\/)+/, "$1")] : []),
    ...(context > 0 ? ["--context", String(context)] : []),
  ];
}

/** A file is searched whatever is in it, as ripgrep does with one that is named. @param {Where} where @param {string} pattern */
function placeArguments(where, pattern) {
  return "place" in where ? ["--with-filename", "--", pattern, "."] : ["--no-filename", "--text", "--", pattern, "-"];
}

/**
 * @param {{ matches: Matches, ending: Ending }} outcome
 * @param {Where} where
 * @param {string[]} notes
 */
async function told({ matches, ending }, where, notes) {
  judge(ending);
  const { lines, isTruncated, changed } = await matches.confirmed("place" in where ? where.place : undefined);
  const all = [
    ...matches.notes(),
    ...(isTruncated ? [`${(MAX_SHOWN_BYTES / 1024).toFixed(1)}KB limit reached`] : []),
    ...(matches.hasLongLines ? ["Some lines truncated to 500 chars. Use read tool to see full lines"] : []),
    ...(ending.end === "late" ? [ENDED_EARLY] : []),
    ...(ending.partly ? [UNREADABLE] : []),
    ...(changed ? [CHANGED] : []),
    ...notes,
  ];
  const text = lines.length > 0 ? lines.join("\n") : "No matches found";
  return all.length > 0 ? `${text}\n\n[${all.join(". ")}]` : text;
}

/** @param {Ending} ending */
function judge({ end, complaint }) {
  if (end === "aborted") throw new Error(ABORTED);
  if (end === "memory") throw new Error(TOO_COSTLY);
  if (end === "failed") throw new Error(COMPLAINT_ABOUT_A_PATTERN.test(complaint) ? complaint.trim() : SEARCH_FAILED);
}
