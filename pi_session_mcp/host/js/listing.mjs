// The names that come first in a directory. It may hold millions, so memory is bounded.

import { opendir } from "node:fs/promises";
import { ABORTED } from "./bounds.mjs";

const AT_ONCE = 512;

/** The order of the SDK's `ls`. @param {string} a @param {string} b */
const inOrder = (a, b) => a.toLowerCase().localeCompare(b.toLowerCase());

/**
 * @param {string} directory
 * @param {number} most
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<string[]>} at most so many, those that the SDK would show first
 */
export async function firstNames(directory, most, signal) {
  /** @type {string[]} */
  let first = [];
  for await (const { name } of await opendir(directory, { bufferSize: AT_ONCE })) {
    first.push(name);
    if (first.length < most + Math.max(most, 10 * AT_ONCE)) continue;
    if (signal?.aborted) throw new Error(ABORTED);
    first = first.sort(inOrder).slice(0, most);
  }
  return first.sort(inOrder).slice(0, most);
}
