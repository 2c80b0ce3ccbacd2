import type { BudgetRule } from './budgets.ts';
import type { ChatRequest, ChatResponse, Usage } from './chat.ts';
import type { GatewayError } from './errors.ts';
import type { FailureClass, ModelInfo, ModelTable, Price, Provider } from './provider.ts';

/** What a caller can prove itself with. */
export type CredentialKind = 'key' | 'token' | 'session';

/** Who calls, as an auth plugin found out. Frozen; never holds the credential itself. */
export interface Principal {
  /**
   * What was presented: an API key, a token of the identity provider, or the cookie of a person who signed in, which is taken on
   * routes of operators alone.
   */
  readonly credential: CredentialKind;
  readonly userId: string;
  /** The account that pays; the user's own unless a claim or key names another. */
  readonly account: string;
  /** The public id of the key, for limits, budgets, logs and usage. */
  readonly keyId?: string;
  readonly keyName?: string;
  readonly plan?: string;
  /** Whether it may use all routes of operators: a key that was made for it, or a token or session with the role `admin`. */
  readonly isAdmin?: boolean;
  /** What it may do on routes of operators where it is no admin, such as `usage:read`. A key that has scopes calls models only with `models:call`. */
  readonly scopes?: readonly string[];
  /** The groups of the identity provider that make it an owner of teams: those of its claims that the configuration names. */
  readonly groups?: readonly string[];
  /** When an operator's key ends, in Unix milliseconds: a session that is begun with it ends then too. */
  readonly expiresAt?: number;
  /** What its calls are booked under in addition to the user, such as `team=search`: those of the key or token, which a request cannot change, then those that the request named. */
  readonly tags?: readonly string[];
  /** What a token permits, such as `keys:write`. */
  readonly permissions?: readonly string[];
  /** Model allow-list: prefixes of `provider/model` or of `model`, or aliases; absent allows all. */
  readonly models?: readonly string[];
  /** Provider allow-list by instance name; absent allows all. */
  readonly providers?: readonly string[];
  /**
   * Tools that a vendor runs with the operator's account, such as `web_search`, which this key may use in addition to those of its plan; a
   * name allows its dated versions. None unless set.
   */
  readonly serverTools?: readonly string[];
  /** Requests and tokens a minute, for this key. */
  readonly rpm?: number;
  readonly tpm?: number;
  /** Nano-dollars this key may spend in all. */
  readonly budget?: number;
  /** What this key may spend by calendar period, counted under {@link limitsId}. */
  readonly budgets?: readonly BudgetRule[];
  /** What `rpm`, `tpm` and `budget` are counted under; `keyId` unless set. Keys that replace one another share it. */
  readonly limitsId?: string;
  /** What the user may use over all keys together, as the token said that the key was made with. */
  readonly userLimits?: UserLimits;
}

/** Limits of a user, counted under `userId`: requests and tokens a minute, and nano-dollars in all. */
export interface UserLimits {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly budget?: number;
}

/**
 * What can be asked, and the shapes of each: `request`, `response`, and `offer`, what a provider registers to take part in it.
 * Core knows `chat` and `count`; a plugin that adds an operation adds its shapes here by declaration merging:
 * `declare module 'tollgate' { interface Operations { speech: { request: …; response: …; offer: … } } }`.
 */
export interface Operations {
  readonly chat: { readonly request: ChatRequest; readonly response: ChatResponse; readonly offer: Provider };
  /** Counts what a chat request has for input; hooks run for it only where they name it in their `operations`. */
  readonly count: { readonly request: ChatRequest; readonly response: InputCount; readonly offer: Provider };
}

/**
 * What plugins provide to one another, by name: who provides something adds it here by declaration merging:
 * `declare module 'tollgate' { interface Services { clock: Clock } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: plugins fill it
export interface Services {}

/** How many tokens a request has for input. */
export interface InputCount {
  readonly inputTokens: number;
  /** Whether it was estimated here, not counted by the vendor. */
  readonly estimated: boolean;
}

/** The operations that core has itself. */
export const CHAT = 'chat';
export const COUNT = 'count';

