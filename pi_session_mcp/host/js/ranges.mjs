// The ranges of `read` that cannot be read as a stream: fractions, and counts from the end. The SDK picks them from an
// array of all lines, which may be huge even for a file of bounded size.

/** @typedef {{ offset?: number, limit?: number }} Range */

/**
 * The whole numbers that select the same lines as slicing an array would.
 * @param {Range} range `offset` counts from 1
 * @returns {Range | "from the end"} the latter if that depends on how many lines there are
 */
export function evenRange({ offset, limit }) {
  const start = offset ? Math.max(0, offset - 1) : 0;
  const first = Math.trunc(start);
  if (limit === undefined) return { offset: first + 1 };
  const end = start + limit;
  return end < 0 ? "from the end" : { offset: first + 1, limit: Math.max(0, Math.trunc(end) - first) };
}

/**
 * The same for a range that ends before the last lines.
 * @param {Range} range
 * @param {number} lines of the whole file
 * @returns {Range}
 */
export function rangeFromEnd({ offset, limit }, lines) {
  const start = offset ? Math.max(0, offset - 1) : 0;
  const first = Math.trunc(start);
  return { offset: first + 1, limit: Math.max(0, lines + Math.trunc(start + (limit ?? 0)) - first) };
}

/** @param {AsyncIterable<Buffer> | Iterable<Buffer>} chunks */
export async function lineCount(chunks) {
  let lines = 1;
  for await (const chunk of chunks) for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines++;
  return lines;
}
