// The words that an answer may carry instead of a result; never a foreign error's text.

/** @typedef {"failed" | "workspace" | "pi_configuration" | "proxy" | "sdk_import" | "unknown_session" | "exists" | "order" | "invalid"} Code */

/** A request that is answered with a code. */
export class Failure extends Error {
  /** @param {Code} code */
  constructor(code) {
    super(code);
    this.code = code;
  }
}

/**
 * @param {unknown} error
 * @returns {Code}
 */
export function codeOf(error) {
  return error instanceof Failure ? error.code : "failed";
}
