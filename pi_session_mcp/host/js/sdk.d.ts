// What we use of `@earendil-works/pi-coding-agent` (1.5.2 to 1.6.x), and the requests of `frames.mjs`, for `tsc`.

/** How the SDK says that a message has ended. `sessions/state.py` says what becomes of a turn then. */
export type StopReason = "pending" | "stop" | "length" | "toolUse" | "error" | "aborted" | "deferred";

/** What the SDK says of a prompt at once. */
export type Preflight = "started" | "queued" | "handled";

export type ThinkingLevel = "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

export interface AssistantMessage {
  role: string;
  stopReason?: unknown;
  content?: { type?: unknown; text?: string }[];
}

export type AgentEvent =
  | { type: "message_end"; message: AssistantMessage }
  | { type: "compaction_end"; willRetry?: unknown }
  | { type: "agent_start" | "agent_settled" | "tool_execution_end" | "auto_retry_start" };

export interface Model {
  provider: string;
  id: string;
  input?: unknown;
  inputLimits?: unknown;
}

/** Of undici, the HTTP client that the SDK brings, what `network.mjs` uses. */
export interface Dispatcher {
  dispatch(options: object, handler: object): boolean;
  close(): Promise<void>;
}

export interface Undici {
  Dispatcher: new () => Dispatcher;
  Client: new (origin: unknown, options: object) => Dispatcher;
  Pool: new (origin: unknown, options: object) => Dispatcher;
  EnvHttpProxyAgent: new (options: object) => Dispatcher;
  setGlobalDispatcher(dispatcher: Dispatcher): void;
  install(): void;
}

export interface ModelRuntime {
  streamSimple(model: object, context: object, options?: { env?: Record<string, string> }): unknown;
  getError(): string | undefined;
  getProvider(id: string): object | undefined;
  getModel(provider: string, model: string): Model | undefined;
  checkAuth(provider: string, options: { signal: AbortSignal }): Promise<object | undefined>;
  listCredentials(options: { signal: AbortSignal }): Promise<readonly { providerId: string }[]>;
  getAuth(model: Model, options: { signal: AbortSignal }): Promise<object | undefined>;
  getAvailable(provider: string, options: { signal: AbortSignal }): Promise<readonly Model[]>;
  settleCredentialWrites(): Promise<void>;
}

/** Where a model runtime has its credentials and catalogs from, instead of Pi's own files. */
export interface Stores {
  credentials: {
    read(provider: string): Promise<unknown>;
    list(): Promise<{ providerId: string; type: unknown }[]>;
    modify(provider: string): Promise<never>;
    delete(provider: string): Promise<never>;
  };
  modelsStore: {
    read(provider: string): Promise<undefined>;
    write(provider: string): Promise<void>;
    delete(provider: string): Promise<void>;
  };
}

export interface ResourceLoader {
  reload(): Promise<void>;
  getExtensions(): {
    extensions: { path: string; tools: Map<unknown, unknown> }[];
    errors: { path: string }[];
    runtime: { mcpServers: { list(): { extensionPath?: unknown }[] } };
  };
}

export interface SettingsManager {
  getImageAutoResize(): boolean;
}

export interface Services {
  cwd: string;
  agentDir: string;
  modelRuntime: ModelRuntime;
  settingsManager: SettingsManager;
  resourceLoader: ResourceLoader;
  diagnostics: { type: string; message?: unknown }[];
}

export interface AgentSession {
  model: Model | undefined;
  thinkingLevel: ThinkingLevel;
  getActiveToolNames(): string[];
  subscribe(listener: (event: AgentEvent) => void): () => void;
  prompt(
    text: string,
    options: { expandPromptTemplates: false; source: "rpc"; preflightResult: (word: Preflight) => void },
  ): Promise<void>;
  abort(): Promise<void>;
  dispose(): void;
  bindExtensions(bindings: { mode: "print"; onError: (error: { extensionPath?: unknown }) => void }): Promise<void>;
}

