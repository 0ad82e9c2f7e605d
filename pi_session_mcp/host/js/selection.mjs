// Whether a model runtime has what a profile selects. A session's creation and the doctor ask the same questions.

import { Failure } from "./errors.mjs";

/** @typedef {import("./sdk.d.ts").ModelRuntime} ModelRuntime */
/** @typedef {import("./sdk.d.ts").CheckName} CheckName */

/**
 * The answer to one question. Throws when there is none.
 * @param {ModelRuntime} modelRuntime
 * @param {CheckName} step
 * @param {Pick<import("./sdk.d.ts").Selection, "provider" | "model">} selection
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>}
 */
export async function isFound(modelRuntime, step, { provider, model }, signal) {
  const known = modelRuntime.getModel(provider, model);
  switch (step) {
    case "provider":
      return modelRuntime.getProvider(provider) !== undefined;
    case "model":
      return known !== undefined;
    case "check_auth":
      if ((await modelRuntime.checkAuth(provider, { signal })) !== undefined) return true;
      await refuseUnusable(modelRuntime, provider, known, signal);
      return false;
    case "get_auth":
      // The result holds the key, so it must not leave this line.
      return known !== undefined && (await modelRuntime.getAuth(known, { signal })) !== undefined;
    case "availability": {
      const available = await modelRuntime.getAvailable(provider, { signal });
      return available.some((one) => one.provider === provider && one.id === model);
    }
  }
}

/**
 * Throws when there is a credential that cannot be used: its command fails, its variable is not set, or its login is no
 * longer valid. The SDK gives the same answer as for a credential that does not exist.
 * @param {ModelRuntime} modelRuntime
 * @param {string} provider
 * @param {import("./sdk.d.ts").Model | undefined} model
 * @param {AbortSignal} signal
 */
async function refuseUnusable(modelRuntime, provider, model, signal) {
  const stored = await modelRuntime.listCredentials({ signal });
  if (stored.some(({ providerId }) => providerId === provider)) throw new Failure("failed");
  if (model) await modelRuntime.getAuth(model, { signal });
}
