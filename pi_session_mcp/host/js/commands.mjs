// The commands of one session's `bash`. Each runs below a small program of its own (`keeper/session_command.py`), which
// owns what the command leaves in the background. That goes on, and ends with the session or with this process.
//
// It does the same as Pi's own runner (1.6.0, dist/core/tools/bash.js, dist/utils/child-process.js): the same errors, the
// same limits of a timeout, and the same wait for output that comes after a command's end.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { unlessLost } from "./lost_output.mjs";

/** @typedef {import("./sdk.d.ts").Execution} Execution */
/** @typedef {import("node:child_process").ChildProcess} ChildProcess */
/**
 * What is known of a command beside its result. `late`: its shell ended in time, and only what it left behind was waited
 * for. `over`: is told how the command ended, with "" when it ended well.
 * @typedef {{ late?: { exitCode: number, afterSeconds: number }, over?: (ending: string) => void }} Seen
 */

const OWNER = join(import.meta.dirname, "..", "..", "keeper", "session_command.py");
const TEXT = "PI_SESSION_MCP_COMMAND";
const LIFELINE = 3;
const REPORT = 4;
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
/** Once a command has ended, its output counts as ended when nothing came for this long. */
const IDLE_MS = 100;
const KILLED = 128 + 9;
/** How many commands of a session may still run or have something running: each has a process of its own. */
export const MAX_OWNERS = 64;
/** The end of a session waits this long until what its commands have started is gone. It is killed within 0.1 s. */
export const END_WITHIN_MS = 2000;

export class Commands {
  #python;
  /** @type {Set<ChildProcess>} */
  #owners = new Set();
  #ended = false;

  /** @param {string} python the program that runs the owners */
  constructor(python) {
    this.#python = python;
  }

  /**
   * Runs one command as the SDK's `bash` asks for it.
   * @param {string} command
   * @param {string} cwd
   * @param {Execution} execution
   * @param {Seen} seen
   * @returns {Promise<{ exitCode: number }>}
   */
  async run(command, cwd, { onData, signal, timeout, env }, seen = {}) {
    const limitMs = limitOf(timeout);
    if (signal?.aborted || this.#ended) throw new Error("aborted");
    if (command.includes("\0")) throw new Error("A command must not hold a zero byte.");
    await access(cwd).catch(() => {
      throw new Error(`Working directory does not exist: ${cwd}\nCannot execute bash commands.`);
    });
    if (this.#ended) throw new Error("aborted"); // what starts from now on would never be ended
    if (this.#owners.size >= MAX_OWNERS)
      throw new Error("Too many commands of this session still run or have left something running. End some of it.");
    const running = new Running(this.#spawn(command, cwd, env ?? process.env), onData);
    const kill = () => running.kill();
    const timer = limitMs === undefined ? undefined : setTimeout(() => running.kill({ timedOut: true }), limitMs);
    signal?.addEventListener("abort", kill, { once: true });
    if (signal?.aborted) kill();
    try {
      const exitCode = await running.over;
      if (signal?.aborted || this.#ended) {
        seen.over?.("Command aborted");
        throw new Error("aborted");
      }
      if (running.timedOut) {
        seen.late = running.late;
        seen.over?.(`Command timed out after ${timeout} seconds`);
        throw new Error(`timeout:${timeout}`);
      }
      seen.over?.(exitCode === 0 ? "" : `Command exited with code ${exitCode}`);
      return { exitCode };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", kill);
    }
  }

  /**
   * @param {string} command
   * @param {string} cwd
   * @param {NodeJS.ProcessEnv} env
   */
  #spawn(command, cwd, env) {
    const shell = existsSync("/bin/bash") ? "/bin/bash" : "bash";
    const owner = spawn(this.#python, ["-I", "-S", OWNER, shell, "-c"], {
      cwd,
      detached: true,
      env: { ...env, [TEXT]: command },
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
    });
    this.#owners.add(owner);
    for (const event of ["exit", "error"]) owner.once(event, () => this.#owners.delete(owner));
    return owner;
  }

  /** Ends all that the session's commands have started, and refuses new commands. Resolves when all of it is gone. */
  async end() {
    this.#ended = true;
    const left = [...this.#owners];
    const gone = left.map((owner) => new Promise((resolve) => owner.once("exit", resolve).once("error", resolve)));
    for (const owner of left) {
      owner.stdio[LIFELINE]?.destroy();
      owner.kill("SIGCONT"); // an owner that was stopped could not see that
    }
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, END_WITHIN_MS)));
    await Promise.race([Promise.all(gone), late]);
    clearTimeout(timer);
  }
}

/**
 * Pi's `bash`. Its commands have owners if there is a `commands`.
 * @param {import("./sdk.d.ts").Sdk} sdk
 * @param {string} cwd
 * @param {Commands | undefined} commands
 * @returns {import("./sdk.d.ts").ToolDefinition}
 */
export function bashTool(sdk, cwd, commands) {
  if (!commands) return sdk.createBashToolDefinition(cwd);
  const made = (/** @type {Seen} */ seen) => {
    const exec = (/** @type {string} */ command, /** @type {string} */ place, /** @type {Execution} */ execution) =>
      commands.run(command, place, execution, seen);
    return sdk.createBashToolDefinition(cwd, { operations: { exec } });
  };
  return {
    ...made({}),
    async execute(callId, parameters, signal, onUpdate, context) {
      /** @type {Seen} */
      const seen = {};
      /** @type {Promise<string>} */
      const over = new Promise((resolve) => (seen.over = resolve));
      const tool = made(seen);
      const call = (/** @type {unknown} */ update) => tool.execute(callId, parameters, signal, update, context);
      return unlessLost(call, over, onUpdate).catch((error) => {
        throw explained(error, seen);
      });
    },
  };
}

/**
 * What Pi's own runner adds to its sentence about a timeout.
 * @param {unknown} error
 * @param {Seen} seen
 */
function explained(error, { late }) {
  if (!late || !(error instanceof Error)) return error;
  return new Error(
    `${error.message}. The shell exited with code ${late.exitCode} after ${late.afterSeconds} seconds, but background ` +
      "processes it started kept writing output until the timeout.",
  );
}

/** One command, from its start until it and its output have ended. */
class Running {
  timedOut = false;
  /** @type {{ exitCode: number, afterSeconds: number } | undefined} */
  late;
  #owner;
  #startedAt = performance.now();
  #report = "";
  /** The command's process group. @type {number | undefined} */
  #group;
  /** @type {number | undefined} */
  #exitCode;
  #exitedAt = 0;
  #open = 2;
  #killed = false;
  /** @type {NodeJS.Timeout | undefined} */
  #idle;
  /** @type {(code: number) => void} */
  #resolve = () => {};
  /** @type {(error: Error) => void} */
  #reject = () => {};
  /** Its exit code, once what it printed was handed on. @type {Promise<number>} */
  over;

