// File patterns as Pi's `find` knows them (those of `fd --glob`), matched in time linear in each factor: a pattern from
// a model must not be able to stall the host, as a regular expression made from it could.

const MAX_ALTERNATIVES = 1000;

/** @typedef {{ star: true } | { star: false, test: (character: string) => boolean }} Token */

/**
 * @param {string} pattern without `/` it matches names at any depth; with one it is anchored at the search path
 * @returns {(relative: string, absolute: string) => boolean}
 */
export function compileGlob(pattern) {
  const trimmed = pattern.replace(/^(?:\.\/)+/, "");
  // As fd's smart case: a pattern without upper case matches either.
  const fold = trimmed === trimmed.toLowerCase();
  const matchers = expandBraces(trimmed).map(compileAlternative);
  const wholePath = trimmed.includes("/");
  return (relative, absolute) => {
    const subject = trimmed.startsWith("/") ? absolute : wholePath ? relative : relative.slice(relative.lastIndexOf("/") + 1);
    const parts = (fold ? subject.toLowerCase() : subject).split("/").map((part) => Array.from(part));
    return matchers.some((matches) => matches(parts));
  };
}

/**
 * @param {string} pattern
 * @returns {string[]}
 */
function expandBraces(pattern) {
  const done = [];
  const pending = [pattern];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const braces = firstBraces(next);
    if (!braces) done.push(next);
    else pending.push(...braces.choices.map((choice) => braces.before + choice + braces.after));
    if (done.length + pending.length > MAX_ALTERNATIVES) throw new Error("Invalid glob pattern: too many alternatives");
  }
  return done;
}

/** @param {string} pattern */
function firstBraces(pattern) {
  let depth = 0;
  let open = -1;
  let choiceStart = 0;
  const choices = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at];
    if (character === "\\") at++;
    else if (character === "[" && depth === 0) at = Math.max(at, classEnd(pattern, at));
    else if (character === "{" && depth++ === 0) [open, choiceStart] = [at, at + 1];
    else if (depth === 1 && (character === "," || character === "}")) {
      choices.push(pattern.slice(choiceStart, at));
      choiceStart = at + 1;
      if (character === "}") return { before: pattern.slice(0, open), choices, after: pattern.slice(at + 1) };
    } else if (character === "}" && depth > 0) depth--;
  }
  if (depth > 0) throw new Error("Invalid glob pattern: unclosed brace");
  return undefined;
}

/** @param {string} pattern @param {number} open index of the `[`; the index of its `]` is returned */
function classEnd(pattern, open) {
  const first = open + (pattern[open + 1] === "!" || pattern[open + 1] === "^" ? 2 : 1);
  const end = pattern.indexOf("]", first + 1);
  if (end === -1) throw new Error("Invalid glob pattern: unclosed class");
  return end;
}

/**
 * @param {string} pattern
 * @returns {(parts: string[][]) => boolean}
 */
function compileAlternative(pattern) {
  const components = pattern.split("/");
  // `src/**` is what is below `src`, not `src` itself.
  if (components.length > 1 && components.at(-1) === "**") components.push("*");
  const compiled = components.map((component) => {
    if (component === "**" && components.length > 1) return { star: true };
    const tokens = tokenize(component);
    return { star: false, test: (/** @type {string[]} */ part) => wildcard(part, tokens) };
  });
  return (parts) => wildcard(parts, compiled);
}

/**
 * @param {string} component
 * @returns {Token[]}
 */
function tokenize(component) {
  const tokens = [];
  for (let at = 0; at < component.length; ) {
    const character = String.fromCodePoint(/** @type {number} */ (component.codePointAt(at)));
    if (character === "[") {
      const end = classEnd(component, at);
      tokens.push({ star: false, test: classTest(component.slice(at + 1, end)) });
      at = end + 1;
      continue;
    }
    at += character.length;
    if (character === "*") tokens.push({ star: true });
    else if (character === "?") tokens.push({ star: false, test: () => true });
    else {
      const literal = character === "\\" && at < component.length ? component[at++] : character;
      tokens.push({ star: false, test: (/** @type {string} */ other) => other === literal });
    }
  }
  return /** @type {Token[]} */ (tokens);
}

/** @param {string} content of a class, without its brackets */
function classTest(content) {
  const negated = content.startsWith("!") || content.startsWith("^");
  const members = Array.from(negated ? content.slice(1) : content);
  /** @type {[string, string][]} */
  const ranges = [];
  for (let at = 0; at < members.length; at++) {
    const isRange = members[at + 1] === "-" && at + 2 < members.length;
    ranges.push([members[at], isRange ? members[at + 2] : members[at]]);
    if (isRange) at += 2;
  }
  return (/** @type {string} */ character) =>
    ranges.some(([low, high]) => low <= character && character <= high) !== negated;
}

/**
 * Whether the items match the pattern, whose stars stand for any number of items. Only the latest star is ever
 * widened, which is enough and keeps the time within the product of both lengths.
 * @template T
 * @param {T[]} items
 * @param {{ star: boolean, test?: (item: T) => boolean }[]} pattern
 */
function wildcard(items, pattern) {
  let item = 0;
  let at = 0;
  let star = -1;
  let widened = 0;
  while (item < items.length) {
    if (pattern[at]?.star) {
      star = at++;
      widened = item;
    } else if (pattern[at]?.test?.(items[item])) {
      item++;
      at++;
    } else if (star !== -1) {
      at = star + 1;
      item = ++widened;
    } else return false;
  }
  while (pattern[at]?.star) at++;
  return at === pattern.length;
}
