// Tools of external MCP servers, which our server runs: what Pi gets to see of their schemas and their images.

/** @typedef {import("./sdk.d.ts").Sdk} Sdk */
/** @typedef {import("./sdk.d.ts").ToolDefinition} ToolDefinition */
/** @typedef {import("./sdk.d.ts").ImageBlock} ImageBlock */
/** @typedef {{ images: ImageBlock[], autoResizeImages: boolean, model: any }} ScaledImages */

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"];

/**
 * The definitions of the tools that the server runs, one after the other.
 * @param {import("./sdk.d.ts").Grant[]} grants
 * @param {(call: { tool: string, arguments: string, given: string }, signal: AbortSignal | undefined) => Promise<object>} run
 * @returns {ToolDefinition[]}
 */
export function grantedTools(grants, run) {
  return grants.map(({ name, description, parameters }) => {
    let given = "{}";
    return {
      name,
      label: name,
      description,
      parameters: shallow(parameters),
      executionMode: "sequential",
      // Called right before the execution. Pi fits the arguments to the schema, and the server also judges what the model wrote.
      prepareArguments(value) {
        given = JSON.stringify(value ?? {});
        return value;
      },
      execute: (_callId, value, signal) => run({ tool: name, arguments: JSON.stringify(value ?? {}), given }, signal),
    };
  });
}

/**
 * The part of a schema by which Pi judges arguments: their names and types, and nothing below them. Sessions share this
 * host, and a whole foreign schema can take any time (patterns, references that double, `uniqueItems`). The server judges
 * by the whole one, in a process that it can end. The model still sees it: Pi writes a schema as JSON before it shows it.
 * @param {object} whole
 * @returns {object}
 */
function shallow(whole) {
  const { properties, required, additionalProperties, patternProperties } = /** @type {Record<string, any>} */ (whole);
  const closed = additionalProperties === false && patternProperties === undefined;
  /** @type {Record<string, any>} */
  const known = isRecord(properties) ? properties : {};
  const schema = {
    type: "object",
    properties: Object.fromEntries(Object.entries(known).map(([name, property]) => [name, typeOf(property)])),
    ...(Array.isArray(required) && { required: required.filter((name) => typeof name === "string") }),
    ...(closed && { additionalProperties: false }),
  };
  return Object.defineProperty(schema, "toJSON", { value: () => whole });
}

/** @param {unknown} property */
function typeOf(property) {
  const type = isRecord(property) ? property.type : undefined;
  const known = Array.isArray(type) ? type.length > 0 && type.every((one) => TYPES.includes(one)) : TYPES.includes(type);
  return known ? { type } : {};
}

/** @param {unknown} value @returns {value is Record<string, any>} */
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * What a model is shown of each image: the same as Pi's own `read` makes of such a file, and like there in a process of
 * its own. A model that takes no images gets nothing, and so does an image that cannot be read or costs too much.
 * @param {import("./apart.mjs").Apart} apart
 * @param {ImageBlock[]} images
 * @param {{ model: import("./sdk.d.ts").Model | undefined, autoResizeImages: boolean, signal: AbortSignal }} session
 * @returns {Promise<(ImageBlock | undefined | null)[]>}
 */
export async function shownImages(apart, images, { model, autoResizeImages, signal }) {
  if (images.length === 0 || !Array.isArray(model?.input) || !model.input.includes("image")) return [];
  const { id, input, inputLimits } = model;
  return apart.run({ images, autoResizeImages, model: { id, input, inputLimits } }, signal).catch(() => []);
}

/**
 * @param {Sdk} sdk
 * @param {ScaledImages} asked
 * @returns {Promise<(ImageBlock | undefined)[]>}
 */
export function scaledImages(sdk, { images, autoResizeImages, model }) {
  return Promise.all(images.map((image) => scaled(sdk, image, { autoResizeImages, model })));
}

/** @param {Sdk} sdk @param {ImageBlock} image @param {{ autoResizeImages: boolean, model: any }} means */
async function scaled(sdk, image, { autoResizeImages, model }) {
  const operations = {
    access: async () => {},
    readFile: async () => Buffer.from(image.data, "base64"),
    detectImageMimeType: async () => image.mimeType,
  };
  const read = sdk.createReadToolDefinition("/", { operations, autoResizeImages });
  const result = await read.execute("", { path: "/image" }, undefined, undefined, { cwd: "/", model }).catch(() => undefined);
  /** @type {any[]} */
  const content = /** @type {any} */ (result)?.content ?? [];
  const found = content.find(({ type }) => type === "image");
  return found && { type: "image", data: found.data, mimeType: found.mimeType };
}
