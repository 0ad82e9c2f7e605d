// Whether a model runtime has what a profile selects: the questions before a session's creation, and the doctor's.

/** @typedef {import("./sdk.d.ts").ModelRuntime} ModelRuntime */
/** @typedef {import("./sdk.d.ts").RequestOf["check"]} Check */

/**
 * The answer to one question. Throws when there is none.
 * @param {ModelRuntime} modelRuntime
 * @param {Pick<Check, "step" | "provider" | "model">} question
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>}
 */
export async function isFound(modelRuntime, { step, provider, model }, signal) {
  const known = modelRuntime.getModel(provider, model);
  switch (step) {
    case "provider":
      return modelRuntime.getProvider(provider) !== undefined;
    case "model":
      return known !== undefined;
    case "check_auth":
      return (await modelRuntime.checkAuth(provider, { signal })) !== undefined;
    case "get_auth":
      // What it resolves to holds the key, and goes no further than this line.
      return known !== undefined && (await modelRuntime.getAuth(known, { signal })) !== undefined;
    case "availability": {
      const available = await modelRuntime.getAvailable(provider, { signal });
      return available.some((one) => one.provider === provider && one.id === model);
    }
  }
}
