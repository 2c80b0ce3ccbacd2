import type {
  Call,
  CostPart,
  OfferOf,
  Operation,
  OperationTexts,
  Outcome,
  Principal,
  RequestOf,
  ResponseOf,
  Target,
  Units,
} from './call.ts';
import type { ChatMessage, ChatResponse, Usage } from './chat.ts';
import type { StreamProgress } from './events.ts';
import type { JsonObject, Schema } from './json.ts';
import type { CodecCall, HttpRequest, ModelInfo, Offer, Price, ResponseHeaders, Transport } from './provider.ts';
import type { RouteContext } from './route.ts';

/** Provider's HTTP response, for an operation. */
export interface AttemptResponse {
  /** 200 to 299 with content; every other status is already a failure. */
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ResponseHeaders;
  /** Readable once. Stopping early closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Reads the whole body; closes the connection and throws beyond `maxBytes`. */
  readAll(maxBytes?: number): Promise<Buffer>;
  /** Closes the connection. No effect after the end. */
  destroy(): void;
  /**
   * Reports the progress of an event stream after each read that completed an event. From the first report on, the timeout `idle`
   * counts events instead of bytes. {@link body} ends at once for a response that is `complete`, after one second for `ending` and
   * after two for `finished`. Later bytes are dropped.
   */
  reportProgress?(progress: StreamProgress): void;
  /** Websocket only: sends a text frame and resolves when it is written. {@link body} yields the received frames, one per chunk. */
  readonly send?: ((text: string) => Promise<void>) | undefined;
}

/** Transport of a request that is not plain HTTP. */
export interface SentBy {
  /** Opens a websocket with these limits of message size and lifetime; the response has status 101. */
  readonly websocket?: { readonly maxMessageBytes: number; readonly totalMs: number };
  /** Open connection that replaces the network. */
  readonly transport?: Transport;
}

/** Target and its known facts. */
export interface TargetFacts<O extends Operation = Operation> {
  readonly target: Target;
  /** Registration of the target's provider for this operation. */
  readonly offer: OfferOf<O>;
  /** Undefined if the catalog does not know the model. */
  readonly model: ModelInfo | undefined;
  /** Undefined if unknown; an unknown price is never free. */
  readonly price: Price | undefined;
}

/** Usage and cost of a call, or their upper bound. */
export interface Metered {
  readonly units: Units;
  /** Whole nano-dollars; undefined if the price is unknown. */
  readonly cost: number | undefined;
  /** Components of the cost; absent if unknown. */
  readonly parts?: readonly CostPart[];
  /** True if the provider reported no usage and the gateway estimated it. */
  readonly estimated?: boolean;
  /** Cost in US dollars as reported by the provider. It is charged unless the operator set a price. */
  readonly providerCost?: number | undefined;
  /**
   * Estimates only: the vendor has already done the work. Neither the balance nor a budget rejects the call; both may become
   * negative.
   */
  readonly owed?: boolean;
  /**
   * Estimates only, for operations such as batches that outlive the call: Unix milliseconds until which the reservation stays after
   * a successful call. The plugin that made the call settles it in the ledger under the call's id.
   */
  readonly heldUntil?: number;
}

/**
 * Usage of a call, which the gateway prices: tokens, or units that the price charges by its `fees`. If the price has a fee for one of
 * the units, the fees apply and tokens are free.
 */
export interface OperationUsage
  extends Partial<
    Pick<Usage, 'prompt_tokens' | 'completion_tokens' | 'prompt_tokens_details' | 'completion_tokens_details'>
  > {
  /** Other units by name, such as `images`. */
  readonly units?: Units;
}

/**
 * Usage as a vendor reported it. The gateway checks each number. If one is missing, impossible or all are 0, the call is charged by its
 * maximum usage and marked as estimated.
 */
export interface ReportedUsage {
  readonly prompt_tokens?: unknown;
  readonly completion_tokens?: unknown;
  readonly prompt_tokens_details?: Readonly<Record<string, unknown>>;
  readonly completion_tokens_details?: Readonly<Record<string, unknown>>;
  readonly units?: Readonly<Record<string, unknown>>;
  /** Cost of the call in US dollars. It is charged unless the operator set a price. */
  readonly cost?: unknown;
}

