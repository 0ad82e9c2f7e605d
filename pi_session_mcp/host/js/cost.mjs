// What a change will cost. The SDK's `edit` makes it without a pause, so a change that may take more than a fraction of a
// second is made apart. The bounds were measured with the worst texts on one slow core: none of them takes over 0.3 s.

/** Every replacement goes through the whole content again: about 30 ms for a million units. */
const MAX_PASSES = 2_000_000;
/** The search for a text that nearly matches everywhere takes time that grows with both lengths. */
const MAX_COMPARISONS = 200_000_000;
/** Lines that differ are compared with each other. */
const MAX_LINES = 500;
const MAX_TEXT = 262_144;

/**
 * @param {number} length of the content
 * @param {{ oldText: string, newText: string }[]} edits
 */
export function isCostly(length, edits) {
  const [old, all] = [edits.map(({ oldText }) => oldText), edits.flatMap(({ oldText, newText }) => [oldText, newText])];
  return (
    length * edits.length > MAX_PASSES ||
    length * total(old, (text) => text.length) > MAX_COMPARISONS ||
    total(all, (text) => text.length) > MAX_TEXT ||
    total(all, lineCount) > MAX_LINES
  );
}

/** @param {string} text */
function lineCount(text) {
  let count = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

/** @param {string[]} texts @param {(text: string) => number} measure */
function total(texts, measure) {
  return texts.reduce((sum, text) => sum + measure(text), 0);
}
