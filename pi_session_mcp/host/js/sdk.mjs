// The Pi SDK as a module: which exports are used, and how it is loaded.

import { pathToFileURL } from "node:url";
import { Failure } from "./errors.mjs";

/** The SDK's exports that we use; `REQUIRED_EXPORTS` of `host/protocol.py`. */
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

/** @param {any} sdk what the server judges: versions, and for each export whether it is there */
export function greetingOf(sdk) {
  const version = typeof sdk.VERSION === "string" ? sdk.VERSION : "";
  const exports = Object.fromEntries(EXPORTS.map((name) => [name, sdk[name] !== undefined]));
  return { node: process.version, sdk: version, exports };
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
  return EXPORTS.every((name) => sdk[name] !== undefined) ? sdk : undefined;
}
