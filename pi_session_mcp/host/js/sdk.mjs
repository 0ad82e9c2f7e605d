// The Pi SDK as a module: which exports are used, and how it is loaded.

import { pathToFileURL } from "node:url";
import { Failure } from "./errors.mjs";

/** The exports of the SDK that we use (`@earendil-works/pi-coding-agent` 1.6.0, `dist/index.js`). */
const EXPORTS = [
  "VERSION",
  "ModelRuntime",
  "SettingsManager",
  "SessionManager",
  "DefaultResourceLoader",
  "createAgentSession",
  "createAgentSessionServices",
  "createAgentSessionFromServices",
  "createAgentSessionRuntime",
  "createReadToolDefinition",
  "createBashToolDefinition",
  "createEditToolDefinition",
  "createWriteToolDefinition",
  "createGrepToolDefinition",
  "createFindToolDefinition",
  "createLsToolDefinition",
  "getAgentDir",
];

/**
 * The SDK, loaded from its one-file form if that is whole, otherwise from its published entry.
 * @param {string} entry
 * @param {string | null | undefined} bundle
 * @returns {Promise<{ sdk: any, whole: boolean }>} whatever it exports, which the server judges; `whole` for one file
 */
export async function loadSdk(entry, bundle) {
  const whole = bundle ? await wholeSdk(bundle) : undefined;
  return { sdk: whole ?? (await anySdk(entry)), whole: whole !== undefined };
}

/** @param {any} sdk what the server judges: versions, and which exports are missing */
export function greetingOf(sdk) {
  const version = typeof sdk.VERSION === "string" ? sdk.VERSION : "";
  return { node: process.version, sdk: version, missing: missingFrom(sdk) };
}

/** @param {any} sdk */
function missingFrom(sdk) {
  return EXPORTS.filter((name) => sdk[name] === undefined);
}

/** @param {string} entry @returns {Promise<any>} */
async function anySdk(entry) {
  return import(pathToFileURL(entry).href).catch(() => {
    throw new Failure("sdk_import");
  });
}

/** @param {string} bundle @returns {Promise<any>} nothing if it cannot be loaded or lacks an export */
async function wholeSdk(bundle) {
  const sdk = await anySdk(bundle).catch(() => ({}));
  return missingFrom(sdk).length === 0 ? sdk : undefined;
}
