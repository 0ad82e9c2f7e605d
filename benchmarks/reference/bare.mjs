// Turns of the bare SDK, without any server: `node bare.mjs SDK TURNS` prints what they took, in milliseconds, as JSON.

const began = performance.now();
const { configuration, prompt, startSession } = await import("./embedded.mjs");
const since = (start) => performance.now() - start;

const loaded = since(began);
const cwd = Object.values(configuration.workspaces)[0];
const profile = Object.values(configuration.executionProfiles)[0];
const session = await startSession(cwd, profile);
const ready = since(began);
const turns = [];
for (let turn = 0; turn < Number(process.argv[3]); turn++) {
  const start = performance.now();
  if ((await prompt(session, "hello", () => {})) !== "done") process.exit(1);
  turns.push(since(start));
}
process.stdout.write(`${JSON.stringify({ loaded, ready, turns })}\n`, () => process.exit(0));
