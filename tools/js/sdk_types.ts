// Compares what `sdk.d.ts` says of the Pi SDK with the SDK's own types, for `tsc`. A constant that does not compile names
// what differs. `tools/canary.py` says where `@earendil-works/pi-coding-agent` is.

import type * as pi from "@earendil-works/pi-coding-agent";
import type * as ours from "../../pi_session_mcp/host/js/sdk.d.ts";

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type Theirs = typeof pi;
type Message = Extract<Extract<pi.AgentSessionEvent, { type: "message_end" }>["message"], { role: "assistant" }>;
type PromptOptions = NonNullable<Parameters<pi.AgentSession["prompt"]>[1]>;
type Preflight = Parameters<NonNullable<PromptOptions["preflightResult"]>>[0];
type Event = Extract<pi.AgentSessionEvent, { type: ours.AgentEvent["type"] }>;
type Described = Omit<ours.PiTool, "execute" | "executionMode">;
type Known<Options, Name extends keyof Options> = Name;

// Whose members each mean something here: one more or one less differs.
export const stopReasons: Same<Message["stopReason"], ours.StopReason> = true;
export const preflightWords: Same<Preflight, ours.Preflight> = true;
export const thinkingLevels: Same<pi.AgentSession["thinkingLevel"], ours.ThinkingLevel> = true;
export const namesOfEvents: Same<Event["type"], ours.AgentEvent["type"]> = true;

// What is given to us has what we read of it.
export const events = (theirs: Exclude<Event, { type: "message_end" }>): ours.AgentEvent => theirs;
export const messages = (theirs: Message): ours.AssistantMessage => theirs;
export const session = (theirs: pi.AgentSession): Omit<ours.AgentSession, "subscribe"> => theirs;
export const sessionRuntime = (theirs: pi.AgentSessionRuntime): Pick<ours.SessionRuntime, "dispose"> => theirs;
export const services = (theirs: pi.AgentSessionServices): ours.Services => theirs;
export const modelRuntime = (theirs: pi.ModelRuntime): ours.ModelRuntime => theirs;
export const resourceLoader = (theirs: InstanceType<Theirs["DefaultResourceLoader"]>): ours.ResourceLoader => theirs;
export const tools = (theirs: ReturnType<Theirs["createReadToolDefinition"]>): Described => theirs;

// What we call exists, and takes what we give.
type Called = Omit<ours.Sdk, "ModelRuntime" | "DefaultResourceLoader" | `create${string}`>;
export const exported = (theirs: Theirs): Called => theirs;
export const functions: Same<Extract<keyof Theirs, keyof ours.Sdk>, keyof ours.Sdk> = true;
export type Stores = Known<NonNullable<Parameters<Theirs["ModelRuntime"]["create"]>[0]>, keyof ours.Stores>;
export type Prompt = Known<PromptOptions, keyof NonNullable<Parameters<ours.AgentSession["prompt"]>[1]>>;
