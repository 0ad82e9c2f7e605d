// How a turn ended, told from the messages of the assistant as each of them ends.

import { boundedText } from "./frames.mjs";

/** @typedef {{ stopReason: string | null, text: string }} Outcome */

/** Messages that end like this are no part of the conversation: Pi does not send them again. */
const NO_PART = ["error", "aborted"];

/** What the messages of one turn say about its outcome. */
export class Outcomes {
  /** @type {Outcome} */
  #last = { stopReason: null, text: "" };
  /** The latest text that is part of the conversation, and the latest one before the last message. */
  #answer = "";
  #before = "";

  /** @param {import("./sdk.d.ts").AssistantMessage} message an extension may have replaced it with anything */
  ended(message) {
    this.#last = outcomeOf(message);
    this.#before = this.#answer;
    if (isPart(this.#last) && this.#last.text.trim() !== "") this.#answer = this.#last.text;
  }

  /** Takes the last message back: Pi sends the same conversation again without it. */
  takenBack() {
    this.#answer = this.#before;
  }

  /**
   * How the turn ended, and the text of its last message that has some: models write their findings beside their last
   * tool call, and then end with an empty message.
   * @returns {Outcome}
   */
  get outcome() {
    return isPart(this.#last) ? { ...this.#last, text: this.#answer } : this.#last;
  }
}

/** @param {Outcome} message */
function isPart({ stopReason }) {
  return stopReason === null || !NO_PART.includes(stopReason);
}

/**
 * @param {import("./sdk.d.ts").AssistantMessage} message
 * @returns {Outcome}
 */
function outcomeOf({ stopReason, content }) {
  const blocks = Array.isArray(content) ? content : [];
  const texts = blocks.filter(({ type, text }) => type === "text" && typeof text === "string");
  return {
    stopReason: typeof stopReason === "string" ? stopReason.toWellFormed() : null,
    text: boundedText(texts.map(({ text }) => text).join("")),
  };
}