/** File of a form that becomes a field of the request. */
export interface OperationFile {
  /** Name of the form field; `name[]` and `name[0]` are accepted too. Default: the field of the request. */
  readonly field?: string;
  /** Maximum size of one file. */
  readonly maxBytes: number;
  /** Maximum number of files; the request field is then a list. Default: one file, which is not a list. */
  readonly maxFiles?: number;
  readonly optional?: boolean;
}

/** Route of an operation. */
export interface OperationRoute<O extends Operation = Operation> {
  /** End of the paths `/v1/{path}` and `/api/core/{provider}/{path}`, such as `rerank`. Default: only `otherPaths`. */
  readonly path?: string;
  /** Whole paths that other clients use, such as `/v2/rerank`. */
  readonly otherPaths?: readonly string[];
  /** One line, for OpenAPI. */
  readonly summary: string;
  readonly description?: string;
  /** Schema of the body; default: the request of the operation. Required for a form: the schema of its text fields. */
  readonly body?: Schema;
  /** Accepts a multipart form in place of JSON, with these files by field of the request. */
  readonly files?: Readonly<Record<string, OperationFile>>;
  /** Response for OpenAPI. Default: the response schema of the operation. */
  readonly response?: { readonly description: string; readonly schema: Schema };
  /**
   * Converts a body to a request. Default: the body itself; fields of a form get the types of the request schema, and files are added.
   */
  read?(body: RequestOf<O>): RequestOf<O>;
  /** Returns the events of a response to a request with `stream`. Default: all responses are JSON. */
  events?(response: ResponseOf<O>): AsyncIterable<JsonObject> | undefined;
  /** Returns the body of other responses: text, or JSON. Default: the response itself. */
  write?(response: ResponseOf<O>, ctx: RouteContext): unknown;
}

/** Translates an operation whose request and response are JSON. Every method is pure and called again for every attempt. */
export interface JsonCodec<Request, Response> {
  request(input: Request, call: CodecCall): HttpRequest;
  /** `body` is parsed JSON. Throws `StreamFailure` when a 200 contains an error. */
  response(body: unknown, input: Request, call: CodecCall): Response;
}

/** Registration of a provider for such an operation, by `api.offer(…)`. */
export interface JsonOffer<Request, Response> extends Offer {
  readonly codec: JsonCodec<Request, Response>;
}

/** Chat request of a client in the form for its first permitted target. */
export interface ChatDraft {
  readonly target: Target;
  /** Model name of the request. */
  readonly requested: string;
  /** Request for the vendor; the sender reports its `dropped`. */
  readonly request: HttpRequest;
  /** Returns the upper bound of its cost at a price. */
  most(price: Price | undefined): Metered;
}

/** One attempt at one target, for an operation. */
export interface Attempt<O extends Operation = Operation> extends TargetFacts<O> {
  readonly call: Call<O>;
  /** Final request after all hooks. Its model, if any, is the target's. */
  readonly request: RequestOf<O>;
  readonly codecCall: CodecCall;
  readonly abortSignal: AbortSignal;
  /** Sends a request to the target's endpoint, with `send` hooks, deadlines, key and size limits. Throws the error to report. */
  send(request: HttpRequest, by?: SentBy): Promise<AttemptResponse>;
  /** Sends a request and returns the parsed JSON response. */
  sendForJson(request: HttpRequest): Promise<unknown>;
  /**
   * Charges usage as the vendor reported it, by the target's price; the last report before the end counts. `performed` is the request
   * as the vendor performed it, such as with fewer images. For definitions with `maxUsage`.
   */
  bill(reported: ReportedUsage | undefined, performed?: RequestOf<O>): void;
  /** Reports the usage and its cost so far, by own arithmetic; the last report before the end counts. */
  meter(metered: Metered): void;
  /** True if hooks check the response: return the whole response then, and no stream. */
  readonly isChecked: boolean;
  /**
   * Forwards a response that continues after the attempt resolved, such as sound. Ends the call when the response ends, fails or is
   * abandoned, and calls `onEnd` first.
   */
  whileStreaming<T>(source: AsyncIterable<T>, onEnd: () => void): AsyncIterable<T>;
}

/**
 * Kind of call other than chat, registered with `api.operation`. The gateway does the rest for each call: the queue of the account,
 * memory, permissions, guardrails, reading of usage, reservation, charge and record. An example is `rerank`.
 */
