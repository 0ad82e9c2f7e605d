// The lines that ripgrep has found, in the form of Pi's `grep` and within its limits.

import { MAX_SHOWN_BYTES } from "./bounds.mjs";

/** @typedef {import("./pinned.mjs").Pinned} Pinned */
/** @typedef {{ file: Buffer, path: string, number: number, isMatch: boolean, offset: number, text: Buffer }} Line */

const MAX_LINE_UNITS = 500;
/** How much of a line is kept and compared with the file: more than is ever shown. */
const MAX_LINE_BYTES = 4096;
/** What each line of ripgrep begins with: the line's number, whether it matches, and its offset. */
const POSITION = /^(\d+)([:-])(\d+)\2/;
/** So many lines behind the last line that fits are still counted. */
const MAX_COUNTED = 10_000;

export class Matches {
  #name;
  #context;
  #limit;
  /** @type {Line[]} */
  #lines = [];
  #bytes = 0;
  #overrun = 0;
  #count = 0;
  /** The file of the last match that may be shown, and its last line of context. */
  #last = { path: "", until: 0 };
  #hasMore = false;
  hasLongLines = false;

  /** @param {{ name: string | undefined, context: number, limit: number }} options `name` of the only file, if it is one */
  constructor({ name, context, limit }) {
    this.#name = name;
    this.#context = context;
    this.#limit = limit;
  }

  /** @param {Buffer} record @returns {boolean} whether more is wanted */
  take(record) {
    const line = this.#parsed(record);
    if (!line) return true;
    if (this.#count < this.#limit) {
      this.#keep(line);
      if (line.isMatch) this.#count++;
      if (this.#count === this.#limit) this.#last = { path: line.path, until: line.number + this.#context };
      return this.#bytes <= MAX_SHOWN_BYTES || ++this.#overrun < MAX_COUNTED;
    }
    // As in Pi: the context behind the last match is shown, and only another match proves that there are more.
    const isBehind = line.path === this.#last.path && line.number <= this.#last.until;
    if (isBehind) this.#keep({ ...line, isMatch: false });
    this.#hasMore ||= line.isMatch;
    return !this.#hasMore || (isBehind && line.number < this.#last.until);
  }

  /** @param {Buffer} record @returns {Line | undefined} nothing if it is no line of a file */
  #parsed(record) {
    const end = this.#name === undefined ? record.indexOf(0) : -1;
    if (this.#name === undefined && end === -1) return undefined;
    const file = record.subarray(record.subarray(0, 2).equals(Buffer.from("./")) ? 2 : 0, Math.max(end, 0));
    const rest = record.subarray(end + 1);
    const position = POSITION.exec(rest.toString("latin1", 0, 48));
    if (!position) return undefined;
    const text = rest.subarray(position[0].length).subarray(0, MAX_LINE_BYTES);
    const path = this.#name ?? file.toString("utf-8");
    return { file, path, number: Number(position[1]), isMatch: position[2] === ":", offset: Number(position[3]), text };
  }

  /** @param {Line} line what is behind the limit of bytes is counted and not kept */
  #keep(line) {
    if (this.#bytes - 1 <= MAX_SHOWN_BYTES) this.#lines.push(line);
    this.#bytes += Buffer.byteLength(this.#shown(line)) + 1;
  }

  /** @param {Line} line */
  #shown({ path, number, isMatch, text }) {
    const whole = text.toString("utf-8").replace(/\r$/, "");
    const mark = isMatch ? ":" : "-";
    if (whole.length > MAX_LINE_UNITS) this.hasLongLines = true;
    return `${path}${mark}${number}${mark} ${beginning(whole)}`;
  }

  /**
   * The lines that may be shown: not those of files that do not have at that place what was found in them.
   * @param {Pinned | undefined} place nothing if the file was open
   */
  async confirmed(place) {
    const lines = [];
    let changed = false;
    for (const group of this.#groups()) {
      if (!place || (await place.holds(group[0].file, group))) lines.push(...group.map((line) => this.#shown(line)));
      else changed = true;
    }
    const shown = within(lines, MAX_SHOWN_BYTES);
    return { lines: shown, isTruncated: shown.length < lines.length || this.#bytes - 1 > MAX_SHOWN_BYTES, changed };
  }

  /** Lines of one file each. */
  #groups() {
    /** @type {Line[][]} */
    const groups = [];
    for (const line of this.#lines) {
      const latest = groups.at(-1);
      if (latest?.[0].file.equals(line.file)) latest.push(line);
      else groups.push([line]);
    }
    return groups;
  }

  notes() {
    if (!this.#hasMore) return [];
    return [`${this.#limit} matches limit reached. Use limit=${this.#limit * 2} for more, or refine pattern`];
  }
}

/** @param {string} text */
function beginning(text) {
  if (text.length <= MAX_LINE_UNITS) return text;
  // A character of two units stays whole.
  const end = /[\uD800-\uDBFF]/.test(text[MAX_LINE_UNITS - 1]) ? MAX_LINE_UNITS - 1 : MAX_LINE_UNITS;
  return `${text.slice(0, end)}... [truncated]`;
}

/** @param {string[]} lines @param {number} maxBytes @returns {string[]} those that fit, with a line end between them */
function within(lines, maxBytes) {
  let bytes = -1;
  const end = lines.findIndex((line) => (bytes += Buffer.byteLength(line) + 1) > maxBytes);
  return end === -1 ? lines : lines.slice(0, end);
}
