// Translates the file patterns of Pi's `find` (those of `fd --glob`) into regular expressions for ripgrep. A pattern comes
// from a model, so it is translated in one pass, without matching anything or multiplying alternatives. Matching costs
// time in ripgrep only, which is a process that can be ended.

const MAX_ALTERNATIVES = 1000;
const MAX_DEPTH = 50;

/** Any number of components with their slashes, and any text at all. */
const ANY_COMPONENTS = "(?:(?s:.)*/)?";
const ANYTHING = "(?s:.)*";

/** @typedef {{ expression: string, ignoreCase: boolean, absolute: boolean }} Matcher */

/**
 * An expression in ripgrep's syntax that a whole path has to match. If `absolute`, that is the absolute path, otherwise
 * the path from the searched directory on.
 * @param {string} pattern without `/` it matches names at any depth, with one only from the searched directory on
 * @returns {Matcher}
 */
export function globExpression(pattern) {
  const trimmed = pattern.toWellFormed().replace(/^(?:\.\/)+/, "");
  const translated = new Translation(trimmed).whole();
  return {
    expression: trimmed.includes("/") ? translated : ANY_COMPONENTS + translated,
    // Like fd's smart case: a pattern without capitals matches both cases.
    ignoreCase: trimmed === trimmed.toLowerCase(),
    absolute: trimmed.startsWith("/"),
  };
}

/** @param {string} reason @returns {never} */
function refuse(reason) {
  throw new Error(`Invalid glob pattern: ${reason}`);
}

class Translation {
  #pattern;
  #at = 0;
  #alternatives = 0;
  #hasComponents;
  /** Whether a component begins right before each brace that is open. @type {boolean[]} */
  #open = [];
  /** Whether a component begins here. */
  #begins = true;

  /** @param {string} pattern */
  constructor(pattern) {
    this.#pattern = pattern;
    this.#hasComponents = pattern.includes("/");
  }

  whole() {
    const parts = [];
    while (this.#at < this.#pattern.length) parts.push(this.#next());
    if (this.#open.length > 0) refuse("unclosed brace");
    return parts.join("");
  }

  #next() {
    const begins = this.#begins;
    const character = String.fromCodePoint(/** @type {number} */ (this.#pattern.codePointAt(this.#at)));
    this.#at += character.length;
    this.#begins = character === "/";
    switch (character) {
      case "*":
        return this.#stars(begins);
      case "?":
        return "[^/]";
      case "[":
        return this.#characterClass();
      case "{":
        return this.#openBrace(begins);
      case ",":
        return this.#open.length > 0 ? this.#nextAlternative() : ",";
      case "}":
        return this.#open.length > 0 ? this.#closeBrace() : literal("}");
      case "\\":
        return this.#escaped();
    }
    return literal(character);
  }

  /** @param {boolean} begins */
  #stars(begins) {
    const first = this.#at - 1;
    while (this.#pattern[this.#at] === "*") this.#at++;
    const next = this.#pattern[this.#at];
    const ends = next === undefined || next === "/" || (this.#open.length > 0 && (next === "," || next === "}"));
    if (!this.#hasComponents || this.#at - first !== 2 || !begins || !ends) return "[^/]*";
    if (next !== "/") return ANYTHING;
    this.#at++;
    this.#begins = true;
    return ANY_COMPONENTS;
  }

  #characterClass() {
    const negated = "!^".includes(this.#pattern[this.#at] ?? " ");
    const start = this.#at + (negated ? 1 : 0);
    const end = this.#pattern.indexOf("]", start + 1);
    if (end === -1) refuse("unclosed class");
    const members = Array.from(this.#pattern.slice(start, end));
    const ranges = [];
    for (let at = 0; at < members.length; at++) {
      const isRange = members[at + 1] === "-" && at + 2 < members.length;
      const last = isRange ? members[at + 2] : members[at];
      if (codeOf(members[at]) > codeOf(last)) refuse("invalid range");
      ranges.push(isRange ? `${literal(members[at])}-${literal(last)}` : literal(last));
      if (isRange) at += 2;
    }
    this.#at = end + 1;
    return `[[${negated ? "^" : ""}${ranges.join("")}]&&[^/]]`;
  }

  /** @param {boolean} begins */
  #openBrace(begins) {
    this.#open.push(begins);
    if (this.#open.length > MAX_DEPTH) refuse("too many braces within braces");
    this.#begins = begins;
    return "(?:";
  }

  #nextAlternative() {
    if (++this.#alternatives >= MAX_ALTERNATIVES) refuse("too many alternatives");
    this.#begins = this.#open.at(-1) === true;
    return "|";
  }

  #closeBrace() {
    this.#open.pop();
    return ")";
  }

  #escaped() {
    if (this.#at === this.#pattern.length) return literal("\\");
    const character = String.fromCodePoint(/** @type {number} */ (this.#pattern.codePointAt(this.#at)));
    this.#at += character.length;
    this.#begins = character === "/";
    return literal(character);
  }
}

/** @param {string} character */
function codeOf(character) {
  return /** @type {number} */ (character.codePointAt(0));
}

/** @param {string} character */
function literal(character) {
  const isPlain = /[A-Za-z0-9]/.test(character) || codeOf(character) > 0x9f;
  return isPlain ? character : `\\x{${codeOf(character).toString(16)}}`;
}