export interface OperationDefinition<O extends Operation = Operation> {
  readonly name: O;
  /** Request schema; also validates changes of hooks. */
  readonly request: Schema;
  /** Response schema, which vendors' responses and results of hooks must match. Default: any object. */
  readonly response?: Schema;
  /** Texts that guardrails check. Default: every string of the request and the response. */
  readonly texts?: OperationTexts | undefined;
  /** HTTP routes. Default: none; a plugin may call the operation by `api.models.call`. */
  readonly routes?: readonly OperationRoute<O>[];
  /** Returns the maximum usage of a request, before it is sent. Pure. Required unless `estimate` is set. */
  maxUsage?(request: RequestOf<O>, facts: TargetFacts<O>): OperationUsage;
  /** Returns the usage that a response reports; undefined if it reports none. For definitions without `attempt`. */
  readUsage?(response: ResponseOf<O>, request: RequestOf<O>): ReportedUsage | undefined;
  /** Returns the upper bound of a request's cost at a target, by own arithmetic. Pure. */
  estimate?(request: RequestOf<O>, facts: TargetFacts<O>): Metered;
  /**
   * Calls one target. Throws `StreamFailure` or `GatewayError`; core decides about retries. Default: JSON by the codec of the target's
   * offer ({@link JsonOffer}).
   */
  attempt?(attempt: Attempt<O>): Promise<ResponseOf<O>>;
  /** Returns whether a value has the shape of its response: a cheap check. Default: by `response`. */
  isResponse?(value: unknown): value is ResponseOf<O>;
}

/** Result of `api.models.call`. */
export interface CallResult<O extends Operation = Operation> {
  readonly response: ResponseOf<O>;
  /** Response headers of the call for an HTTP route: provider, model, attempts, cost, timing; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Specialist of the team: from the configuration, or from a plugin by `api.agent(…)`. */
export interface AgentDefinition {
  /** `[a-z0-9_-]{1,40}`, unique in the team. */
  readonly name: string;
  /** Purpose in one line, for the router. With an empty text the router never chooses the agent. */
  readonly when: string;
  readonly instructions?: string;
  /** `provider/model` or an alias. Default: the model of the request. */
  readonly model?: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
  /** Names of its tools, such as `rag`, and MCP servers whose tools its model may call. */
  readonly tools?: readonly (string | AgentServer)[];
  /** True if it receives the caller's actions; default: true. */
  readonly actions?: boolean;
  /** True if it receives the session's memory; default: true. */
  readonly memory?: boolean;
  /** Replaces the model call, for agents written in code. */
  run?(task: AgentTask, context: AgentContext): Promise<AgentFinding>;
  /**
   * Deletes the agent's own data about this caller, of one session or all; returns the number of deleted items. Called by `DELETE
   * /api/core/agent/memory`.
   */
  forget?(principal: Principal, session?: string): Promise<number>;
}

/** MCP server among the tools of an agent. */
export interface AgentServer {
  readonly type: 'mcp';
  readonly server: string;
  /** Names of the tools. Default: all that the caller may use. */
  readonly allowed_tools?: readonly string[];
}

export interface AgentTask {
  readonly instruction: string;
  readonly message: string;
  readonly context?: string;
  readonly inputs?: unknown;
  readonly actions?: readonly AgentAction[];
}

export interface AgentAction {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: Schema;
}

export interface AgentFinding {
  readonly summary: string;
  readonly confidence?: number;
  readonly actions?: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[];
  readonly data?: unknown;
}

export interface AgentContext {
  readonly principal: Principal;
  /** Id of the parent request. The agent's own calls through `api` pass it on, with `onOutcome`. */
  readonly requestId: string;
  /** Receives the result of such a call, for the request's usage and the access log. */
  onOutcome?(call: Call, outcome: Outcome): void;
  readonly signal: AbortSignal;
  /** Calls a model for this agent: metered, limited, part of the request. */
  chat(
    messages: readonly ChatMessage[],
    options?: { readonly temperature?: number; readonly schema?: Schema },
  ): Promise<ChatResponse>;
  /** Sends data to the event stream. */
  emit(data: unknown): void;
  readonly usage: () => Usage;
}
