// Where a path really leads, and whether a directory is there.

import { readlink, stat } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

const MAX_LINKS = 40;

/**
 * The path with every symlink resolved. Parts that do not exist are kept, so that nothing tells whether the target of a
 * link to outside exists. Throws if there are too many links.
 * @param {string} path absolute
 */
export async function realLocation(path) {
  const pending = path.split(sep).reverse();
  /** @type {string} */
  let real = sep;
  for (let links = 0; pending.length > 0; ) {
    const part = pending.pop();
    if (part === "" || part === ".") continue;
    if (part === "..") {
      real = dirname(real);
      continue;
    }
    const next = join(real, /** @type {string} */ (part));
    const target = await readlink(next).catch(() => undefined);
    if (target === undefined) {
      real = next;
      continue;
    }
    if (++links > MAX_LINKS) throw new Error("too many links");
    if (target.startsWith(sep)) real = sep;
    pending.push(...target.split(sep).reverse());
  }
  return real;
}

/** @param {string} path */
export function isDirectory(path) {
  return stat(path).then(
    (seen) => seen.isDirectory(),
    () => false,
  );
}
