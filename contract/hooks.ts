import type { Call, Operation, Outcome, Principal, RequestOf, ResponseOf, Target } from './call.ts';
import type { ChatChunk } from './chat.ts';
import type { GatewayError } from './errors.ts';
import type { FailureClass, HttpRequest } from './provider.ts';

/** Request as an auth plugin sees it; no other type holds the credential. */
export interface AuthRequest {
  /**
   * Value of `authorization: Bearer` or `x-api-key`. Empty if neither was sent, for schemes that sign a request and for cookies.
   */
  readonly credential: string;
  /** True for a bearer token; only bearer tokens may be JWTs. */
  readonly bearer: boolean;
  /** Unix milliseconds. */
  readonly now: number;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Names in lower case, credentials included. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Caller's address: from the socket, or from trusted proxies. */
  readonly address: string;
  /** Returns the body as it was sent, for signatures over it; at most the route's limit. Rejects as reading the body does. */
  rawBody(): Promise<Uint8Array>;
  /**
   * Call this before querying a store or another server for a credential that was not valid here before. Throws `rate_limited`
   * after too many invalid credentials from the caller's address.
   */
  beforeLookup(): void;
}

/** Response of the `answer` hook in place of a target's. */
export interface Answered<O extends Operation = Operation> {
  /** Canonical response; streamed if the caller requested a stream. */
  readonly response: ResponseOf<O>;
  /** Nano-dollars charged to the caller; default: none. */
  readonly cost?: number;
  /** For a cached response: the nano-dollars that a target would have cost, 0 if unknown. */
  readonly saved?: number;
  /** Response headers, such as `x-tollgate-cache`; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One attempt at one target, reported at its end. Reported again, with its failure, if a response breaks off after its start. */
export interface AttemptReport {
  readonly target: Target;
  /** Position of the attempt within the call, from 1. */
  readonly number: number;
  /** HTTP status from the provider; absent if it sent none. */
  readonly status?: number;
  /** Absent if the attempt succeeded or was abandoned. */
  readonly failure?: {
    /** Absent for failures without a provider, such as a missing key. */
    readonly class?: FailureClass;
    /** Message of the provider or the network, redacted. For operators, never for callers. */
    readonly message: string;
    readonly error: GatewayError;
  };
  /** Milliseconds from sending to the head of the response, or to the failure. */
  readonly durationMs: number;
  /**
   * Next action: return the response, try another target, try another key, retry the same target (after a delay, or without a field that
   * the gateway had added), or end the call.
   * For two concurrent targets, `wait`: this one failed and the other is running; `left`: the other responded.
   */
  readonly next: 'respond' | 'next target' | 'next key' | 'retry' | 'end' | 'wait' | 'left';
  /** Name of the provider's key, if there are several. */
  readonly key?: string;
  /** True if it is a hedge for a slow attempt. */
  readonly isSecond?: boolean;
  /** Next target, if one is tried. */
  readonly nextTarget?: Target;
}

type Awaitable<T> = T | Promise<T>;

/** Changes the chunks of one stream. Created per call, so it may hold state, such as text that waits for more. */
export interface StreamTransform {
  /** Returns the chunks to send instead of this one; an empty list holds it back. */
  push(chunk: ChatChunk): Awaitable<readonly ChatChunk[]>;
  /**
   * Returns the remaining chunks. Called before the finish and usage chunks, and before an error of the provider. Not called if the
   * caller left or a transform ended the stream by a throw. Called again after a failure if its instance fails open.
   */
  end?(): Awaitable<readonly ChatChunk[]>;
  /**
   * True for a read-only observer. It sees every chunk as the provider sent it, including finish and usage, before any transform.
   * Its result is ignored, and a throw is logged.
   */
  readonly observes?: boolean;
}

/**
 * Functions of all hooks. A return value changes the call, `undefined` leaves it unchanged, a throw stops it. All arguments are
 * frozen.
 */
export interface HookFunctions<O extends Operation = Operation> {
  /** Authenticates the caller. The first result wins; a throw rejects. */
  authenticate(request: AuthRequest): Awaitable<Principal | undefined>;
  /** Allows or rejects (by a throw) reading a body over 128 KiB from a caller whose call was not admitted yet. Counts nothing. */
  arrive(principal: Principal): Awaitable<void>;
  /** Admits the call: requests per minute, concurrent calls. A throw rejects. */
  admit(call: Call<O>): Awaitable<void>;
  /** Changes the request; the result is validated by the operation's schema. */
  prepare(call: Call<O>, request: RequestOf<O>): Awaitable<RequestOf<O> | undefined>;
  /** May respond without a target (cache, textual refusal, test double). The first result wins. */
  answer(call: Call<O>): Awaitable<Answered<O> | undefined>;
  /** Selects targets. The first result replaces the candidates. */
  route(call: Call<O>): Awaitable<readonly Target[] | undefined>;
  /** Reserves tokens and money for the final request. A throw rejects. */
  reserve(call: Call<O>): Awaitable<void>;
  /** Changes one attempt's HTTP request: headers, path, query; not the body. */
  send(call: Call<O>, request: HttpRequest, target: Target): Awaitable<HttpRequest | undefined>;
  /** Observes each attempt at its end. */
  attempt(call: Call<O>, attempt: AttemptReport): Awaitable<void>;
  /** Changes a whole response before it is sent to the caller. */
  receive(call: Call<O>, response: ResponseOf<O>): Awaitable<ResponseOf<O> | undefined>;
  /** Creates the transform of a stream; `undefined` leaves the stream unchanged. */
  stream(call: Call<O>): StreamTransform | undefined;
  /** May replace an error; cannot turn it into a success. */
  error(call: Call<O>, error: GatewayError): Awaitable<GatewayError | undefined>;
  /** Runs always, exactly once, after the last byte. A throw is logged. */
  finish(call: Call<O>, outcome: Outcome): Awaitable<void>;
}

export type HookName = keyof HookFunctions;

export interface HookObject<N extends HookName, O extends Operation = Operation> {
  readonly handler: HookFunctions<O>[N];
  /** Runs before (`pre`) or after (`post`) all hooks without an order. */
  readonly order?: 'pre' | 'post';
  /** Limits the hook to these operations, which narrows the types of the handler. Default: all but `count`. */
  readonly operations?: readonly O[];
}

/** Function, or function with its order and operations. */
export type Hook<N extends HookName, O extends Operation = Operation> = HookFunctions[N] | HookObject<N, O>;

/** Kind and direction of a hook. */
export interface HookRow {
  readonly kind: 'first' | 'sequence' | 'waterfall' | 'transform' | 'observe';
  readonly direction: 'in' | 'out';
}

/** Kind and direction of each hook, in the order of a call; a test checks `docs/plugins/4-life-of-a-call.md` against this table. */
export const HOOKS = Object.freeze({
  authenticate: { kind: 'first', direction: 'in' },
  arrive: { kind: 'sequence', direction: 'in' },
  admit: { kind: 'sequence', direction: 'in' },
  prepare: { kind: 'waterfall', direction: 'in' },
  answer: { kind: 'first', direction: 'in' },
  route: { kind: 'first', direction: 'in' },
  reserve: { kind: 'sequence', direction: 'in' },
  send: { kind: 'waterfall', direction: 'in' },
  attempt: { kind: 'observe', direction: 'in' },
  receive: { kind: 'waterfall', direction: 'out' },
  stream: { kind: 'transform', direction: 'out' },
  error: { kind: 'waterfall', direction: 'out' },
  finish: { kind: 'observe', direction: 'out' },
} as const satisfies Record<HookName, HookRow>);
