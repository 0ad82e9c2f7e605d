// Which files are images.

/** @typedef {import("./guard.mjs").Guard} Guard */

/**
 * @param {Guard} guard
 * @param {string} path
 * @returns {Promise<string | undefined>}
 */
export async function imageType(guard, path) {
  const handle = await guard.openToRead(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4100), 0, 4100, 0);
    return imageTypeOf(buffer.subarray(0, bytesRead));
  } finally {
    await handle.close();
  }
}

/**
 * The types that the SDK's `read` hands to a model as an image. Later, while it processes the image, it decides more finely
 * (animated PNG, CMYK JPEG), and says so if it cannot process one.
 * @param {Buffer} start
 */
function imageTypeOf(start) {
  const ascii = start.subarray(0, 16).toString("latin1");
  if (ascii.startsWith("\xff\xd8\xff")) return start[3] === 0xf7 ? undefined : "image/jpeg";
  if (ascii.startsWith("\x89PNG\r\n\x1a\n")) return start.includes("acTL") ? undefined : "image/png";
  if (ascii.startsWith("GIF87a") || ascii.startsWith("GIF89a")) return "image/gif";
  if (ascii.startsWith("RIFF") && ascii.startsWith("WEBP", 8)) return "image/webp";
  if (ascii.startsWith("BM") && start.length >= 30 && start.readUInt32LE(14) <= 124 && start.readUInt16LE(26) === 1)
    return "image/bmp";
  return undefined;
}