export interface SessionRuntime {
  session: AgentSession;
  dispose(): Promise<void>;
}

export type RuntimeFactory = (options: { sessionManager: object; sessionStartEvent?: object }) => Promise<object>;

/** What `bash` hands to who runs its commands; `timeout` in seconds. */
export interface Execution {
  onData(chunk: Buffer): void;
  signal?: AbortSignal;
  timeout?: number;
  env?: NodeJS.ProcessEnv;
}

export interface ToolDefinition {
  name: string;
  label?: string;
  description?: string;
  parameters?: object;
  executionMode?: "sequential";
  prepareArguments?(given: unknown): unknown;
  execute(
    callId: string,
    parameters: unknown,
    signal: AbortSignal | undefined,
    onUpdate: unknown,
    context: unknown,
  ): Promise<object>;
}

export interface ToolResult {
  content: { type: string; text?: string }[];
  details?: unknown;
  structuredContent?: unknown;
}

export interface PiTool extends ToolDefinition {
  execute(...call: Parameters<ToolDefinition["execute"]>): Promise<ToolResult>;
}

export type CreateTool = (cwd: string, options?: { operations: object; autoResizeImages?: boolean }) => PiTool;

export interface Sdk {
  VERSION: unknown;
  getAgentDir(): string;
  ModelRuntime: { create(options: Partial<Stores> & { refreshOnCreate: false; signal: AbortSignal }): Promise<ModelRuntime> };
  SettingsManager: { inMemory(settings: object, options: { projectTrusted: false }): SettingsManager };
  SessionManager: { inMemory(cwd: string): object };
  DefaultResourceLoader: new (options: object) => ResourceLoader;
  createAgentSession(options: object): Promise<{ session: AgentSession }>;
  createAgentSessionServices(options: object): Promise<Services>;
  createAgentSessionFromServices(options: object): Promise<{ session: AgentSession }>;
  createAgentSessionRuntime(factory: RuntimeFactory, options: object): Promise<SessionRuntime>;
  createReadToolDefinition: CreateTool;
  createBashToolDefinition: CreateTool;
  createEditToolDefinition: CreateTool;
  createWriteToolDefinition: CreateTool;
  createGrepToolDefinition: CreateTool;
  createFindToolDefinition: CreateTool;
  createLsToolDefinition: CreateTool;
}

export interface ImageBlock {
  type: "image";
  data: string;
  mimeType: string;
}

/** What a session works with; see `selection.py`. */
export interface Selection {
  provider: string;
  model: string;
  thinkingLevel: string;
}

/** A question about a selection. */
export type CheckName = "provider" | "model" | "check_auth" | "get_auth" | "availability";

/** A tool that the server runs. */
export interface Grant {
  name: string;
  description: string;
  parameters: object;
}

/** What a host sends to have a granted tool run, but for the call's number. */
export interface Call {
  session: number;
  tool: string;
  arguments: string;
  given: string;
}

/** How a call has ended. */
export interface Done {
  done: number;
  failed: boolean;
  texts: string[];
  details?: unknown;
  images?: { at: number; data: string; mimeType: string }[] | null;
}

export interface RequestOf {
  hello: { op: "hello"; id: number; protocol: number; sdk: string; bundle?: string | null; compileCache?: string | null; python?: string | null };
  load: {
    op: "load";
    id: number;
    session: number;
    cwd: string;
    fileAccess: "workspace" | "user";
    entries?: string[] | null;
  };
  check: {
    op: "check";
    id: number;
    session: number;
    steps: CheckName[];
    selection: Selection;
  };
  open: {
    op: "open";
    id: number;
    session: number;
    selection: Selection;
    tools: string[];
    grants?: Grant[] | null;
  };
  bind: { op: "bind"; id: number; session: number };
  prompt: { op: "prompt"; id: number; session: number; turn: number; text: string };
  abort: { op: "abort"; id: number; session: number };
  dispose: { op: "dispose"; id: number; session: number };
  ping: { op: "ping"; id: number };
}

export type Request = RequestOf[keyof RequestOf];
