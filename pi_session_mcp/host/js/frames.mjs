// The channel's frames: cutting the byte stream into lines, and the schema of what the server sends.
// `host/protocol.py` holds the same schema for the other side; `docs/host-protocol.md` explains it.

export const PROTOCOL_VERSION = 1;
export const MAX_FRAME_BYTES = 16 * 1024 * 1024;
export const MAX_TEXT_UNITS = 1024 * 1024;

/** A line that is no frame. The server is broken then, so the host ends. */
export class BadFrame extends Error {}

const NEWLINE = 0x0a;

/** Cuts chunks into lines of at most MAX_FRAME_BYTES with their newline. Only `\n` ends a line. */
export class LineReader {
  /** @type {Buffer[]} */
  #pieces = [];
  #size = 0;

  /**
   * @param {Buffer} chunk
   * @returns {Buffer[]} the lines that the chunk completed, without their newlines
   */
  push(chunk) {
    const lines = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end));
      if (this.#size + 1 > MAX_FRAME_BYTES) throw new BadFrame();
      lines.push(this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces));
      this.#pieces = [];
      this.#size = 0;
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
    if (this.#size >= MAX_FRAME_BYTES) throw new BadFrame();
    return lines;
  }

  /** @param {Buffer} piece */
  #keep(piece) {
    this.#pieces.push(piece);
    this.#size += piece.length;
  }
}

/** @typedef {(value: unknown) => boolean} Rule */

/** @type {Rule} */
const text = (value) => typeof value === "string";
/** @type {Rule} */
const count = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
/** @type {Rule} */
const texts = (value) => Array.isArray(value) && value.every(text);
/** @type {Rule} */
const record = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @type {Rule} */
const grants = (value) => Array.isArray(value) && value.every((grant) => record(grant) && has(grant, GRANT));
/** @param {...string} words @returns {Rule} */
const oneOf = (...words) => (value) => words.includes(/** @type {string} */ (value));
const step = oneOf("provider", "model", "check_auth", "get_auth", "availability");
/** @type {Rule} */
const steps = (value) => Array.isArray(value) && value.every(step);
/** @type {Rule} */
const selection = (value) => record(value) && has(/** @type {Record<string, unknown>} */ (value), SELECTION);
/** @param {Rule} rule @returns {Rule} */
const orAbsent = (rule) => (value) => value === undefined || value === null || rule(value);

/** @type {Record<string, Rule>} */
const GRANT = { name: text, description: text, parameters: record };

/** @type {Record<string, Rule>} */
const SELECTION = { provider: text, model: text, thinkingLevel: text };

/** @type {Record<string, Rule>} */
const IMAGE = { at: count, data: text, mimeType: oneOf("image/png", "image/jpeg", "image/gif", "image/webp") };

/** @type {Record<string, Rule>} */
const DONE = {
  done: count,
  failed: (value) => typeof value === "boolean",
  texts,
  details: () => true,
  images: orAbsent((value) => Array.isArray(value) && value.every((image) => record(image) && has(image, IMAGE))),
};

/** @type {Record<string, Record<string, Rule>>} */
const REQUESTS = {
  hello: { protocol: count, sdk: text, bundle: orAbsent(text), compileCache: orAbsent(text), python: orAbsent(text) },
  load: { session: count, cwd: text, fileAccess: oneOf("workspace", "user"), entries: orAbsent(texts) },
  check: { session: count, steps, selection },
  open: { session: count, selection, tools: texts, grants: orAbsent(grants) },
  bind: { session: count },
  prompt: { session: count, turn: count, text },
  abort: { session: count },
  dispose: { session: count },
  ping: {},
};

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * @param {Buffer} line
 * @returns {import("./sdk.d.ts").Request | import("./sdk.d.ts").Done}
 */
export function decodeFrame(line) {
  let frame;
  try {
    frame = JSON.parse(decoder.decode(line));
  } catch {
    throw new BadFrame();
  }
  if (!record(frame) || !("done" in frame ? has(frame, DONE) : isRequest(frame))) throw new BadFrame();
  return frame;
}

/** @param {Record<string, unknown>} frame */
function isRequest({ id, op, ...members }) {
  return count(id) && typeof op === "string" && Object.hasOwn(REQUESTS, op) && has(members, REQUESTS[op]);
}

/**
 * Whether the object has exactly the members that the rules name, and each member keeps to its rule.
 * @param {Record<string, unknown>} members
 * @param {Record<string, Rule>} rules
 */
function has(members, rules) {
  return (
    Object.keys(members).every((name) => Object.hasOwn(rules, name)) &&
    Object.entries(rules).every(([name, rule]) => rule(members[name]))
  );
}

/**
 * @param {object} frame
 * @returns {string} the frame as one line; JSON escapes every newline inside it
 */
export function encodeFrame(frame) {
  return `${JSON.stringify(frame)}\n`;
}

/**
 * The text in a form that fits into a frame: bounded, and without lone surrogates, which UTF-8 does not have.
 * @param {string} value
 */
export function boundedText(value) {
  return value.slice(0, MAX_TEXT_UNITS).toWellFormed();
}
