// A Pi host: holds the Pi SDK and its sessions, and does what the server asks for over the channel, descriptor 3.
// `docs/host-protocol.md` explains the frames.

import module from "node:module";
import { Socket } from "node:net";
import { isAbsolute } from "node:path";
import { Apart } from "./apart.mjs";
import { Calls } from "./calls.mjs";
import { Failure, wordsFor } from "./errors.mjs";
import { filesAreSettled } from "./files_settled.mjs";
import { BadFrame, decodeFrame, encodeFrame, LineReader, PROTOCOL_VERSION } from "./frames.mjs";
import { Network, Route } from "./network.mjs";
import { noteUncaught } from "./lost_output.mjs";
import { Rest } from "./rest.mjs";
import { greetingOf, loadSdk } from "./sdk.mjs";
import { Session } from "./session.mjs";

/** @typedef {import("./sdk.d.ts").Request} Request */
/** @typedef {import("./sdk.d.ts").RequestOf} RequestOf */

const CHANNEL_FD = 3;
/** The end of this process, whatever its sessions do: sooner than its keeper would kill it. */
const SHUTDOWN_MS = 3000;
const EXIT_OK = 0;
const EXIT_PROTOCOL = 3;

const exit = process.exit.bind(process);

/**
 * @param {Session} session
 * @param {RequestOf["check" | "open" | "bind" | "prompt" | "abort"]} request
 * @returns {object | Promise<object>}
 */
function perform(session, request) {
  switch (request.op) {
    case "check":
      return session.check(request);
    case "open":
      return session.open(request);
    case "bind":
      return session.bind();
    case "prompt":
      return session.prompt(request);
    case "abort":
      return session.abort();
  }
}

class Host {
  #channel = new Socket({ fd: CHANNEL_FD, readable: true, writable: true });
  #lines = new LineReader();
  #calls = new Calls((frame) => this.#send(frame));
  /** @type {Map<number, Session>} */
  #sessions = new Map();
  /** @type {Set<number>} */
  #usedIds = new Set();
  /** @type {import("./sdk.d.ts").Sdk | undefined} */
  #sdk;
  #entry = "";
  #network = new Network();
  #rest = new Rest();
  /** @type {string | undefined} */
  #python;
  /** @type {Apart | undefined} */
  #apart;
  #greeted = false;
  #ending = false;

  listen() {
    this.#channel.on("data", (chunk) => this.#receive(chunk));
    for (const event of ["end", "error", "close"]) this.#channel.on(event, () => void this.end(EXIT_OK));
  }

  /** @param {Buffer} chunk */
  #receive(chunk) {
    try {
      for (const line of this.#lines.push(chunk)) this.#take(decodeFrame(line));
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.#channel.destroy();
      void this.end(EXIT_PROTOCOL);
    }
  }

  /** @param {Request | import("./sdk.d.ts").Done} frame */
  #take(frame) {
    if ("done" in frame) this.#calls.settle(frame);
    else void this.#rest.after(this.#answer(frame));
  }

  /** @param {Request} request */
  async #answer(request) {
    let answer;
    try {
      answer = { re: request.id, ok: true, result: await this.#perform(request) };
    } catch (error) {
      answer = { re: request.id, ok: false, ...wordsFor(error) };
    }
    this.#send(answer);
  }

  /** @param {object} frame */
  #send(frame) {
    this.#rest.disturb();
    if (!this.#ending) this.#channel.write(encodeFrame(frame));
  }

  /**
   * @param {Request} request
   * @returns {object | Promise<object>}
   */
  #perform(request) {
    switch (request.op) {
      case "ping":
        return {};
      case "hello":
        return this.#hello(request);
      case "load":
        return this.#load(request);
      case "dispose":
        return this.#dispose(request.session);
      default: {
        const session = this.#session(request.session);
        return session.route.run(() => perform(session, request));
      }
    }
  }

  /** @param {RequestOf["hello"]} request */
  async #hello({ sdk: entry, bundle, compileCache, python }) {
    if (this.#greeted) throw new Failure("order");
    if (![entry, bundle ?? entry, python ?? entry].every(isAbsolute)) throw new Failure("invalid");
    this.#greeted = true;
    this.#python = python ?? undefined;
    // By a call, because every child of ours would inherit the variable that does the same.
    if (compileCache) module.enableCompileCache(compileCache);
    const { sdk, whole } = await loadSdk(entry, bundle);
    this.#sdk = sdk;
    this.#entry = entry;
    this.#apart = new Apart(whole && bundle ? bundle : entry, compileCache);
    // Done while no request waits. If a session comes first, that has it done.
    setImmediate(() => {
      this.#network.install(entry);
      if (compileCache) module.flushCompileCache();
    });
    return { protocol: PROTOCOL_VERSION, ...greetingOf(sdk) };
  }

  /** @param {RequestOf["load"]} request */
  #load(request) {
    if (!this.#sdk || !this.#apart) throw new Failure("order");
    if (this.#usedIds.has(request.session)) throw new Failure("exists");
    this.#usedIds.add(request.session);
    this.#network.install(this.#entry);
    const route = new Route(this.#network);
    const given = { calls: this.#calls, route, python: this.#python, apart: this.#apart };
    const session = new Session(this.#sdk, request, (event) => this.#send(event), given);
    this.#sessions.set(request.session, session);
    return route.run(() => session.load());
  }

  /** @param {number} id */
  #session(id) {
    const session = this.#sessions.get(id);
    if (!session) throw new Failure("unknown_session");
    return session;
  }

  /** @param {number} id */
  async #dispose(id) {
    const session = this.#sessions.get(id);
    try {
      await session?.dispose();
    } finally {
      this.#sessions.delete(id);
    }
    return {};
  }

  /**
   * Disposes of every session, waits until file operations have ended, both within one bound, and exits.
   * @param {number} status
   */
  async end(status) {
    if (this.#ending) return;
    this.#ending = true;
    setTimeout(() => exit(status), SHUTDOWN_MS);
    await Promise.allSettled([...this.#sessions.values()].map((session) => session.dispose()));
    await filesAreSettled();
    exit(status);
  }
}

const host = new Host();
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => void host.end(EXIT_OK));
// An exception that an extension did not catch must not end the sessions of others.
process.on("uncaughtException", noteUncaught);
process.on("unhandledRejection", () => {});
process.exit = () => {
  throw new Error("process.exit is not available here");
};
host.listen();
