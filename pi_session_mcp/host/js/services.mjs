// What a session is made from: its model runtime, settings and resources, none of them shared with another session.

import { contextFiles } from "./context.mjs";
import { Failure } from "./errors.mjs";
import { areReadable } from "./pi_files.mjs";
import { guardTranspiled } from "./transpiled.mjs";

/** @typedef {import("./sdk.d.ts").Sdk} Sdk */
/** @typedef {import("./sdk.d.ts").Services} Services */

/** No directory can be made below a device, so nothing in it can ever replace Pi's system prompt. */
const PRIVATE_AGENT_DIRECTORY = "/dev/null/pi-session-mcp";

/**
 * @param {Sdk} sdk
 * @param {{ cwd: string, entries: string[], signal: AbortSignal }} options `entries` are extension files
 * @returns {Promise<Services>}
 */
export async function makeServices(sdk, { cwd, entries, signal }) {
  const agentDir = PRIVATE_AGENT_DIRECTORY;
  const modelRuntime = await makeModelRuntime(sdk, signal);
  // Cache warming sends requests that are billed.
  const settingsManager = sdk.SettingsManager.inMemory({ cacheWarming: "off" }, { projectTrusted: false });
  const isolated = isolatedResources(await contextFiles(cwd));
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
 * A runtime of its own for each session: fresh credentials and models, and no other's registrations.
 * @param {Sdk} sdk
 * @param {AbortSignal} signal
 */
async function makeModelRuntime(sdk, signal) {
  if (!(await areReadable(sdk.getAgentDir()))) throw new Failure("pi_configuration");
  const runtime = await sdk.ModelRuntime.create({ refreshOnCreate: false, signal });
  if (runtime.getError() !== undefined) throw new Failure("pi_configuration");
  return runtime;
}

/**
 * Nothing discovered, also not in the package of an extension, and no system prompt but Pi's own.
 * @param {import("./context.mjs").ContextFile[]} agentsFiles
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