export type Operation = keyof Operations;
export type RequestOf<O extends Operation> = Operations[O]['request'];
export type ResponseOf<O extends Operation> = Operations[O]['response'];
export type OfferOf<O extends Operation> = Operations[O]['offer'];

/** Amounts of what a call used, by unit: `prompt_tokens`, `completion_tokens`, `characters`; whole numbers. */
export type Units = Readonly<Record<string, number>>;

/** Where a call goes: a provider's instance name and the model as that provider knows it. */
export interface Target {
  readonly provider: string;
  readonly model: string;
}

/** The trace of W3C Trace Context that a request belongs to. */
export interface TraceContext {
  /** 32 hexadecimal digits; the caller's, or made for the request. */
  readonly traceId: string;
  /** The caller's span, of 16 hexadecimal digits; absent where it sent none. */
  readonly parentId?: string;
  /** Whether the caller records the trace; absent where it sent none. */
  readonly isSampled?: boolean;
  /** Its `tracestate`. */
  readonly state?: string;
}

/** How a chat came in over HTTP. */
export interface CallClient {
  /** The client's format. */
  readonly dialect: string;
  /** What it sent, checked; the request may say less of it than a provider that speaks the dialect gets to see. */
  readonly body: unknown;
  /** Those of its headers that a provider may get to see, such as betas; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Its `cache-control` header. */
  readonly cacheControl?: string | undefined;
  /** Whether its format makes every caller name a limit of output. */
  readonly demandsLimit?: boolean | undefined;
  /** True where the caller's own subscription at the provider pays: the call costs the operator nothing. */
  readonly ownSubscription?: boolean | undefined;
}

/**
 * One call's life, as hooks see it. What changes on the way (`targets`, `attempts`, `usage`) is changed by core alone;
 * a plugin keeps its own things in `state` under its own symbol.
 */
export interface Call<O extends Operation = Operation> {
  readonly id: string;
  readonly operation: O;
  /** The request id of the HTTP request; differs from `id` when one request makes several model calls (agents). */
  readonly requestId: string;
  readonly principal: Principal;
  /** What it is booked under, `name=value`: those of the principal, then those the request named. */
  readonly tags: readonly string[];
  /** What the caller named its session; a word for what belongs together, not to be trusted for limits or money. */
  readonly session?: string | undefined;
  /** What the caller's `traceparent` said, or a trace of its own. */
  readonly trace: TraceContext;
  /** Undefined for other operations, and for calls that plugins make themselves. */
  readonly client?: CallClient | undefined;
  readonly request: RequestOf<O>;
  /** Whether the caller reads a stream. */
  readonly stream: boolean;
  /** Candidates in order; the first that answers wins. */
  readonly targets: readonly Target[];
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** Fired by client close, deadline and drain. */
  readonly signal: AbortSignal;
  /** Limits that this call does not count against, because its parent already did (`rpm`, `concurrency`). */
  readonly skip: ReadonlySet<'rpm' | 'concurrency'>;
  readonly state: Map<symbol, unknown>;
  /** Headers of the response, such as `x-tollgate-budget-warning`; names in lower case. Not read once it began. */
  readonly headers: Map<string, string>;
}

export type OutcomeStatus = 'ok' | 'error' | 'aborted';

/** One request to a provider that a call made. */
export interface CallAttempt {
  /** `provider/model`. */
  readonly target: string;
  /** The name of the provider's key that it was sent with, where there are several. */
  readonly key?: string;
  /** The HTTP status that the provider sent; absent when it sent none. */
  readonly status?: number;
  /** Why it failed; both absent when it did not. */
  readonly class?: FailureClass;
  /** The provider's or the network's words, with secrets taken out. For operators, never for callers. */
  readonly reason?: string;
  /** Milliseconds from sending to the response, or to the failure. */
  readonly ms: number;
}

/** What one unit of a call costs. */
export interface CostPart {
  /** `input_tokens`, `cached_tokens`, `output_tokens`, `web_search_requests`, …; `vendor_charge` where the vendor told the cost of the call, `own_subscription` where the caller's own subscription paid. */
  readonly unit: string;
  readonly quantity: number;
  /** US dollars, not rounded; null where the unit has no known price. */
  readonly usd: number | null;
}

