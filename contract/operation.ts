import type {
  Call,
  CostPart,
  OfferOf,
  Operation,
  Outcome,
  Principal,
  RequestOf,
  ResponseOf,
  Target,
  Units,
} from './call.ts';
import type { ChatMessage, ChatResponse, Usage } from './chat.ts';
import type { StreamProgress } from './events.ts';
import type { Schema } from './json.ts';
import type { CodecCall, HttpRequest, ModelInfo, Price, ResponseHeaders, Transport } from './provider.ts';

/** What a provider's HTTP response looks like to an operation. */
export interface AttemptResponse {
  /** 200 to 299 with content for an attempt: every other status has become a failure already. */
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ResponseHeaders;
  /** Read once. Breaking off hangs up. */
  readonly body: AsyncIterable<Uint8Array>;
  /** The whole body; hangs up and throws beyond `maxBytes`. */
  readAll(maxBytes?: number): Promise<Buffer>;
  /** Hangs up. Harmless after the end. */
  destroy(): void;
  /**
   * Reports what an event stream has come to, after each read that completed an event. From the first report on, the timeout `idle`
   * counts events, not bytes. {@link body} ends at once when the answer is `complete`, after one second when it is `ending`, after two
   * when it is `finished`; what follows is dropped.
   */
  reportProgress?(progress: StreamProgress): void;
  /** Of a websocket: sends a text frame, and resolves when it has gone out. {@link body} are the frames that come, one a chunk. */
  readonly send?: ((text: string) => Promise<void>) | undefined;
}

/** How a request is sent that is not one by itself. */
export interface SentBy {
  /** It opens a websocket, whose messages have so many bytes at most and which lives so long at most; the response has status 101. */
  readonly websocket?: { readonly maxMessageBytes: number; readonly totalMs: number };
  /** It goes by what is open already, in place of the network. */
  readonly transport?: Transport;
}

/** A target and what is known of it. */
export interface TargetFacts<O extends Operation = Operation> {
  readonly target: Target;
  /** What the target's provider registered for this operation. */
  readonly offer: OfferOf<O>;
  /** Undefined when the catalogue does not know the model. */
  readonly model: ModelInfo | undefined;
  /** Undefined when it is not known; unknown is never free. */
  readonly price: Price | undefined;
}

/** What a call comes to, or may come to at most. */
export interface Metered {
  readonly units: Units;
  /** Whole nano-dollars; undefined when the price is not known. */
  readonly cost: number | undefined;
  /** What the cost is made of; absent where that is not known. */
  readonly parts?: readonly CostPart[];
  /** Whether the provider told no usage, so that it was counted here. */
  readonly estimated?: boolean;
  /** What the provider says that it costs, in US dollars: that is charged, unless the operator has a price of their own. */
  readonly providerCost?: number | undefined;
  /** Of an estimate: the vendor has done the work already. Neither the balance nor a budget refuses the call; both may go below zero. */
  readonly owed?: boolean;
  /**
   * Of an estimate whose end the call does not see, such as a batch: until when (Unix milliseconds) it stays reserved after a call that
   * ended well. Whoever made the call settles it in the ledger, under the call's id.
   */
  readonly heldUntil?: number;
}

/** A chat request of a client as it would be sent to its first target that may have it. */
export interface ChatDraft {
  readonly target: Target;
  /** The model as the request named it. */
  readonly requested: string;
  /** As the vendor is to get it; its `dropped` are told by whoever sends it. */
  readonly request: HttpRequest;
  /** The most that it may come to at a price. */
  most(price: Price | undefined): Metered;
}

/** One attempt at one target, as an operation works on it. */
export interface Attempt<O extends Operation = Operation> extends TargetFacts<O> {
  readonly call: Call<O>;
  /** As it is to be sent: after all hooks. Its model, where it has one, is the target's. */
  readonly request: RequestOf<O>;
  readonly codecCall: CodecCall;
  readonly abortSignal: AbortSignal;
  /** Sends a request to the target's endpoint: `send` hooks, deadlines, key, limits of size. Throws what is to be told. */
  send(request: HttpRequest, by?: SentBy): Promise<AttemptResponse>;
  /** The same for a response that is JSON: its value, parsed. */
  sendForJson(request: HttpRequest): Promise<unknown>;
  /** Says what the call came to, as far as is known; the last word before the end counts. */
  meter(metered: Metered): void;
  /**
   * For responses that go on after the attempt resolved, such as sound: passes them on, ends the call when they end, break
   * off or are left, and tells `onEnd` before it does.
   */
  whileStreaming<T>(source: AsyncIterable<T>, onEnd: () => void): AsyncIterable<T>;
}

/** A kind of call beside chat. Registered with `api.operation`; `embeddings` and `speech` are two. */
export interface OperationDefinition<O extends Operation = Operation> {
  readonly name: O;
  /** Of its request: what a hook changed is checked by it again. */
  readonly request: Schema;
  /** The most that a request may come to at a target, before it is sent. Pure. */
  estimate(request: RequestOf<O>, facts: TargetFacts<O>): Metered;
  /** Asks one target. Throws `StreamFailure` or `GatewayError`; what may be tried elsewhere is core's to say. */
  attempt(attempt: Attempt<O>): Promise<ResponseOf<O>>;
  /** Whether a value has the shape of its response: a cheap look at what hooks hand back. */
  isResponse(value: unknown): value is ResponseOf<O>;
}

/** What `api.models.call` gives. */
export interface CallResult<O extends Operation = Operation> {
  readonly response: ResponseOf<O>;
  /** What an HTTP route tells of the call: provider, model, attempts, cost, timing; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A specialist of the team: declared in the configuration, or shipped by a plugin with `api.agent(…)`. */
export interface AgentDefinition {
  /** `[a-z0-9_-]{1,40}`, unique in the team. */
  readonly name: string;
  /** One line: what it is for. The router chooses by this text; an empty one keeps it out of the router's choice. */
  readonly when: string;
  readonly instructions?: string;
  /** `provider/model` or an alias; absent uses the model of the request. */
  readonly model?: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
  /** Names of tools it may use, such as `rag`. */
  readonly tools?: readonly string[];
  /** Whether it is shown the caller's actions; true unless set. */
  readonly actions?: boolean;
  /** Whether it is shown the session's memory; true unless set. */
  readonly memory?: boolean;
  /** Replaces the model call: an agent written in code. */
  run?(task: AgentTask, context: AgentContext): Promise<AgentFinding>;
  /**
   * Wipes what the agent itself keeps about this caller, one session or all; answers how many it wiped. Called by
   * `DELETE /api/core/agent/memory`.
   */
  forget?(principal: Principal, session?: string): Promise<number>;
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
  /** The request this is part of: what the agent's own calls through `api` pass on, with `onOutcome`. */
  readonly requestId: string;
  /** Told what such a call came to, so that the request's usage and the access log have it. */
  onOutcome?(call: Call, outcome: Outcome): void;
  readonly signal: AbortSignal;
  /** A model call for this agent: metered, limited, part of the request. */
  chat(
    messages: readonly ChatMessage[],
    options?: { readonly temperature?: number; readonly schema?: Schema },
  ): Promise<ChatResponse>;
  /** Shows something in the event stream. */
  emit(data: unknown): void;
  readonly usage: () => Usage;
}
