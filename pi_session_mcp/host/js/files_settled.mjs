// The SDK guards `auth.json` and `models-store.json` with lock directories, which it makes and removes asynchronously and
// also in the background. One that is left behind stops every Pi of the user for half a minute. The lock library removes
// what it holds as the process exits, but it knows nothing of a directory that is only just being made or removed.

import { setTimeout as sleep } from "node:timers/promises";

const activeResources = process.getActiveResourcesInfo.bind(process);

/** Resolves when no file operation of this process is under way. Node has no event for that. */
export async function filesAreSettled() {
  do await sleep(1);
  while (activeResources().some((name) => name.startsWith("FSReq")));
}
