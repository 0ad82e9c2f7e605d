// What a turn came to, from the last message of the assistant.

import { boundedText } from "./frames.mjs";

/** @typedef {{ stopReason: string | null, text: string }} Outcome */

/** @type {Outcome} */
export const NO_OUTCOME = { stopReason: null, text: "" };

/**
 * @param {import("./sdk.d.ts").AssistantMessage} message an extension may have replaced it with anything
 * @returns {Outcome}
 */
export function outcomeOf({ stopReason, content }) {
  const blocks = Array.isArray(content) ? content : [];
  const texts = blocks.filter(({ type, text }) => type === "text" && typeof text === "string");
  return {
    stopReason: typeof stopReason === "string" ? stopReason.toWellFormed() : null,
    text: boundedText(texts.map(({ text }) => text).join("")),
  };
}
