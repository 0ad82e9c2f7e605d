// Which parts of Pi's `settings.json` count for a session: a fixed list of names, each with its type and range. Everything
// else is ignored. The list has no name that could widen what a session may do.
// `docs/runtime.md` has the same list with Pi's defaults.

import { isProxyAddress } from "./network.mjs";

/** @typedef {Record<string, any>} Settings */
/** @typedef {{ [name: string]: Rule }} Table */
/** @typedef {((value: unknown) => boolean) | Table} Rule */

/** Pi's value without a setting, milliseconds. */
const DEFAULT_IDLE_TIMEOUT_MS = 300_000;
/** The longest wait that a timer of Node's can hold. With a longer one it would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** The most retries: each may be billed. */
const MAX_RETRIES = 100;

/** @type {Rule} */
const flag = (value) => typeof value === "boolean";
/** @type {Rule} */
const milliseconds = (value) => typeof value === "number" && value >= 0 && value <= MAX_TIMER_MS;
/** @type {Rule} */
const retries = (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_RETRIES;
/** @type {Rule} */
const tokens = (value) => Number.isSafeInteger(value) && Number(value) >= 0;

/** @type {Table} */
const WINDOW = { reserveTokens: tokens, keepRecentTokens: tokens };

/** @type {Table} */
const RULES = {
  httpProxy: (value) => typeof value === "string" && (value.trim() === "" || isProxyAddress(value.trim())),
  httpIdleTimeoutMs: (value) => idleTimeoutMs(value) !== undefined,
  retry: {
    enabled: flag,
    maxRetries: retries,
    baseDelayMs: milliseconds,
    maxAgentDelayMs: milliseconds,
    // The old name of `provider.maxRetryDelayMs`. The SDK still takes it.
    maxDelayMs: milliseconds,
    provider: { timeoutMs: milliseconds, maxRetries: retries, maxRetryDelayMs: milliseconds },
  },
  compaction: {
    enabled: flag,
    ...WINDOW,
    modelOverrides: (value) => isObject(value) && Object.values(value).every((one) => chosen(one, WINDOW) !== undefined),
  },
  images: { autoResize: flag, blockImages: flag },
};

/**
 * The settings that count, or nothing if one of them has an impossible value.
 * @param {unknown} value what `settings.json` holds
 * @returns {Settings | undefined}
 */
export function chosenSettings(value) {
  return chosen(value, RULES);
}

/**
 * Read as Pi reads it: 0 or `"disabled"` means no limit, and a number may be a text.
 * @param {unknown} value
 * @returns {number | undefined} milliseconds, or nothing if it is no such value
 */
export function idleTimeoutMs(value = DEFAULT_IDLE_TIMEOUT_MS) {
  if (typeof value === "string") {
    const text = value.trim().toLowerCase();
    if (text === "disabled") return 0;
    return text === "" ? undefined : idleTimeoutMs(Number(text));
  }
  return typeof value === "number" && value >= 0 && value <= MAX_TIMER_MS ? Math.floor(value) : undefined;
}

/**
 * @param {unknown} value
 * @param {Table} table
 * @returns {Settings | undefined}
 */
function chosen(value, table) {
  if (!isObject(value)) return undefined;
  /** @type {Settings} */
  const kept = {};
  for (const [name, rule] of Object.entries(table)) {
    if (!Object.hasOwn(value, name)) continue;
    const one = typeof rule === "function" ? (rule(value[name]) ? value[name] : undefined) : chosen(value[name], rule);
    if (one === undefined) return undefined;
    kept[name] = one;
  }
  return kept;
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
