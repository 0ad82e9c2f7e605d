// The words that an answer may carry instead of a result: never the text of a foreign error.

/** @typedef {"failed" | "workspace" | "pi_configuration" | "proxy" | "sdk_import" | "unknown_session" | "exists" | "order" | "invalid"} Code */

/** `PiFault` of `host/protocol.py`. @typedef {"models_unreadable" | "models_not_json" | "models_refused" | "auth_unreadable" | "auth_not_json" | "settings_unreadable" | "settings_not_json" | "settings_refused"} PiFault */

/** A request that is answered with a code. */
export class Failure extends Error {
  /** @param {Code} code @param {PiFault} [reason] */
  constructor(code, reason) {
    super(code);
    this.code = code;
    this.reason = reason;
  }
}

/**
 * What is said of a request that failed.
 * @param {unknown} error
 * @returns {{ code: Code, reason?: PiFault | undefined }}
 */
export function wordsFor(error) {
  return error instanceof Failure ? { code: error.code, reason: error.reason } : { code: "failed" };
}