  /**
   * @param {ChildProcess} owner
   * @param {(chunk: Buffer) => void} onData
   */
  constructor(owner, onData) {
    this.#owner = owner;
    this.over = new Promise((resolve, reject) => ([this.#resolve, this.#reject] = [resolve, reject]));
    const failed = () => this.#fail();
    owner.once("error", failed);
    for (const stream of owner.stdio) stream?.on("error", () => {});
    for (const stream of [owner.stdout, owner.stderr]) {
      stream?.on("data", (chunk) => {
        onData(chunk);
        if (this.#idle) this.#await();
      });
      stream?.once("close", () => this.#closed());
    }
    const report = /** @type {import("node:stream").Readable | null} */ (owner.stdio[REPORT]);
    report?.on("data", (chunk) => this.#hear(String(chunk)));
    // An owner that was killed has not said how its command ended, and there is no other source.
    report?.once("close", () => {
      if (this.#exitCode === undefined) this.kill();
      this.#exited(KILLED);
    });
  }

  /** Kills the command's process group, as Pi does. A process that has left the group goes on until the session ends. */
  kill({ timedOut = false } = {}) {
    if (timedOut) {
      this.timedOut = true;
      const afterSeconds = Math.round((this.#exitedAt - this.#startedAt) / 100) / 10;
      if (this.#exitCode !== undefined) this.late = { exitCode: this.#exitCode, afterSeconds };
    }
    this.#killed = true;
    this.#owner.kill("SIGCONT"); // or it could not say that the command has ended
    if (this.#group === undefined) return;
    // On macOS a killed child could wake its shell before the shell is killed. A shell that is stopped starts nothing more.
    for (const signal of /** @type {const} */ (["SIGSTOP", "SIGKILL"])) {
      try {
        process.kill(-this.#group, signal);
      } catch {
        return; // no process of the group is left
      }
    }
  }

  /** @param {string} said */
  #hear(said) {
    const lines = (this.#report + said).split("\n");
    this.#report = lines.pop() ?? "";
    for (const line of lines) {
      const [word, number] = line.split(" ");
      if (word === "started") this.#group = Number(number);
      if (word === "started" && this.#killed) this.kill();
      if (word === "exited") this.#exited(Number(number));
      if (word === "failed") this.#fail();
    }
  }

  /** @param {number} code */
  #exited(code) {
    if (this.#exitCode !== undefined) return;
    this.#exitCode = code;
    this.#exitedAt = performance.now();
    if (this.#open === 0) this.#settle();
    else this.#await();
  }

  #closed() {
    this.#open -= 1;
    if (this.#open === 0 && this.#exitCode !== undefined) this.#settle();
  }

  /** A process that was left behind may keep the pipes open for ever, so we stop waiting once they are silent for a while. */
  #await() {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#settle(), IDLE_MS);
  }

  #settle() {
    clearTimeout(this.#idle);
    this.#owner.stdout?.destroy();
    this.#owner.stderr?.destroy();
    this.#resolve(this.#exitCode ?? KILLED);
  }

  #fail() {
    this.#reject(new Error("The command could not be started."));
    this.#owner.stdout?.destroy();
    this.#owner.stderr?.destroy();
  }
}

/**
 * @param {number | undefined} timeout seconds
 * @returns {number | undefined} milliseconds
 */
function limitOf(timeout) {
  if (timeout === undefined) return undefined;
  if (!Number.isFinite(timeout) || timeout <= 0)
    throw new Error("Invalid timeout: must be a finite number of seconds");
  if (timeout * 1000 > MAX_TIMEOUT_MS)
    throw new Error(`Invalid timeout: maximum is ${MAX_TIMEOUT_MS / 1000} seconds`);
  return timeout * 1000;
}
