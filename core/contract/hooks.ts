import type { Call, Operation, Outcome, Principal, Target } from './call.ts';
import type { ChatChunk, ChatResponse, EmbeddingResponse } from './chat.ts';
import type { GatewayError } from './errors.ts';
import type { HttpRequest } from './provider.ts';

/** What an auth plugin sees of a request; the credential is here and nowhere else. */
export interface AuthRequest {
  /** From `authorization: Bearer` or `x-api-key`. */
  readonly credential: string;
  /** Whether it came as a bearer token; only there a JWT is looked for. */
  readonly bearer: boolean;
  readonly now: number;
}

type Awaitable<T> = T | Promise<T>;

/** Every hook's function. Return = change, `undefined` = keep, `null` (chunk only) = drop, throw = stop. */
export interface HookFunctions {
  /** Who calls? The first answer wins; a throw refuses. */
  authenticate(request: AuthRequest): Awaitable<Principal | undefined>;
  /** May it? Limits, balance: reserve. A throw refuses. */
  admit(call: Call): Awaitable<void>;
  /** Changes the request. */
  prepare<O extends Operation>(call: Call<O>, request: Call<O>['request']): Awaitable<Call<O>['request'] | undefined>;
  /** Where to? The first answer replaces the candidates. */
  route(call: Call): Awaitable<readonly Target[] | undefined>;
  /** Changes one attempt's HTTP request: signatures, headers. */
  send(call: Call, request: HttpRequest, target: Target): Awaitable<HttpRequest | undefined>;
  /** Changes a whole answer, on the way out. */
  receive(
    call: Call,
    response: ChatResponse | EmbeddingResponse,
  ): Awaitable<ChatResponse | EmbeddingResponse | undefined>;
  /** Changes or drops (null) one chunk of a stream, on the way out. Synchronous. */
  chunk(call: Call<'chat'>, chunk: ChatChunk): ChatChunk | null | undefined;
  /** May rename an error; cannot make it a success. */
  error(call: Call, error: GatewayError): Awaitable<GatewayError | undefined>;
  /** Always, exactly once, after the last byte. A throw is logged. */
  finish(call: Call, outcome: Outcome): Awaitable<void>;
}

export type HookName = keyof HookFunctions;

export interface HookObject<N extends HookName> {
  readonly handler: HookFunctions[N];
  /** Before (`pre`) or after (`post`) all hooks without one. */
  readonly order?: 'pre' | 'post';
  /** Runs for these operations only; all, unless told. */
  readonly operations?: readonly Operation[];
}

/** A function, or a function with its order and operations. */
export type Hook<N extends HookName> = HookFunctions[N] | HookObject<N>;

/** Kind and direction of each hook; `docs/hooks.md` is held to this table by a test. */
export const HOOKS = Object.freeze({
  authenticate: { kind: 'first', direction: 'in' },
  admit: { kind: 'sequence', direction: 'in' },
  prepare: { kind: 'waterfall', direction: 'in' },
  route: { kind: 'first', direction: 'in' },
  send: { kind: 'waterfall', direction: 'in' },
  receive: { kind: 'waterfall', direction: 'out' },
  chunk: { kind: 'waterfall', direction: 'out' },
  error: { kind: 'waterfall', direction: 'out' },
  finish: { kind: 'parallel', direction: 'out' },
} as const satisfies Record<
  HookName,
  { kind: 'first' | 'sequence' | 'waterfall' | 'parallel'; direction: 'in' | 'out' }
>);
