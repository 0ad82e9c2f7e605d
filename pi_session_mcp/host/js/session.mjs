// One Pi session, from `load` to `dispose`. The server decides what happens, and this does it, one step at a time.

import { isAbsolute } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import { Commands } from "./commands.mjs";
import { contextFiles } from "./context.mjs";
import { Failure } from "./errors.mjs";
import { grantedTools, shownImages } from "./granted.mjs";
import { Outcomes } from "./outcome.mjs";
import { OutputFiles } from "./outputs.mjs";
import { isDirectory, realLocation } from "./real_location.mjs";
import { isFound } from "./selection.mjs";
import { makeServices } from "./services.mjs";
import { builtinTools } from "./tools.mjs";

/** @typedef {import("./sdk.d.ts").Sdk} Sdk */
/** @typedef {import("./sdk.d.ts").AgentSession} AgentSession */
/** @typedef {import("./sdk.d.ts").AgentEvent} AgentEvent */
/** @typedef {import("./sdk.d.ts").RequestOf} RequestOf */
/** @typedef {{ turn: number, started: boolean, aborted: boolean, messages: Outcomes, done: Promise<void> }} Turn */
/** @typedef {"new" | "loaded" | "opened" | "ready"} Stage */

const TOOL_NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/;
const WORDS = ["started", "queued", "handled"];

export class Session {
  #sdk;
  #request;
  #send;
  #calls;
  #apart;
  /** How requests of the session leave the host. Everything that the server asks for has to run on it. */
  route;
  /** @type {Stage} */
  #stage = "new";
  #busy = false;
  #gone = new AbortController();
  /** What fails each request that is not answered yet. @type {Set<() => void>} */
  #unanswered = new Set();
  /** @type {string | undefined} */
  #root;
  /** @type {import("./sdk.d.ts").Services | undefined} */
  #services;
  /** @type {Promise<void> | undefined} */
  #opening;
  /** @type {AgentSession | undefined} */
  #session;
  /** @type {import("./sdk.d.ts").SessionRuntime | undefined} */
  #runtime;
  /** @type {Promise<void> | undefined} */
  #released;
  /** @type {Turn | undefined} */
  #turn;
  #foreignRun = false;
  #outputs = new OutputFiles();
  #commands;

  /**
   * @param {Sdk} sdk
   * @param {RequestOf["load"]} request
   * @param {(event: object) => void} send
   * @param {{
   *   calls: import("./calls.mjs").Calls, route: import("./network.mjs").Route, python?: string,
   *   apart: import("./apart.mjs").Apart
   * }} given `python` runs the owners of commands; without it they have none
   */
  constructor(sdk, request, send, { calls, route, python, apart }) {
    this.#sdk = sdk;
    this.#apart = apart;
    this.#request = request;
    this.#send = send;
    this.#calls = calls;
    this.route = route;
    this.#commands = python ? new Commands(python) : undefined;
  }

