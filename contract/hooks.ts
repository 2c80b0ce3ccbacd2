import type { Call, Operation, Outcome, Principal, RequestOf, ResponseOf, Target } from './call.ts';
import type { ChatChunk } from './chat.ts';
import type { GatewayError } from './errors.ts';
import type { FailureClass, HttpRequest } from './provider.ts';

/** What an auth plugin sees of a request; the credential is here and nowhere else. */
export interface AuthRequest {
  /** From `authorization: Bearer` or `x-api-key`; empty when neither was sent, for schemes that sign a request and for cookies. */
  readonly credential: string;
  /** Whether it came as a bearer token; only there a JWT is looked for. */
  readonly bearer: boolean;
  /** Unix milliseconds. */
  readonly now: number;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Names in lower case, credentials included. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The caller's address: the socket's, or what trusted proxies say. */
  readonly address: string;
  /** The body as it was sent, for signatures over it; at most the route's limit. Rejects as reading the body does. */
  rawBody(): Promise<Uint8Array>;
  /**
   * To be called before a store or another server is asked for a credential that was not right here before: throws
   * `rate_limited` where too many wrong ones came from the caller's address.
   */
  beforeLookup(): void;
}

/** What the `answer` hook gives instead of asking a target. */
export interface Answered<O extends Operation = Operation> {
  /** The canonical response; a caller who asked for a stream gets it as one. */
  readonly response: ResponseOf<O>;
  /** Nano-dollars that the caller owes for it; nothing unless set. */
  readonly cost?: number;
  /** For a response that was kept: the nano-dollars that asking a target would have cost, 0 where that is not known. */
  readonly saved?: number;
  /** Told to the caller, such as `x-tollgate-cache`; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One try at one target, told when it is over; once more, with its failure, when a response breaks off that had begun. */
export interface AttemptReport {
  readonly target: Target;
  /** Which of the call's targets it is, from 1. */
  readonly number: number;
  /** The HTTP status that the provider sent; absent when it sent none. */
  readonly status?: number;
  /** Absent when the attempt succeeded, or was left. */
  readonly failure?: {
    /** Absent for failures that are no provider's, such as a missing key. */
    readonly class?: FailureClass;
    /** The provider's or the network's words, with secrets taken out. For operators, never for callers. */
    readonly message: string;
    readonly error: GatewayError;
  };
  /** Milliseconds from sending to the head of the response, or to the failure. */
  readonly durationMs: number;
  /**
   * What is done now: the response is passed on, another target is asked, the same one by another of its keys, or once more after a
   * moment, or the call ends.
   * Where two targets were asked at the same time, `wait`: this one failed and the other still works; `left`: the other responded.
   */
  readonly next: 'respond' | 'next target' | 'next key' | 'retry' | 'end' | 'wait' | 'left';
  /** The name of the provider's key that it was sent with, where there are several. */
  readonly key?: string;
  /** Whether it was begun beside another attempt because that takes long. */
  readonly isSecond?: boolean;
  /** Which target is asked now, when one is. */
  readonly nextTarget?: Target;
}

type Awaitable<T> = T | Promise<T>;

/** Changes the chunks of one stream. Made for each call, so it may keep state: text that is held back until more has come. */
export interface StreamTransform {
  /** The chunks that go on instead of this one; none holds it back. */
  push(chunk: ChatChunk): Awaitable<readonly ChatChunk[]>;
  /**
   * What is still held back. Called before the finish and usage chunks, and before an error of the provider; not when the caller
   * left, nor when a transform ended the stream by a throw. Once more where it failed and its instance lets calls go on.
   */
  end?(): Awaitable<readonly ChatChunk[]>;
  /**
   * Whether it only watches: it then sees every chunk as the provider sent it, finish and usage included, before any transform; what
   * it gives is ignored, and a throw is logged. The stream passes as it would without it.
   */
  readonly observes?: boolean;
}

/** Every hook's function. Return = change, `undefined` = keep, throw = stop. Everything handed over is frozen. */
export interface HookFunctions<O extends Operation = Operation> {
  /** Who calls? The first result wins; a throw refuses. */
  authenticate(request: AuthRequest): Awaitable<Principal | undefined>;
  /** May a body over 128 KiB be read, of a caller whose call was not looked at yet? A throw refuses; nothing is counted. */
  arrive(principal: Principal): Awaitable<void>;
  /** May it? Requests a minute, calls at once. A throw refuses. */
  admit(call: Call<O>): Awaitable<void>;
  /** Changes the request; what it returns is checked by the operation's schema again. */
  prepare(call: Call<O>, request: RequestOf<O>): Awaitable<RequestOf<O> | undefined>;
  /** May respond at once (cache, refusal in words, test double): no target is asked. The first result wins. */
  answer(call: Call<O>): Awaitable<Answered<O> | undefined>;
  /** Where to? The first result replaces the candidates. */
  route(call: Call<O>): Awaitable<readonly Target[] | undefined>;
  /** Reserves tokens and money for exactly what will be sent. A throw refuses. */
  reserve(call: Call<O>): Awaitable<void>;
  /** Changes one attempt's HTTP request: headers, path, query; not the body. */
  send(call: Call<O>, request: HttpRequest, target: Target): Awaitable<HttpRequest | undefined>;
  /** Sees each attempt when it is over. */
  attempt(call: Call<O>, attempt: AttemptReport): Awaitable<void>;
  /** Changes a whole response, on the way out. */
  receive(call: Call<O>, response: ResponseOf<O>): Awaitable<ResponseOf<O> | undefined>;
  /** Makes what changes the chunks of a stream, on the way out; `undefined` lets this call's stream pass. */
  stream(call: Call<O>): StreamTransform | undefined;
  /** May rename an error; cannot make it a success. */
  error(call: Call<O>, error: GatewayError): Awaitable<GatewayError | undefined>;
  /** Always, exactly once, after the last byte. A throw is logged. */
  finish(call: Call<O>, outcome: Outcome): Awaitable<void>;
}

export type HookName = keyof HookFunctions;

export interface HookObject<N extends HookName, O extends Operation = Operation> {
  readonly handler: HookFunctions<O>[N];
  /** Before (`pre`) or after (`post`) all hooks without one. */
  readonly order?: 'pre' | 'post';
  /** Runs for these operations only, which narrows the types of the handler; for all but `count` unless set. */
  readonly operations?: readonly O[];
}

/** A function, or a function with its order and operations. */
export type Hook<N extends HookName, O extends Operation = Operation> = HookFunctions[N] | HookObject<N, O>;

/** How the hooks of one name are run, and which way. */
export interface HookRow {
  readonly kind: 'first' | 'sequence' | 'waterfall' | 'transform' | 'observe';
  readonly direction: 'in' | 'out';
}

/** Kind and direction of each hook, in the order of a call; `docs/plugins/4-life-of-a-call.md` is held to this table by a test. */
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
