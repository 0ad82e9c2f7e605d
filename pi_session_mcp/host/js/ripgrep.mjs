// Ripgrep, in a process that ends when the search takes too much time or memory, has enough, or belongs to an aborted turn.

import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { MAX_SEARCH_KIB, MAX_SEARCH_MS, NO_RIPGREP } from "./bounds.mjs";

const MAX_COMPLAINT_BYTES = 4096;
/** Longer than a path and what is shown of a line. Only the beginning of a longer record is kept. */
const MAX_RECORD_BYTES = 16 * 1024;
/** Node cannot set this limit, so a shell does. If the system does not know it, there is no limit. */
const LIMITED = 'ulimit -v "$0" 2>/dev/null; exec "$@"';
const ABORTED_BY_ITSELF = 134;

/**
 * How a search went. `complaint` is the beginning of what ripgrep said about it.
 * @typedef {{ end: "done" | "enough" | "aborted" | "late" | "memory" | "failed", partly: boolean, complaint: string }} Ending
 */

/**
 * @typedef {object} Search
 * @property {string} program
 * @property {string[]} args
 * @property {string | undefined} cwd
 * @property {number | "ignore" | "pipe"} input a descriptor to search in, or a pipe
 * @property {"\n" | "\0"} delimiter what ends a record of the output
 * @property {(records: Buffer[]) => boolean} take answers whether more is wanted
 * @property {AbortSignal | undefined} signal
 * @property {number} [withinMs]
 */

/**
 * Where `rg` is: on `PATH`, or where Pi keeps the `rg` that it has downloaded.
 * @param {string} agentDir
 */
export async function findRipgrep(agentDir) {
  const places = (process.env.PATH ?? "").split(":").filter(isAbsolute);
  for (const place of [...places, join(agentDir, "bin")]) {
    const program = join(place, "rg");
    const usable = await access(program, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return program;
  }
  throw new Error(NO_RIPGREP);
}

/** Splits a stream into records without their delimiters. Only a bounded beginning of each record is kept. */
export class Records {
  #delimiter;
  /** @type {Buffer[]} */
  #pieces = [];
  #bytes = 0;

  /** @param {string} delimiter of one byte */
  constructor(delimiter) {
    this.#delimiter = delimiter.charCodeAt(0);
  }

  /** @param {Buffer} chunk @returns {Generator<Buffer>} */
  *push(chunk) {
    let from = 0;
    for (let end = chunk.indexOf(this.#delimiter); end !== -1; end = chunk.indexOf(this.#delimiter, from)) {
      this.#keep(chunk.subarray(from, end));
      yield this.#record();
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  /** @param {Buffer} piece */
  #keep(piece) {
    const kept = piece.subarray(0, MAX_RECORD_BYTES - this.#bytes);
    if (kept.length === 0) return;
    this.#pieces.push(kept);
    this.#bytes += kept.length;
  }

  #record() {
    const record = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    return record;
  }
}

/** One run of ripgrep. `ended` never rejects. */
export class Run {
  /** @type {Ending["end"] | undefined} */
  #stopped;
  #complaint = Buffer.alloc(0);
  #child;
  /** @type {Promise<Ending>} */
  ended;

  /** @param {Search} search */
  constructor({ program, args, cwd, input, delimiter, take, signal, withinMs = MAX_SEARCH_MS }) {
    const argv = ["-c", LIMITED, String(MAX_SEARCH_KIB), program, ...args];
    this.#child = spawn("/bin/sh", argv, { cwd, stdio: [input, "pipe", "pipe"] });
    const { stdout, stderr, stdin } = this.#child;
    const records = new Records(delimiter);
    stdout?.on("data", (/** @type {Buffer} */ chunk) => {
      if (!this.#stopped && !take([...records.push(chunk)])) this.stop("enough");
    });
    stderr?.on("data", (/** @type {Buffer} */ chunk) => {
      const room = MAX_COMPLAINT_BYTES - this.#complaint.length;
      if (room > 0) this.#complaint = Buffer.concat([this.#complaint, chunk.subarray(0, room)]);
    });
    // Ripgrep reads no further when it has enough.
    stdin?.on("error", () => {});
    const late = setTimeout(() => this.stop("late"), withinMs);
    const abort = () => this.stop("aborted");
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    this.ended = this.#settled().finally(() => {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
    });
  }

  /**
   * Gives ripgrep something to search in, and pauses `source` while ripgrep has enough to read.
   * @param {string} text
   * @param {Run} source
   */
  feed(text, source) {
    const { stdin } = this.#child;
    if (!stdin || stdin.write(text)) return;
    const output = source.#child.stdout;
    output?.pause();
    stdin.once("drain", () => output?.resume());
  }

  /** Tells ripgrep that there is no more to search in. */
  finish() {
    this.#child.stdin?.end();
  }

  /** @param {Ending["end"]} why the first reason counts */
  stop(why) {
    if (this.#stopped) return;
    this.#stopped = why;
    this.#child.kill("SIGKILL");
    // The rest in the pipe is not wanted.
    this.#child.stdout?.destroy();
  }

  /** @returns {Promise<Ending>} */
  #settled() {
    return new Promise((resolve) => {
      const settle = (/** @type {Ending["end"]} */ end, partly = false) =>
        resolve({ end: this.#stopped ?? end, partly, complaint: this.#complaint.toString("utf-8") });
      this.#child.on("error", () => settle("failed"));
      this.#child.on("close", (code, signal) => {
        const partly = code === 2 && this.#complaint.length === 0;
        if (code === 0 || code === 1 || partly) settle("done", partly);
        else settle(signal === "SIGABRT" || code === ABORTED_BY_ITSELF ? "memory" : "failed");
      });
    });
  }
}