/** What a plugin's hook did to a call. */
export interface CallHook {
  /** The instance. */
  readonly plugin: string;
  readonly hook: string;
  /**
   * `changed`: the request, the response or the error; `routed`: it chose the targets; `failed`: by a bug, or because what it needs does
   * not work; `would_…`: its instance only logs.
   */
  readonly action: 'changed' | 'answered' | 'routed' | 'refused' | 'failed' | 'would_change' | 'would_refuse';
  /** Milliseconds, where it gave a promise and took more than one. */
  readonly ms?: number;
}

/** A hook of a plugin that a call waited for. */
export interface HookTime {
  /** The instance. */
  readonly plugin: string;
  readonly hook: string;
  /** Milliseconds: when it began, from the start of the call, and what it took. */
  readonly startMs: number;
  readonly ms: number;
}

/** What a call came to; given to the `finish` hook exactly once, after the last byte. */
export interface Outcome {
  readonly status: OutcomeStatus;
  readonly error?: GatewayError;
  /** Which target answered; of a call without a response the one that is owed its cost, else the one that was tried last. Absent when none was tried. */
  readonly target?: Target;
  /** The requests to providers that it took, in the order they were sent. */
  readonly attempts: readonly CallAttempt[];
  /** Of a call that was refused before any target was tried: the limit, budget, check or plugin that refused it. */
  readonly refusedBy?: string;
  /** The hooks that did something, in order, the first 20; absent where none did. Those that say who calls are not among them. */
  readonly hooks?: readonly CallHook[];
  /** The hooks that gave a promise and took over a millisecond, whatever they did, the first 20; absent where none did. */
  readonly hookTimes?: readonly HookTime[];
  /** How the request went to that target: as the client wrote it, translated, or some of both; absent where that is not known. */
  readonly lane?: 'native' | 'mixed' | 'translated';
  /** The service tier that served it, as the vendor told it, or else the one that it was sent with. */
  readonly serviceTier?: string;
  /** Request fields that the target was not sent, as `x-tollgate-dropped` names them; absent where it was sent all. */
  readonly dropped?: readonly string[];
  /** The vendor's word for the end of an answer that was kept as incomplete; absent where a finish reason says the same. */
  readonly unmappedFinish?: string;
  /** What of the response the caller's format cannot say, such as `images`; absent where it says all. */
  readonly leftOut?: readonly string[];
  /** Token counts; `estimated` when the provider reported none. */
  readonly usage?: Usage;
  /** What was used, by unit; tokens of {@link usage} among them. Absent when nothing was metered. */
  readonly units?: Units;
  readonly estimated: boolean;
  /** Nano-dollars; absent when the price is not known. */
  readonly cost?: number;
  /** What {@link cost} is made of, before it is rounded; absent where that is not known. */
  readonly costParts?: readonly CostPart[];
  /** Nano-dollars that a kept response has saved; present for every call that got one, 0 where its price is not known. */
  readonly saved?: number;
  /** Whether anything was sent upstream: nothing sent, nothing owed. */
  readonly sent: boolean;
  /** Milliseconds, all measured from the start of the call. */
  readonly durationMs: number;
  readonly firstByteMs?: number;
  /** Of a stream: when its first content had come, and when it had ended. */
  readonly firstTokenMs?: number;
  readonly lastTokenMs?: number;
  readonly upstreamMs: number;
}

/** The models of all instances that take part in an operation, as calls, model lists and the command line see them. */
export interface ModelCatalog {
  /**
   * What is known of a model; undefined when the provider does not accept the name. A listed name and its dated variants have the
   * row of the list; another name that is accepted, by prefix or family, stands for itself, without a price.
   */
  find(provider: string, model: string): ModelInfo | undefined;
  /** At most three ids near to `model`, best first. */
  suggest(provider: string, model: string): readonly string[];
  /** Instance names, in the order of the configuration. */
  providers(): readonly string[];
  has(provider: string): boolean;
  /** Whether calls to a provider have the credential that they need; without it they are 503 `provider_not_configured`. */
  isConfigured(provider: string): boolean;
  /** Every model of one provider, in the order of its list. */
  list(provider: string): readonly string[];
  /** Adds what a vendor itself lists; replaces what was learnt of it before. */
  learn(provider: string, models: readonly ModelInfo[]): void;
  /** Takes another table in place of the one in use. */
  use(table: ModelTable): void;
  /** Whether the operator set a price for a model: then that one holds, whatever the vendor says. */
  hasOwnPrice(target: Target): boolean;
  /** The price of a model, operator's over table, at a time in milliseconds, now unless given; undefined when it is not known. */
  priceOf(target: Target, model: ModelInfo | undefined, at?: number): Price | undefined;
}

