// What a model is told about an error. Sentences of the SDK name what the model itself has given. Those of the system and
// of Node name places that a model must not learn, such as where a program is installed.

import { getSystemErrorMap } from "node:util";
import { MAX_TOLD_UNITS, OPERATION_FAILED } from "./bounds.mjs";

/** A sentence of the system that names a path, perhaps within a sentence of the SDK. */
const BY_THE_SYSTEM = /^(.*: )?([A-Z][A-Z0-9]+): ([a-z ,]+?), \w+ '/s;

/** @param {unknown} error @returns {Error} */
export function told(error) {
  if (!(error instanceof Error)) return new Error(OPERATION_FAILED);
  if ("code" in error || "syscall" in error) return new Error(bySystem(error));
  const [, before = "", code, text] = BY_THE_SYSTEM.exec(error.message) ?? [];
  return new Error((code ? `${before}${code}: ${text}` : error.message).slice(0, MAX_TOLD_UNITS));
}

/** @param {Error & { code?: unknown, errno?: unknown }} error */
function bySystem({ code, errno }) {
  const [name, text] = (typeof errno === "number" && getSystemErrorMap().get(errno)) || [];
  return name !== undefined && name === code ? `${name}: ${text}` : OPERATION_FAILED;
}
