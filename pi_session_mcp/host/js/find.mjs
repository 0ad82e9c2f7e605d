// `find` without `fd`: ripgrep lists the files, and the pattern is matched here.

import { spawn } from "node:child_process";
import { access } from "node:fs/promises";
import { dirname, join } from "node:path";
import { compileGlob } from "./glob.mjs";

/**
 * Files and non-empty directories below `directory` that match, at most `limit`, sorted. Hidden ones are included;
 * what `.gitignore` names, `.git` and `node_modules` are not. Symlinks are neither followed nor listed.
 * @param {object} search
 * @param {string} search.pattern
 * @param {string} search.directory as the model named it, absolute; results begin with it
 * @param {string} search.location where that really is
 * @param {string} search.ripgrep
 * @param {number} search.limit
 * @param {AbortSignal | undefined} search.signal
 * @returns {Promise<string[]>} directories end with `/`
 */
export async function findFiles({ pattern, directory, location, ripgrep, limit, signal }) {
  const matches = compileGlob(pattern);
  const args = ["--files", "--null", "--hidden", "--no-config", "--no-messages"];
  for (const name of ["node_modules", ".git"]) args.push("--glob", `!**/${name}`);
  // As Pi does with fd: ignore files count outside a repository as well.
  if (!(await insideRepository(location))) args.push("--no-require-git");
  /** @type {string[]} */
  const found = [];
  const seen = new Set(["."]);
  const take = (/** @type {string} */ relative, /** @type {string} */ suffix) => {
    const absolute = join(directory, relative);
    if (found.length < limit && matches(relative, absolute)) found.push(absolute + suffix);
  };
  const takeWithParents = (/** @type {string} */ relative) => {
    for (let parent = dirname(relative); !seen.has(parent); parent = dirname(parent)) {
      seen.add(parent);
      take(parent, "/");
    }
    take(relative, "");
    return found.length < limit;
  };
  await listFiles(ripgrep, args, location, signal, takeWithParents);
  return found.sort();
}

/** @param {string} location */
async function insideRepository(location) {
  for (let current = location; ; current = dirname(current)) {
    const isRepository = await access(join(current, ".git")).then(
      () => true,
      () => false,
    );
    if (isRepository) return true;
    if (current === dirname(current)) return false;
  }
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 * @param {AbortSignal | undefined} signal
 * @param {(relative: string) => boolean} take answers whether more is wanted
 * @returns {Promise<void>}
 */
function listFiles(program, args, cwd, signal, take) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "ignore"], signal });
    let rest = "";
    child.stdout.setEncoding("utf-8");
    child.stdout.on("data", (chunk) => {
      const names = (rest + chunk).split("\0");
      rest = /** @type {string} */ (names.pop());
      if (names.every(take)) return;
      child.stdout.destroy();
      child.kill();
    });
    child.on("error", reject);
    // 1 says that there were no files, 2 that some could not be read; the rest is what there is.
    child.on("close", () => resolve());
  });
}