/**
 * Whether calls go to a target: `open` is left alone until its time is over, `half-open` is tested by one live call, `drained` gets
 * none until an operator says so.
 */
export type TargetState = 'closed' | 'open' | 'half-open' | 'drained';

/**
 * Why a target is open: its vendor's rate limit, the operator's key or account, failures in a row, or what another worker or node
 * found out.
 */
export type OpenCause = 'rate_limit' | 'credential' | 'failures' | 'shared';

/** What is known of a target, as operators see it. */
export interface TargetReport extends Target {
  /** The name of the provider's key that this is about, where there are several; the target with any of them when absent. */
  readonly key?: string;
  readonly state: TargetState;
  readonly cause?: OpenCause;
  /** Unix milliseconds until which it is left alone; absent when it is closed. */
  readonly openUntil?: number;
  /** The share of its latest attempts that failed, 0 to 1; later ones count more. */
  readonly errorRate: number;
  /** Attempts that were judged. */
  readonly attempts: number;
  /** Milliseconds to a non-streaming response, and to the first token of a stream; later ones count more. */
  readonly wholeMs?: number;
  readonly firstTokenMs?: number;
  readonly lastError?: TargetError;
}

/** The last failure of a target. */
export interface TargetError {
  readonly at: number;
  /** The vendor's or the network's words, with secrets taken out. */
  readonly message: string;
  readonly class?: FailureClass;
  /** What the vendor sent; absent when it sent nothing. */
  readonly status?: number;
  /** What the system says of a connection that failed, such as `ECONNREFUSED`. */
  readonly errno?: string;
  /** The request that met it. */
  readonly requestId?: string;
}

/** What the gateway knows of its targets and its retries, in this process. */
export interface RoutingState {
  /** Those that were tried, the latest first. */
  readonly targets: readonly TargetReport[];
  readonly retries: RetryState;
  /** The targets (`provider/model`) and providers that operators drained. */
  readonly drained: readonly string[];
}

/** The retries of this process: never more at once than a share of its live calls. */
export interface RetryState {
  /** Calls that have begun and not ended. */
  readonly live: number;
  readonly running: number;
  readonly allowed: number;
  /** Retries that were not made because too many ran. */
  readonly refused: number;
}

/** Who a plugin's own model call is made for. */
export interface CallContext {
  readonly principal: Principal;
  /** The request that this call belongs to. */
  readonly requestId: string;
  /** Ends it. A call without one is cut, and owes what it did, when the gateway or its configuration ends and it has run on for 3 s. */
  readonly signal?: AbortSignal;
  /** What the call is booked under; the principal's own unless set. */
  readonly tags?: readonly string[];
  /** What the caller named its session: a route passes `ctx.state.session`. */
  readonly session?: string | undefined;
  /** The trace that the call belongs to: a route passes `ctx.state.trace`; a new one unless set. */
  readonly trace?: TraceContext | undefined;
  /** Limits that the parent request already counted against. */
  readonly skip?: readonly ('rpm' | 'concurrency')[];
  /** Told what the call came to: usage, cost, target. A route passes `ctx.state.onOutcome`, so that the access log has it. */
  onOutcome?(call: Call, outcome: Outcome): void;
}

/** Who an operation's call is made for, and where it goes when its request's `model` does not say it. */
export interface OperationContext extends CallContext {
  /** Candidates in order; by the request's `model` (an alias or `provider/model`) unless set. */
  readonly targets?: readonly Target[];
  /** The alias that the targets came by, which an allow-list may name. */
  readonly requested?: string;
}
