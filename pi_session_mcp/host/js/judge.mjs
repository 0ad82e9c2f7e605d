// What the doctor asks Pi: whether its files can be used, and whether it has what each profile selects. The answers come
// from the code that makes a session. The doctor starts this with Node's permission model, so that nothing can be written
// or run. No lock is taken, no login is renewed, and no extension is loaded.
//
// On standard input one JSON object with `sdk`, `bundle`, `selections`, `workspaces` and `stepMs`; on
// standard output one answer a line.

import { readFileSync, writeSync } from "node:fs";
import { contextFiles } from "./context.mjs";
import { SeenCredentials, valuesOf } from "./credentials.mjs";
import { Failure } from "./errors.mjs";
import { areUsable, proxiesOf } from "./network.mjs";
import { readPiFiles } from "./pi_files.mjs";
import { greetingOf, loadSdk } from "./sdk.mjs";
import { isFound } from "./selection.mjs";
import { makeServices } from "./services.mjs";

/** @typedef {import("./sdk.d.ts").CheckName} Step */
/** @typedef {import("./sdk.d.ts").Selection} Selection */
/** @typedef {Awaited<ReturnType<typeof readPiFiles>>} PiFiles */

const STDIN = 0;
const STDOUT = 1;
/** @type {Step[]} */
const STEPS = ["provider", "model", "check_auth", "get_auth", "availability"];
/** No directory can be made below a device. */
const ROOT = "/";

/** @param {object} answer */
function say(answer) {
  writeSync(STDOUT, `${JSON.stringify(answer)}\n`);
}

/** Pi's view of its files, and which part of it only a command or a login would show. */
class Pi {
  #sdk;
  #services;
  #files;
  #credentials;
  #stepMs;

  /**
   * @param {import("./sdk.d.ts").Sdk} sdk
   * @param {import("./sdk.d.ts").Services} services
   * @param {PiFiles} files
   * @param {SeenCredentials} credentials
   * @param {number} stepMs how long one question may take
   */
  constructor(sdk, services, files, credentials, stepMs) {
    this.#sdk = sdk;
    this.#services = services;
    this.#files = files;
    this.#credentials = credentials;
    this.#stepMs = stepMs;
  }

  /**
   * The answers up to the first that is not yes; `null` means that there was none.
   * @param {Selection} selection
   */
  async judge(selection) {
    /** @type {Record<string, boolean | null>} */
    const found = {};
    let unseen = null;
    for (const step of STEPS) {
      if (step === "get_auth" && this.#needsACommand(selection.provider)) {
        unseen = "command";
        continue;
      }
      const answer = await this.#ask(step, selection);
      if (step === "get_auth" && this.#credentials.renewals.has(selection.provider)) {
        unseen = "renewal";
        continue;
      }
      found[step] = answer;
      if (!answer) return { found, unseen, level: null };
    }
    return { found, unseen, level: await this.#level(selection).catch(() => null) };
  }

  /** @param {Step} step @param {Selection} selection */
  #ask(step, selection) {
    return isFound(this.#services.modelRuntime, step, selection, AbortSignal.timeout(this.#stepMs)).catch(() => null);
  }

  /** @param {Selection} selection the level that a session would have */
  async #level({ provider, model: id, thinkingLevel }) {
    const model = this.#services.modelRuntime.getModel(provider, id);
    const sessionManager = this.#sdk.SessionManager.inMemory(ROOT);
    const made = { ...this.#services, model, thinkingLevel, tools: [], customTools: [], sessionManager };
    const { session } = await this.#sdk.createAgentSession(made);
    const level = session.thinkingLevel;
    session.dispose();
    return level;
  }

  /** @param {string} provider */
  #needsACommand(provider) {
    const providers = /** @type {Record<string, unknown> | undefined} */ (this.#files.models.providers);
    return this.#credentials.hasCommand(provider) || holdsACommand(providers?.[provider]);
  }
}

/** @param {unknown} value @returns {boolean} whether a text in it is one that Pi runs */
function holdsACommand(value) {
  if (typeof value === "string") return value.startsWith("!");
  return typeof value === "object" && value !== null && Object.values(value).some(holdsACommand);
}

/**
 * @param {import("./sdk.d.ts").Sdk} sdk
 * @param {string} entry
 * @param {PiFiles} files
 * @param {number} stepMs
 */
async function open(sdk, entry, files, stepMs) {
  const credentials = new SeenCredentials(files.auth, await valuesOf(entry));
  const modelsStore = { read: async () => undefined, write: async () => {}, delete: async () => {} };
  const { signal } = new AbortController();
  const options = { cwd: ROOT, entries: [], signal, route: { take() {} }, stores: { credentials, modelsStore } };
  return new Pi(sdk, await makeServices(sdk, options), files, credentials, stepMs);
}

/**
 * Says of each workspace that can be looked at whether files of instructions would be left out.
 * @param {string[]} workspaces
 */
async function judgeInstructions(workspaces) {
  for (const [place, cwd] of workspaces.entries()) {
    const seen = await contextFiles(cwd).catch(() => undefined);
    if (seen) say({ workspace: place, instructions: seen.leftOut });
  }
}

/** @param {{ sdk: string, bundle: string | null, selections: Selection[], workspaces: string[], stepMs: number }} question */
async function answer({ sdk: entry, bundle, selections, workspaces, stepMs }) {
  const files = await readPiFiles(process.env["PI_CODING_AGENT_DIR"] ?? "");
  const proxies = areUsable(proxiesOf(process.env, files.settings["httpProxy"]));
  say({ faults: files.faults, proxies, configured: String(files.settings["httpProxy"] ?? "").trim() !== "" });
  await judgeInstructions(workspaces);
  const { sdk } = await loadSdk(entry, bundle);
  say({ greeting: greetingOf(sdk) });
  if (files.faults.length > 0 || !proxies) return;
  const pi = await open(sdk, entry, files, stepMs);
  for (const [place, selection] of selections.entries()) say({ selection: place, ...(await pi.judge(selection)) });
}

try {
  await answer(JSON.parse(readFileSync(STDIN, "utf-8")));
} catch (error) {
  if (error instanceof Failure && error.reason) say({ faults: [error.reason], proxies: true, configured: false });
  else process.exitCode = 1;
}
process.exit();
