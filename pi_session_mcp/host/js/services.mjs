// What a session is made from: its model runtime, settings and resources, none of them shared with another session.

import { Failure } from "./errors.mjs";
import { proxiesOf, proxyVariables } from "./network.mjs";
import { readPiFiles } from "./pi_files.mjs";
import { idleTimeoutMs } from "./pi_settings.mjs";
import { guardTranspiled } from "./transpiled.mjs";

/** @typedef {import("./sdk.d.ts").Sdk} Sdk */
/** @typedef {import("./sdk.d.ts").Services} Services */
/** @typedef {import("./network.mjs").Route} Route */
/** @typedef {import("./context.mjs").ContextFile} ContextFile */
/** @typedef {import("./sdk.d.ts").Stores} Stores */

/** No directory can be made below a device, so no file there can ever replace Pi's system prompt. */
const PRIVATE_AGENT_DIRECTORY = "/dev/null/pi-session-mcp";

/**
 * `entries` are extension files, `agentsFiles` instructions of the workspace; `stores` take the place of Pi's own.
 * @typedef {object} Making
 * @property {string} cwd
 * @property {string[]} entries
 * @property {AbortSignal} signal
 * @property {Pick<Route, "take">} route
 * @property {ContextFile[]} [agentsFiles]
 * @property {Stores} [stores]
 */

/**
 * @param {Sdk} sdk
 * @param {Making} options
 * @returns {Promise<Services>}
 */
export async function makeServices(sdk, { cwd, entries, signal, route, agentsFiles = [], stores }) {
  const agentDir = PRIVATE_AGENT_DIRECTORY;
  const { settings, auth, faults } = await readPiFiles(sdk.getAgentDir());
  if (faults.length > 0) throw new Failure("pi_configuration", faults[0]);
  const proxies = proxiesOf(process.env, settings.httpProxy);
  route.take(proxies, idleTimeoutMs(settings.httpIdleTimeoutMs) ?? 0);
  const modelRuntime = await makeModelRuntime(sdk, signal, stores);
  sendThrough(modelRuntime, proxyVariables(proxies));
  nameStored(modelRuntime, auth);
  // Cache warming sends requests that are billed.
  const settingsManager = sdk.SettingsManager.inMemory({ ...settings, cacheWarming: "off" }, { projectTrusted: false });
  const isolated = isolatedResources(agentsFiles);
  if (entries.length > 0) {
    guardTranspiled();
    const resourceLoaderOptions = { ...isolated, additionalExtensionPaths: entries };
    return sdk.createAgentSessionServices({ cwd, agentDir, modelRuntime, settingsManager, resourceLoaderOptions });
  }
  const resourceLoader = new sdk.DefaultResourceLoader({ cwd, agentDir, settingsManager, ...isolated });
  await resourceLoader.reload();
  return { cwd, agentDir, modelRuntime, settingsManager, resourceLoader, diagnostics: [] };
}

/**
 * Gives every request of the runtime these variables, for the providers that look for a proxy there.
 * @param {import("./sdk.d.ts").ModelRuntime} modelRuntime
 * @param {Record<string, string>} variables
 */
function sendThrough(modelRuntime, variables) {
  const send = modelRuntime.streamSimple.bind(modelRuntime);
  modelRuntime.streamSimple = (model, context, options) =>
    send(model, context, { ...options, env: { ...variables, ...options?.env } });
}

/**
 * Names all providers for which something is stored. If one entry is `null`, the SDK would name none, and a damaged login
 * would look like a missing one.
 * @param {import("./sdk.d.ts").ModelRuntime} modelRuntime
 * @param {Record<string, unknown>} auth what `auth.json` holds
 */
function nameStored(modelRuntime, auth) {
  modelRuntime.listCredentials = async () => Object.keys(auth).map((providerId) => ({ providerId }));
}

/**
 * A runtime of its own for each session, with fresh credentials and models, and without registrations of other sessions.
 * @param {Sdk} sdk
 * @param {AbortSignal} signal
 * @param {Stores} [stores]
 */
async function makeModelRuntime(sdk, signal, stores) {
  const runtime = await sdk.ModelRuntime.create({ refreshOnCreate: false, signal, ...stores });
  if (runtime.getError() !== undefined) throw new Failure("pi_configuration", "models_refused");
  return runtime;
}

/**
 * Resources without any discovery, also in packages of extensions, and with no system prompt but Pi's own.
 * @param {ContextFile[]} agentsFiles
 */
function isolatedResources(agentsFiles) {
  return {
    noExtensions: true,
    noSkills: true,
    noPromptTemplates: true,
    noThemes: true,
    noContextFiles: true,
    skillsOverride: () => ({ skills: [], diagnostics: [] }),
    promptsOverride: () => ({ prompts: [], diagnostics: [] }),
    themesOverride: () => ({ themes: [], diagnostics: [] }),
    agentsFilesOverride: () => ({ agentsFiles }),
    systemPromptOverride: () => undefined,
    appendSystemPromptOverride: () => [],
  };
}