  /** @returns {Promise<object>} */
  load() {
    return this.#step("new", "loaded", async () => {
      const { cwd, fileAccess, entries } = this.#request;
      if (![cwd, ...(entries ?? [])].every(isAbsolute)) throw new Failure("invalid");
      if (!(await isDirectory(cwd))) throw new Failure("workspace");
      if (fileAccess === "workspace") this.#root = await realLocation(cwd);
      const { files, leftOut } = await contextFiles(cwd);
      this.#services = await makeServices(this.#sdk, {
        cwd,
        entries: entries ?? [],
        signal: this.#gone.signal,
        route: this.route,
        agentsFiles: files,
      });
      return { ...this.#loadResult(), leftOut };
    });
  }

  #loadResult() {
    const { resourceLoader, diagnostics } = this.#made();
    const { extensions, errors } = resourceLoader.getExtensions();
    const faults = diagnostics.filter(({ type }) => type === "error");
    const loaded = extensions.map(({ path }) => path);
    const failed = (this.#request.entries ?? []).filter(
      (entry) =>
        !loaded.includes(entry) ||
        errors.some(({ path }) => path === entry) ||
        faults.some(({ message }) => String(message).includes(`"${entry}"`)),
    );
    return {
      extensions: extensions.length,
      errors: errors.length + faults.length,
      tools: this.#extensionTools(),
      failed: this.#places(failed),
    };
  }

  /** The tools that extensions have registered, each with the place of its extension among the entries. */
  #extensionTools() {
    const { extensions } = this.#made().resourceLoader.getExtensions();
    return extensions.flatMap(({ path, tools }) =>
      [...tools.keys()].map((name) => ({ name: toolName(name), entry: this.#request.entries?.indexOf(path) ?? -1 })),
    );
  }

  /**
   * The places of extensions among the entries: no path leaves this process.
   * @param {unknown[]} paths
   */
  #places(paths) {
    return (this.#request.entries ?? []).flatMap((entry, place) => (paths.includes(entry) ? [place] : []));
  }

  /**
   * Asks until the first no, and says of each yes that there was one.
   * @param {RequestOf["check"]} request @returns {Promise<object>}
   */
  check({ steps, selection }) {
    return this.#step("loaded", "loaded", async () => {
      for (const step of steps) {
        if (!(await isFound(this.#made().modelRuntime, step, selection, this.#gone.signal))) return { found: false };
        this.#emit({ event: "checked", step });
      }
      return { found: true };
    });
  }

  /** @param {RequestOf["open"]} request @returns {Promise<object>} */
  open({ selection: { provider, model: id, thinkingLevel }, tools, grants }) {
    const next = this.#request.entries?.length ? "opened" : "ready";
    return this.#step("loaded", next, async () => {
      if (!tools.every((name) => TOOL_NAME.test(name))) throw new Failure("invalid");
      const model = this.#made().modelRuntime.getModel(provider, id);
      if (!model) throw new Failure("failed");
      this.#opening = this.#create({ model, thinkingLevel, tools }, grants ?? []);
      await this.#opening;
      return this.#selection();
    });
  }

  /**
   * @param {{ model: object, thinkingLevel: string, tools: string[] }} selection
   * @param {import("./sdk.d.ts").Grant[]} grants
   */
  async #create(selection, grants) {
    const { cwd, agentDir, settingsManager } = this.#made();
    const place = { cwd, root: this.#root, autoResizeImages: settingsManager.getImageAutoResize() };
    const customTools = [
      ...builtinTools(this.#sdk, selection.tools, place, {
        outputs: this.#outputs,
        commands: this.#commands,
        apart: this.#apart,
      }),
      ...grantedTools(grants, (call, signal) => this.#run(call, signal)),
    ];
    const sessionManager = this.#sdk.SessionManager.inMemory(cwd);
    if (this.#request.entries?.length) {
      const make = this.#runtimeFactory({ ...selection, customTools });
      this.#runtime = await this.#sdk.createAgentSessionRuntime(make, { cwd, agentDir, sessionManager });
      this.#session = this.#runtime.session;
    } else {
      const options = { ...this.#made(), ...selection, customTools, sessionManager };
      this.#session = (await this.#sdk.createAgentSession(options)).session;
    }
    this.#session.subscribe((event) => this.#observe(event));
  }

  /**
   * Makes the session that was asked for. An extension that tries to replace it gets an error.
   * @param {object} selection
   * @returns {import("./sdk.d.ts").RuntimeFactory}
   */
  #runtimeFactory(selection) {
    let used = false;
    return async ({ sessionManager, sessionStartEvent }) => {
      if (used) throw new Error("This session cannot be replaced.");
      used = true;
      const services = this.#made();
      const options = { services, sessionManager, sessionStartEvent, ...selection };
      return { ...(await this.#sdk.createAgentSessionFromServices(options)), services, diagnostics: [] };
    };
  }

  /** @returns {Promise<object>} */
  bind() {
    return this.#step("opened", "ready", async () => {
      const session = this.#opened();
      /** @type {unknown[]} */
      const failing = [];
      await session.bindExtensions({ mode: "print", onError: (error) => failing.push(error?.extensionPath) });
      const servers = this.#made().resourceLoader.getExtensions().runtime.mcpServers.list();
      return {
        ...this.#selection(),
        extensionTools: this.#extensionTools(),
        hookErrors: failing.length,
        mcpServers: servers.length,
        failed: this.#places([...failing, ...servers.map((server) => server?.extensionPath)]),
      };
    });
  }

  /** What the session really has, whatever was asked for. */
  #selection() {
    const session = this.#opened();
    const { provider = "", id = "" } = session.model ?? {};
    const selection = { provider, model: id, thinkingLevel: session.thinkingLevel };
    return { selection, activeTools: session.getActiveToolNames() };
  }

  /**
   * Has the server run a granted tool. An abort of the turn or the end of the session ends the wait.
   * @param {{ tool: string, arguments: string, given: string }} call
   * @param {AbortSignal | undefined} signal
   */
  #run(call, signal) {
    const ends = signal ? AbortSignal.any([signal, this.#gone.signal]) : this.#gone.signal;
    const show = (/** @type {import("./sdk.d.ts").ImageBlock[]} */ images) =>
      shownImages(this.#apart, images, {
        model: this.#session?.model,
        autoResizeImages: this.#made().settingsManager.getImageAutoResize(),
        signal: ends,
      });
    return this.#calls.run({ session: this.#request.session, ...call }, ends, show);
  }

  /** @param {RequestOf["prompt"]} request @returns {Promise<object>} */
  prompt({ turn: number, text }) {
    if (this.#stage !== "ready" || this.#turn) throw new Failure("order");
    const session = this.#opened();
    /** @type {Turn} */
    const turn = { turn: number, started: false, aborted: false, messages: new Outcomes(), done: Promise.resolve() };
    this.#turn = turn;
    const preflight = new Promise((resolve) => {
      let answered = false;
      const answer = (/** @type {string} */ word) => {
        answered = true;
        turn.started = word === "started";
        resolve({ preflight: word });
      };
      const preflightResult = (/** @type {string} */ word) => {
        // Without this, a disposed session would still send its request.
        if (this.#gone.signal.aborted) throw new Error("disposed");
        const late = answered;
        if (!late) answer(WORDS.includes(word) ? word : "rejected");
        // The SDK forgets an abort that came before the run. A run that the server does not know of must not go on either.
        if (late || turn.aborted || !WORDS.includes(word)) void this.#abortRun(session);
      };
      turn.done = session.prompt(text, { expandPromptTemplates: false, source: "rpc", preflightResult }).then(
        () => this.#end(turn),
        () => this.#end(turn),
      );
      void turn.done.then(() => answered || answer("rejected"));
    });
    return this.#answered(preflight);
  }

  /** @param {Turn} turn */
  #end(turn) {
    this.#turn = undefined;
    if (turn.started) this.#emit({ event: "settled", turn: turn.turn, aborted: turn.aborted, ...turn.messages.outcome });
  }

  /** @returns {Promise<object>} */
  abort() {
    if (this.#stage !== "ready") throw new Failure("order");
    const session = this.#opened();
    const turn = this.#turn;
    if (turn) turn.aborted = true;
    return this.#answered(Promise.all([session.abort(), turn?.done]).then(() => ({})));
  }

  /** @param {AgentSession} session */
  async #abortRun(session) {
    await session.abort().catch(() => {});
  }

  /**
   * Ends the session once, at any stage. First it answers all requests that are still open.
   * @returns {Promise<void>}
   */
  dispose() {
    this.#released ??= this.#release();
    return this.#released;
  }

  async #release() {
    this.#gone.abort();
    const commandsEnded = this.#commands?.end();
    if (this.#turn) this.#turn.aborted = true;
    for (const fail of this.#unanswered) fail();
    await nextTick();
    await this.#opening?.catch(() => {});
    const turn = this.#turn;
    if (this.#runtime) await this.#runtime.dispose();
    else if (this.#session) {
      // Not awaited: it only stops a retry, and `dispose` ends the run.
      void this.#abortRun(this.#session);
      this.#session.dispose();
    }
    // A turn that has not started never will, and a hook that hangs may be the reason.
    if (turn?.started) await turn.done;
    await commandsEnded;
    await this.#outputs.remove();
    // A refresh may have used up a refresh token, and the new one may not be written yet.
    await this.#services?.modelRuntime.settleCredentialWrites();
    this.route.close();
  }

  /** @param {AgentEvent} event */
  #observe(event) {
    const turn = this.#turn?.started ? this.#turn : undefined;
    if (!turn) this.#observeForeignRun(event);
    else if (event.type === "message_end" && event.message.role === "assistant") {
      turn.messages.ended(event.message);
      this.#emit({ event: "activity", turn: turn.turn });
    } else if (event.type === "tool_execution_end") this.#emit({ event: "activity", turn: turn.turn });
    else if (event.type === "auto_retry_start" || (event.type === "compaction_end" && event.willRetry === true))
      turn.messages.takenBack();
  }

  /** @param {AgentEvent} event */
  #observeForeignRun(event) {
    const active = event.type === "agent_start" || (this.#foreignRun && event.type !== "agent_settled");
    if (active === this.#foreignRun) return;
    this.#foreignRun = active;
    this.#emit({ event: "run", active });
  }

  /** @param {object} event */
  #emit(event) {
    if (!this.#gone.signal.aborted) this.#send({ ...event, session: this.#request.session });
  }

  /**
   * Runs one step of the creation, which leads from one stage to the next.
   * @param {Stage} from
   * @param {Stage} to
   * @param {() => Promise<object>} run
   * @returns {Promise<object>}
   */
  #step(from, to, run) {
    if (this.#stage !== from || this.#busy) throw new Failure("order");
    this.#busy = true;
    const done = run().then((result) => {
      this.#busy = false;
      this.#stage = to;
      return result;
    });
    return this.#answered(done);
  }

  /**
   * The result, or a failure as soon as the session is disposed of: each request is answered before that, and none after it.
   * @template T
   * @param {Promise<T>} result
   * @returns {Promise<T>}
   */
  #answered(result) {
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Failure("failed"));
      this.#unanswered.add(fail);
      void result.then(resolve, reject).finally(() => this.#unanswered.delete(fail));
    });
  }

  #made() {
    if (!this.#services) throw new Failure("order");
    return this.#services;
  }

  #opened() {
    if (!this.#session) throw new Failure("order");
    return this.#session;
  }
}

/** @param {unknown} name extensions may register anything; what is no usable name becomes one that is refused */
function toolName(name) {
  return typeof name === "string" ? name.toWellFormed() : "";
}
