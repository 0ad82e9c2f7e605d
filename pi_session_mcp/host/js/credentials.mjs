// Pi's stored credentials, only looked at: nothing is locked, written, renewed or run.

/** @typedef {{ isCommandConfigValue(text: string): boolean, resolveConfigValue(text: string, env?: object): string | undefined }} Values */

/**
 * How Pi reads a key that stands for something else (`$NAME`, `!command`). The SDK does not publish this module, so it may
 * be missing. Then keys are taken as they are written.
 * @param {string} entry the SDK's
 * @returns {Promise<Values | undefined>}
 */
export async function valuesOf(entry) {
  const { pathToFileURL } = await import("node:url");
  return import(new URL("core/resolve-config-value.js", pathToFileURL(entry)).href).catch(() => undefined);
}

/** Stands in for Pi's `AuthStorage`. It gives the same answers, as far as that changes and runs nothing. */
export class SeenCredentials {
  #stored;
  #values;
  /** Providers whose login would have to be renewed to be used. @type {Set<string>} */
  renewals = new Set();

  /**
   * @param {Record<string, any>} stored what `auth.json` holds
   * @param {Values | undefined} values
   */
  constructor(stored, values) {
    this.#stored = stored;
    this.#values = values;
  }

  /** @param {string} provider */
  async read(provider) {
    const credential = this.#stored[provider];
    if (credential?.type !== "api_key" || credential.key === undefined || this.hasCommand(provider)) return credential;
    if (typeof credential.key !== "string") throw new Error("Pi reads no such key");
    const resolve = this.#values?.resolveConfigValue;
    return resolve ? { ...credential, key: resolve(credential.key, credential.env) } : credential;
  }

  /** @param {string} provider whether only a command would tell the key */
  hasCommand(provider) {
    const key = this.#stored[provider]?.key;
    return typeof key === "string" && key.startsWith("!");
  }

  async list() {
    return Object.entries(this.#stored).map(([providerId, credential]) => ({ providerId, type: credential?.type }));
  }

  /** @param {string} provider @returns {Promise<never>} */
  async modify(provider) {
    this.renewals.add(provider);
    throw new Error("nothing is changed");
  }

  /** @returns {Promise<never>} */
  async delete() {
    throw new Error("nothing is changed");
  }
}
