// The SDK guards `auth.json` and `models-store.json` with lock directories, which it makes and removes asynchronously, also
// in the background. A lock directory that is left behind stops every Pi of the user for half a minute. When the process
// exits, the lock library removes what it holds, but not a directory that is just being made or removed.

import { setTimeout as sleep } from "node:timers/promises";

const activeResources = process.getActiveResourcesInfo.bind(process);

/** Resolves when no file operation of this process is under way. Node has no event for that. */
export async function filesAreSettled() {
  do await sleep(1);
  while (activeResources().some((name) => name.startsWith("FSReq")));
}
