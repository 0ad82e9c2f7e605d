// The reference: an MCP server that embeds the Pi SDK in its own process, with the same eight tools and no more than
// a benchmark calls. No guard, no deadlines, no cancellation, no cleanup: what such a server costs at least.
// `node server.mjs SDK`; JSON lines on stdin and stdout.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { configuration, prompt, startSession } from "./embedded.mjs";

const profiles = Object.entries(configuration.executionProfiles);
const sessions = new Map();
const now = () => new Date().toISOString();

class Refused extends Error {}

function find(id) {
  const found = sessions.get(id);
  if (!found) throw new Refused("unknown_session");
  return found;
}

function view({ id, workspace, alias, profile, turn, createdAt }) {
  const { permissionProfile, provider, model, thinkingLevel } = profile;
  const state = turn?.state === "running" ? "running" : "idle";
  const latest = turn ? { latestTurnId: turn.turnId } : {};
  const about = { id, workspace, executionProfile: alias, profile: permissionProfile, provider, model, thinkingLevel };
  return { ...about, state, createdAt, updatedAt: turn?.updatedAt ?? createdAt, ...latest };
}

function turnView({ done, ...turn }) {
  return turn;
}

/** The turn as it is when it has ended or the time has passed. */
async function settled(turn, waitMs = 0) {
  if (turn.state === "running" && waitMs > 0) {
    let timer;
    await Promise.race([turn.done, new Promise((resolve) => (timer = setTimeout(resolve, waitMs)))]);
    clearTimeout(timer);
  }
  return turnView(turn);
}

function run(session, text) {
  const turn = { turnId: randomUUID(), sessionId: session.id, state: "running", startedAt: now(), updatedAt: now() };
  const end = (members) => Object.assign(turn, members, { updatedAt: now(), completedAt: now() });
  return new Promise((resolve) => {
    turn.done = prompt(session.pi, text, () => resolve((session.turn = turn))).then(
      (assistantText) => end({ state: "completed", assistantText, truncated: false }),
      () => end({ state: "failed", error: { code: "turn_failed", message: "Pi turn failed" } }),
    );
    session.turns.set(turn.turnId, turn);
  });
}

const tools = {
  pi_capabilities_get() {
    const workspaces = Object.keys(configuration.workspaces).map((alias) => ({ alias }));
    return { workspaces, executionProfiles: profiles.map(([alias, profile]) => ({ alias, ...profile })) };
  },
  async pi_session_start({ workspace, executionProfile }) {
    const [alias, profile] = profiles.find(([name, one]) => (executionProfile ? name === executionProfile : one.default));
    const pi = await startSession(configuration.workspaces[workspace], profile);
    const session = { id: randomUUID(), workspace, alias, profile, pi, createdAt: now(), turns: new Map() };
    sessions.set(session.id, session);
    return { session: view(session) };
  },
  pi_session_list: () => ({ sessions: [...sessions.values()].map(view) }),
  pi_session_get: ({ sessionId }) => ({ session: view(find(sessionId)) }),
  async pi_session_prompt({ sessionId, prompt: text, waitMs }) {
    const session = find(sessionId);
    const turn = await settled(await run(session, text), waitMs);
    return { session: view(session), turn };
  },
  async pi_turn_get({ sessionId, turnId, waitMs }) {
    return { turn: await settled(find(sessionId).turns.get(turnId), waitMs) };
  },
  async pi_session_abort({ sessionId }) {
    await find(sessionId).pi.abort();
    return { session: view(find(sessionId)) };
  },
  pi_session_close({ sessionId }) {
    const session = find(sessionId);
    sessions.delete(sessionId);
    session.pi.dispose();
    return { session: view(session) };
  },
};

const text = { type: "string" };
const waitMs = { type: "integer", minimum: 0, maximum: 50_000 };
const properties = {
  pi_session_start: { workspace: text, executionProfile: text },
  pi_session_get: { sessionId: text },
  pi_session_prompt: { sessionId: text, prompt: text, waitMs },
  pi_turn_get: { sessionId: text, turnId: text, waitMs },
  pi_session_abort: { sessionId: text },
  pi_session_close: { sessionId: text },
};

function listed(name) {
  const inputSchema = { type: "object", properties: properties[name] ?? {}, additionalProperties: false };
  return { name, description: `The tool ${name}.`, inputSchema };
}

async function call({ name, arguments: given }) {
  try {
    const answer = { ok: true, ...(await tools[name](given ?? {})) };
    return { content: [{ type: "text", text: JSON.stringify(answer) }], structuredContent: answer };
  } catch (error) {
    const answer = { ok: false, error: { code: error instanceof Refused ? error.message : "internal_error" } };
    return { content: [{ type: "text", text: JSON.stringify(answer) }], structuredContent: answer, isError: true };
  }
}

function perform({ method, params }) {
  switch (method) {
    case "initialize": {
      const serverInfo = { name: "reference", version: "1" };
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
    }
    case "tools/list":
      return { tools: Object.keys(tools).map(listed) };
    case "tools/call":
      return call(params);
  }
  return {};
}

async function answer(line) {
  const request = JSON.parse(line);
  if (request.id === undefined) return;
  const result = await perform(request);
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: request.id, result })}\n`);
}

createInterface({ input: process.stdin }).on("line", (line) => void answer(line)).on("close", () => process.exit(0));
