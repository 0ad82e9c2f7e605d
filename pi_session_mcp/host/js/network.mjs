// How requests of this process reach their providers: through the proxy of the environment or of Pi's settings. Also how
// long a silent connection lives. Pi's command line sets up the same, but the SDK as a library does not.
// Source: `dist/core/http-dispatcher.js` and its two calls in `dist/main.js` of 1.6.0.

import { AsyncLocalStorage } from "node:async_hooks";
import { EventEmitter } from "node:events";
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { Failure } from "./errors.mjs";

/** @typedef {import("./sdk.d.ts").Undici} Undici */
/** @typedef {import("./sdk.d.ts").Dispatcher} Dispatcher */
/** @typedef {{ http: string, https: string, noProxy: string }} Proxies an empty address means a direct connection */

/** One attempt to connect, before an address of the other family is tried: Pi's value. Node's is too short for slow routes. */
const ADDRESS_FAMILY_ATTEMPT_MS = 2000;
/** The schemes of proxies that undici can use. In an address without a scheme it would take the name for one. */
const SCHEMES = ["http:", "https:", "socks:", "socks5:"];

/** @param {string} address */
export function isProxyAddress(address) {
  try {
    const { protocol, hostname, username, password, pathname, search, hash } = new URL(address);
    decodeURIComponent(username + password);
    if (protocol.startsWith("http") && pathname + search + hash !== "/") return false; // Undici takes no more than a host.
    return SCHEMES.includes(protocol) && hostname !== "";
  } catch {
    return false;
  }
}

/** @param {Pick<Proxies, "http" | "https">} proxies what cannot be used is refused: a direct connection is not meant */
export function areUsable({ http, https }) {
  return [http, https].every((address) => address === "" || isProxyAddress(address));
}

/**
 * Pi's precedence: variables come before Pi's setting, small letters come before capitals, and an empty variable counts.
 * `https` falls back to what `http` has. `ALL_PROXY` comes last. We obey it, because a person who has set only this one
 * expects no direct connection.
 * @param {Record<string, string | undefined>} environ
 * @param {string | undefined} setting `httpProxy` of Pi's settings
 * @returns {Proxies}
 */
export function proxiesOf(environ, setting) {
  const configured = setting?.trim() || undefined;
  const all = environ.all_proxy ?? environ.ALL_PROXY ?? "";
  const http = environ.http_proxy ?? environ.HTTP_PROXY ?? configured ?? all;
  const https = (environ.https_proxy ?? environ.HTTPS_PROXY ?? configured) || http;
  return { http, https, noProxy: environ.no_proxy ?? environ.NO_PROXY ?? "" };
}

/**
 * The same as variables, for the providers that do not use `fetch` (Bedrock). They look here first, and then into the
 * environment of the process. That has no session's settings, since commands would inherit them.
 * @param {Proxies} proxies
 * @returns {Record<string, string>}
 */
export function proxyVariables({ http, https }) {
  return { ...(http && { http_proxy: http }), ...(https && { https_proxy: https }) };
}

/** A dispatcher that sessions with equal settings share, so that they share its connections. */
class Shared {
  users = 0;

  /** @param {Dispatcher} dispatcher */
  constructor(dispatcher) {
    this.dispatcher = dispatcher;
  }
}

/** How the requests of one session leave this process. */
export class Route {
  #network;
  /** @type {string | undefined} */
  #key;
  #closed = false;

  /** @param {Network} network */
  constructor(network) {
    this.#network = network;
  }

  /**
   * Everything that starts in `work` sends its requests this way, also long afterwards.
   * @template T
   * @param {() => T} work
   * @returns {T}
   */
  run(work) {
    return this.#network.current.run(this, work);
  }

  /**
   * Takes the proxies if they can be used. Otherwise it throws `Failure("proxy")`, instead of connecting directly.
   * @param {Proxies} proxies
   * @param {number} idleTimeoutMs 0 for no limit
   */
  take(proxies, idleTimeoutMs) {
    this.#key = this.#network.share(proxies, idleTimeoutMs);
  }

