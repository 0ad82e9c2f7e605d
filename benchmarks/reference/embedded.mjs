// The Pi SDK embedded the short way: one model runtime for the process, and sessions with the SDK's own tools.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const TOOLS = { "read-only": ["read", "grep", "find", "ls"], coding: ["read", "bash", "edit", "write", "grep", "find", "ls"] };

/** What the operator's file says; only what a benchmark needs of it. */
export const configuration = JSON.parse(readFileSync(process.env.PI_SESSION_MCP_CONFIG, "utf-8"));

process.env.PI_CODING_AGENT_DIR = configuration.piAgentDirectory;
process.env.PI_OFFLINE = "1";
process.env.PI_TELEMETRY = "0";
const sdk = await import(pathToFileURL(process.argv[2]).href);
const modelRuntime = await sdk.ModelRuntime.create({ refreshOnCreate: false });
const agentDir = "/dev/null/none";

/** A session of the SDK in a workspace, under a profile of the configuration. */
export async function startSession(cwd, profile) {
  const settingsManager = sdk.SettingsManager.inMemory({ cacheWarming: "off" }, { projectTrusted: false });
  const nothing = { noExtensions: true, noSkills: true, noPromptTemplates: true, noThemes: true, noContextFiles: true };
  const resourceLoader = new sdk.DefaultResourceLoader({ cwd, agentDir, settingsManager, ...nothing });
  await resourceLoader.reload();
  const { session } = await sdk.createAgentSession({
    cwd,
    agentDir,
    modelRuntime,
    settingsManager,
    resourceLoader,
    sessionManager: sdk.SessionManager.inMemory(cwd),
    model: modelRuntime.getModel(profile.provider, profile.model),
    thinkingLevel: profile.thinkingLevel,
    tools: TOOLS[profile.permissionProfile],
  });
  return session;
}

/** The text of the session's last answer, once the prompt is dealt with; `started` is called when Pi has accepted it. */
export async function prompt(session, text, started) {
  await session.prompt(text, { expandPromptTemplates: false, source: "rpc", preflightResult: started });
  const content = session.messages.at(-1)?.content ?? [];
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
}