  /** What takes the requests. Throws when the session is over, because Pi may still send some. */
  get dispatcher() {
    if (this.#closed) throw new Error("This session is over.");
    return this.#key === undefined ? undefined : this.#network.shared(this.#key);
  }

  /** Ends sending. The connections end once no request uses them and no other session shares them. */
  close() {
    this.#closed = true;
    if (this.#key !== undefined) this.#network.release(this.#key);
    this.#key = undefined;
  }
}

/** All ways of one host. */
export class Network {
  /** @type {AsyncLocalStorage<Route>} */
  current = new AsyncLocalStorage();
  /** @type {Undici | undefined} */
  #undici;
  /** @type {Map<string, Shared>} */
  #shared = new Map();
  /** That of the session that was loaded last. @type {string | undefined} */
  #latest;

  /**
   * Takes over every `fetch` and `WebSocket` of this process, once.
   * @param {string} sdkEntry the SDK brings the client that its own program uses
   */
  install(sdkEntry) {
    if (this.#undici) return;
    /** @type {Undici} */
    const undici = createRequire(realpathSync(sdkEntry))("undici");
    undici.setGlobalDispatcher(this.#choosing(undici));
    // Node's own fetch may not understand another undici's dispatcher (Node 26.0 leaves answers compressed).
    undici.install();
    this.#undici = undici;
  }

  /**
   * Hands each request to its session's dispatcher. A request of no session, perhaps from an extension's timer, goes the
   * way of the latest session. Before there is a session, no request is sent.
   * @param {Undici} undici
   * @returns {Dispatcher}
   */
  #choosing(undici) {
    const choose = () => this.current.getStore()?.dispatcher ?? (this.#latest && this.shared(this.#latest));
    return new (class extends undici.Dispatcher {
      /** @type {Dispatcher["dispatch"]} */
      dispatch(options, handler) {
        const dispatcher = choose();
        if (!dispatcher) throw new Error("There is no session that this request could belong to.");
        return dispatcher.dispatch(options, handler);
      }
      async close() {}
      async destroy() {}
    })();
  }

  /**
   * @param {Proxies} proxies
   * @param {number} idleTimeoutMs
   * @returns {string} the key of what is shared, to be released
   */
  share(proxies, idleTimeoutMs) {
    const key = JSON.stringify([proxies, idleTimeoutMs]);
    if (!this.#shared.has(key)) this.#shared.set(key, new Shared(this.#dispatcher(proxies, idleTimeoutMs)));
    this.#retain(key);
    if (this.#latest !== key) {
      const before = this.#latest;
      this.#latest = key;
      this.#retain(key);
      if (before !== undefined) this.release(before);
    }
    return key;
  }

  /** @param {string} key */
  shared(key) {
    return this.#shared.get(key)?.dispatcher;
  }

  /** @param {string} key */
  release(key) {
    const shared = this.#shared.get(key);
    if (!shared || --shared.users > 0) return;
    this.#shared.delete(key);
    void shared.dispatcher.close();
  }

  /** @param {string} key */
  #retain(key) {
    const shared = this.#shared.get(key);
    if (shared) shared.users++;
  }

  /**
   * @param {Proxies} proxies
   * @param {number} idleTimeoutMs
   * @returns {Dispatcher}
   */
  #dispatcher({ http, https, noProxy }, idleTimeoutMs) {
    const undici = this.#undici;
    if (!undici) throw new Failure("order");
    if (!areUsable({ http, https })) throw new Failure("proxy");
    return quiet(
      new undici.EnvHttpProxyAgent({
        httpProxy: http,
        httpsProxy: https,
        noProxy,
        allowH2: false,
        proxyTunnel: true,
        headersTimeout: idleTimeoutMs,
        bodyTimeout: idleTimeoutMs,
        connect: { autoSelectFamilyAttemptTimeout: ADDRESS_FAMILY_ATTEMPT_MS },
        ...quietConnections(undici),
      }),
    );
  }
}

/** @param {Undici} undici */
function quietConnections(undici) {
  const client = (/** @type {unknown} */ origin, /** @type {object} */ options) => quiet(new undici.Client(origin, options));
  const factory = (/** @type {unknown} */ origin, /** @type {{ connections?: number }} */ options) =>
    options.connections === 1 ? client(origin, options) : quiet(new undici.Pool(origin, { ...options, factory: client }));
  return { clientFactory: client, factory };
}

/**
 * When a body breaks off, undici may also emit an internal error. The reader of the body learns of it, and that is enough.
 * @template T
 * @param {T} dispatcher
 * @returns {T}
 */
function quiet(dispatcher) {
  if (dispatcher instanceof EventEmitter) EventEmitter.prototype.on.call(dispatcher, "error", () => {});
  return dispatcher;
}
