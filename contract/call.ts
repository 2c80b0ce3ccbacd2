import type { BudgetRule } from './budgets.ts';
import type { ChatRequest, ChatResponse, Usage } from './chat.ts';
import type { GatewayError } from './errors.ts';
import type { FailureClass, ModelInfo, ModelTable, Price, Provider } from './provider.ts';

/** Kind of credential. */
export type CredentialKind = 'key' | 'token' | 'session';

/** Authenticated caller, as returned by an auth plugin. Frozen; never holds the credential itself. */
export interface Principal {
  /**
   * Presented credential: an API key, a token of the identity provider, or a session cookie. Session cookies are accepted on
   * operator routes only.
   */
  readonly credential: CredentialKind;
  readonly userId: string;
  /** Account that pays. Default: the user's own, if no claim or key names another. */
  readonly account: string;
  /** Public id of the key, for limits, budgets, logs and usage. */
  readonly keyId?: string;
  readonly keyName?: string;
  readonly plan?: string;
  /** True if the caller may use all operator routes: an admin key, or a token or session with the role `admin`. */
  readonly isAdmin?: boolean;
  /**
   * Scopes on operator routes for callers that are not admins, such as `usage:read`. A key with scopes may call models only with
   * `models:call`.
   */
  readonly scopes?: readonly string[];
  /** Identity provider groups that make the caller an owner of teams. Only the claims that the configuration names count. */
  readonly groups?: readonly string[];
  /** Expiry of an operator's key, in Unix milliseconds. A session that starts with the key expires at the same time. */
  readonly expiresAt?: number;
  /**
   * Tags that its calls are booked under in addition to the user, such as `team=search`. Tags of the key or token come first, and
   * requests cannot change them. Tags of the request follow.
   */
  readonly tags?: readonly string[];
  /** Tags among `tags` that only the request has set. They label its calls; budgets do not count them. */
  readonly requestTags?: readonly string[];
  /** Permissions of a token, such as `keys:write`. */
  readonly permissions?: readonly string[];
  /** Model allow-list: prefixes of `provider/model` or of `model`, or aliases; absent allows all. */
  readonly models?: readonly string[];
  /** Provider allow-list by instance name; absent allows all. */
  readonly providers?: readonly string[];
  /**
   * Server tools that this key may use in addition to those of its plan: abilities, such as `search`, or names of tools, such as
   * `web_search`. The vendor runs them with the operator's account. A name includes its dated versions. Default: none.
   */
  readonly serverTools?: readonly string[];
  /** Requests and tokens per minute for this key. */
  readonly rpm?: number;
  readonly tpm?: number;
  /** Total nano-dollars that this key may spend. */
  readonly budget?: number;
  /** Spending limits by calendar period, counted under {@link limitsId}. */
  readonly budgets?: readonly BudgetRule[];
  /** Unix milliseconds of the last change of {@link budgets}; absent if they are as old as the key. */
  readonly budgetsSince?: number;
  /** Id that `rpm`, `tpm` and `budget` are counted under. Default: `keyId`. A key and its replacements share it. */
  readonly limitsId?: string;
  /** Limits of the user across all keys, from the token that created the key. */
  readonly userLimits?: UserLimits;
}

/** Limits of a user, counted under `userId`: requests and tokens per minute, and total nano-dollars. */
export interface UserLimits {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly budget?: number;
}

/**
 * Operations and their types: `request`, `response`, and `offer` (the provider's registration for the operation). Core implements
 * `chat` and `count`. A plugin adds an operation by declaration merging: `declare module 'tollgate' { interface Operations {
 * speech: { request: …; response: …; offer: … } } }`.
 */
export interface Operations {
  readonly chat: { readonly request: ChatRequest; readonly response: ChatResponse; readonly offer: Provider };
  /** Counts the input tokens of a chat request. Hooks run for it only if their `operations` include it. */
  readonly count: { readonly request: ChatRequest; readonly response: InputCount; readonly offer: Provider };
}

/**
 * Services that plugins provide to each other, by name. A plugin adds its service by declaration merging: `declare module
 * 'tollgate' { interface Services { clock: Clock } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: plugins fill it
export interface Services {}

/** Number of input tokens of a request. */
export interface InputCount {
  readonly inputTokens: number;
  /** True if the gateway estimated the count, false if the vendor counted. */
  readonly estimated: boolean;
}

/** Operations that core implements. */
export const CHAT = 'chat';
export const COUNT = 'count';

export type Operation = keyof Operations;
export type RequestOf<O extends Operation> = Operations[O]['request'];
export type ResponseOf<O extends Operation> = Operations[O]['response'];
export type OfferOf<O extends Operation> = Operations[O]['offer'];

/** Usage of a call by unit: `prompt_tokens`, `completion_tokens`, `characters`. Whole numbers. */
export type Units = Readonly<Record<string, number>>;

/** Target of a call: a provider's instance name and the model as that provider names it. */
export interface Target {
  readonly provider: string;
  readonly model: string;
}

/** W3C Trace Context of a request. */
export interface TraceContext {
  /** 32 hexadecimal digits, from the caller or generated for the request. */
  readonly traceId: string;
  /** The caller's span, 16 hexadecimal digits; absent if the caller sent none. */
  readonly parentId?: string;
  /** True if the caller records the trace; absent if the caller sent no trace. */
  readonly isSampled?: boolean;
  /** The caller's `tracestate`. */
  readonly state?: string;
  /** HTTP request that brought the trace to this gateway; absent for work of plugins on their own. */
  readonly origin?: RequestOrigin;
}

/** HTTP request behind a call, for the record of the call. */
export interface RequestOrigin {
  /** Caller's address, from trusted proxies if configured. */
  readonly ip: string;
  /** End user in the header that `endUsers.header` names. */
  readonly endUser: string | undefined;
  /** Milliseconds from the arrival of the request until its handler ran: authentication, waiting, reading the body. */
  readonly receiveMs: number;
  /** Part of that in the line of its account. */
  readonly queueMs: number;
}

/**
 * Texts that guardrails check, as paths of strings: `query`, `documents`, `data[].text`. A path includes everything below it. Default:
 * every string; an empty list: none.
 */
export interface OperationTexts {
  readonly request?: readonly string[];
  readonly response?: readonly string[];
  /** Set if hooks cannot see all texts. Guardrails reject such calls. */
  readonly unseen?: UnseenTexts;
}

/** Texts of an operation that pass without hooks. */
export interface UnseenTexts {
  readonly sides: readonly ('request' | 'response')[];
  /** Name in errors, such as `a websocket`. */
  readonly what: string;
  /** Alternative for callers, as a whole sentence. */
  readonly instead: string;
}

/** HTTP side of a chat. */
export interface CallClient {
  /** The client's format. */
  readonly dialect: string;
  /** Validated request body. It may contain more than the canonical request; providers that speak the dialect receive it. */
  readonly body: unknown;
  /** Request headers that may be forwarded to a provider, such as betas; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The caller's `cache-control` header. */
  readonly cacheControl?: string | undefined;
  /** True if the format requires callers to set an output limit. */
  readonly demandsLimit?: boolean | undefined;
  /** True if the caller's own subscription at the provider pays: the call costs the operator nothing. */
  readonly ownSubscription?: boolean | undefined;
}

/**
 * One call, as hooks see it. Only core changes `targets`, `attempts` and `usage`; a plugin keeps its own data in `state` under its
 * own symbol.
 */
export interface Call<O extends Operation = Operation> {
  readonly id: string;
  readonly operation: O;
  /** Request id of the HTTP request; differs from `id` if one request makes several model calls (agents). */
  readonly requestId: string;
  readonly principal: Principal;
  /** Tags, `name=value`: those of the principal, then those of the request. */
  readonly tags: readonly string[];
  /** Session name from the caller. It groups calls; do not trust it for limits or money. */
  readonly session?: string | undefined;
  /** Trace from the caller's `traceparent`, or a new one. */
  readonly trace: TraceContext;
  /**
   * End user of the caller's application: from a header, or from a field such as `user`. The caller sets it; do not trust it for more
   * than the caller's own limits.
   */
  readonly endUser?: string | undefined;
  /** Undefined for other operations and for calls that plugins make. */
  readonly client?: CallClient | undefined;
  readonly request: RequestOf<O>;
  /** True if the caller reads a stream. */
  readonly stream: boolean;
  /** Candidates in order; the first that responds wins. */
  readonly targets: readonly Target[];
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** Fired by client close, deadline and drain. */
  readonly signal: AbortSignal;
  /** Texts that its operation declares; absent if all strings are texts, and for chats. */
  readonly texts?: OperationTexts | undefined;
  /** Limits that do not count this call, because its parent was counted (`rpm`, `concurrency`). */
  readonly skip: ReadonlySet<'rpm' | 'concurrency'>;
  readonly state: Map<symbol, unknown>;
  /**
   * Response headers, such as `x-tollgate-budget-warning`; names in lower case. Changes after the start of the response have no
   * effect.
   */
  readonly headers: Map<string, string>;
}

export type OutcomeStatus = 'ok' | 'error' | 'aborted';

/** One request to a provider. */
export interface CallAttempt {
  /** `provider/model`. */
  readonly target: string;
  /** Name of the provider's key, if the provider has several. */
  readonly key?: string;
  /** HTTP status from the provider; absent if it sent none. */
  readonly status?: number;
  /** Reason of the failure. `class` and `reason` are absent on success. */
  readonly class?: FailureClass;
  /** Message of the provider or the network, redacted. For operators, never for callers. */
  readonly reason?: string;
  /** Milliseconds from sending to the response, or to the failure. */
  readonly ms: number;
}

/** Cost of one unit of a call. */
export interface CostPart {
  /**
   * `input_tokens`, `cached_tokens`, `output_tokens`, `web_search_requests`, …. `vendor_charge`: the vendor reported the cost of
   * the call. `own_subscription`: the caller's own subscription paid.
   */
  readonly unit: string;
  readonly quantity: number;
  /** US dollars, not rounded; null if the price of the unit is unknown. */
  readonly usd: number | null;
}

/** Hook action on a call. */
export interface CallHook {
  /** Instance name. */
  readonly plugin: string;
  readonly hook: string;
  /**
   * `changed`: changed the request, the response or the error. `routed`: chose the targets. `failed`: a bug or an unavailable
   * dependency. `would_…`: the instance is in log mode.
   */
  readonly action: 'changed' | 'answered' | 'routed' | 'refused' | 'failed' | 'would_change' | 'would_refuse';
  /** Milliseconds; present for asynchronous hooks that took more than one. */
  readonly ms?: number;
}

/** Hook that a call waited for. */
export interface HookTime {
  /** Instance name. */
  readonly plugin: string;
  readonly hook: string;
  /** Start, relative to the start of the call, and duration, in milliseconds. */
  readonly startMs: number;
  readonly ms: number;
}

/** Result of a call. Passed to the `finish` hook exactly once, after the last byte. */
export interface Outcome {
  readonly status: OutcomeStatus;
  readonly error?: GatewayError;
  /**
   * Target that responded. Without a response: the target that is owed its cost, else the last one tried. Absent if none was tried.
   */
  readonly target?: Target;
  /** Requests to providers, in the order they were sent. */
  readonly attempts: readonly CallAttempt[];
  /** Limit, budget, check or plugin that rejected the call before any target was tried. */
  readonly refusedBy?: string;
  /** Hook actions in order, the first 20; absent if there were none. Excludes authentication hooks. */
  readonly hooks?: readonly CallHook[];
  /** Asynchronous hooks that took over a millisecond, the first 20; absent if there were none. */
  readonly hookTimes?: readonly HookTime[];
  /** Lane of the request to that target: as the client wrote it, translated, or both. Absent if unknown. */
  readonly lane?: 'native' | 'mixed' | 'translated';
  /** Service tier that served the call as reported by the vendor, else the tier that was sent. */
  readonly serviceTier?: string;
  /** Request fields that were not sent to the target, as listed in `x-tollgate-dropped`. Absent if all were sent. */
  readonly dropped?: readonly string[];
  /** Finish reason of the vendor for a response that was accepted as incomplete. Absent if a standard finish reason covers it. */
  readonly unmappedFinish?: string;
  /** Parts of the response that the caller's format cannot express, such as `images`. Absent if it expresses all. */
  readonly omitted?: readonly string[];
  /** Token counts; `estimated` if the provider reported none. */
  readonly usage?: Usage;
  /** Usage by unit, including the tokens of {@link usage}. Absent if nothing was metered. */
  readonly units?: Units;
  readonly estimated: boolean;
  /** Nano-dollars; absent if the price is unknown. */
  readonly cost?: number;
  /** Components of {@link cost} before rounding; absent if unknown. */
  readonly costParts?: readonly CostPart[];
  /** Nano-dollars saved by a cached response. Present for every cache hit; 0 if its price is unknown. */
  readonly saved?: number;
  /** True if anything was sent upstream. Without it, nothing is owed. */
  readonly sent: boolean;
  /** Milliseconds, measured from the start of the call. */
  readonly durationMs: number;
  readonly firstByteMs?: number;
  /** Streams only: time of the first content and of the end. */
  readonly firstTokenMs?: number;
  readonly lastTokenMs?: number;
  readonly upstreamMs: number;
  /** Milliseconds of pauses before retries; absent without any. */
  readonly retryWaitMs?: number;
}

/** Models of all instances for one operation, for calls, model lists and the command line. */
export interface ModelCatalog {
  /**
   * Returns the model's data; undefined if the provider does not accept the name. A listed name and its dated variants have the row
   * of the list. Another name accepted by prefix or family has no price.
   */
  find(provider: string, model: string): ModelInfo | undefined;
  /** Returns at most three ids that resemble `model`, best first. */
  suggest(provider: string, model: string): readonly string[];
  /** Instance names, in the order of the configuration. */
  providers(): readonly string[];
  has(provider: string): boolean;
  /** Returns whether a provider has its required credential. Calls without it fail with 503 `provider_not_configured`. */
  isConfigured(provider: string): boolean;
  /** Returns all models of one provider, in the order of its list. */
  list(provider: string): readonly string[];
  /** Adds models that a vendor lists; replaces those learnt from it before. */
  learn(provider: string, models: readonly ModelInfo[]): void;
  /** Replaces the model table. */
  use(table: ModelTable): void;
  /** Returns the date of the model table in use. */
  tableDate(): string | undefined;
  /** Returns whether the operator set a price for a model. That price overrides the vendor's. */
  hasOwnPrice(target: Target): boolean;
  /**
   * Returns the price of a model at a time in milliseconds (default: now). The operator's price overrides the table. Undefined if
   * unknown.
   */
  priceOf(target: Target, model: ModelInfo | undefined, at?: number): Price | undefined;
}

/**
 * Circuit state of a target. `open`: skipped until a time. `half-open`: tested by one live call. `drained`: skipped until an
 * operator undrains it.
 */
export type TargetState = 'closed' | 'open' | 'half-open' | 'drained';

/**
 * Reason of an open circuit: the vendor's rate limit, the operator's key or account, consecutive failures, or a report from another
 * worker or node.
 */
export type OpenCause = 'rate_limit' | 'credential' | 'failures' | 'shared';

/** State of a target, for operators. */
export interface TargetReport extends Target {
  /** Name of the provider's key, if there are several. Absent: the target with any of them. */
  readonly key?: string;
  readonly state: TargetState;
  readonly cause?: OpenCause;
  /** Unix milliseconds until which the target is skipped; absent if closed. */
  readonly openUntil?: number;
  /** Failure rate of recent attempts, 0 to 1; recent attempts weigh more. */
  readonly errorRate: number;
  /** Number of rated attempts. */
  readonly attempts: number;
  /** Milliseconds to a non-streaming response, and to the first token of a stream; recent attempts weigh more. */
  readonly wholeMs?: number;
  readonly firstTokenMs?: number;
  readonly lastError?: TargetError;
}

/** Last failure of a target. */
export interface TargetError {
  readonly at: number;
  /** Message of the vendor or the network, redacted. */
  readonly message: string;
  readonly class?: FailureClass;
  /** HTTP status; absent if the vendor sent none. */
  readonly status?: number;
  /** System error code of a failed connection, such as `ECONNREFUSED`. */
  readonly errno?: string;
  /** Request that failed. */
  readonly requestId?: string;
}

/** Targets and retries of this process. */
export interface RoutingState {
  /** Targets that were tried, most recent first. */
  readonly targets: readonly TargetReport[];
  readonly retries: RetryState;
  /** Targets (`provider/model`) and providers that operators drained. */
  readonly drained: readonly string[];
}

/** Retries of this process, limited to a share of its live calls. */
export interface RetryState {
  /** Running calls. */
  readonly live: number;
  readonly running: number;
  readonly allowed: number;
  /** Retries that were skipped because too many were running. */
  readonly refused: number;
}

/** Context of a model call that a plugin makes. */
export interface CallContext {
  readonly principal: Principal;
  /** Request that this call belongs to. */
  readonly requestId: string;
  /**
   * Aborts the call. A call without a signal is aborted 3 s after the gateway or its configuration ends, and its usage so far is
   * charged.
   */
  readonly signal?: AbortSignal;
  /** Tags of the call. Default: the principal's own. */
  readonly tags?: readonly string[];
  /** Session name from the caller: a route passes `ctx.state.session`. */
  readonly session?: string | undefined;
  /** Trace of the call: a route passes `ctx.state.trace`. Default: a new one. */
  readonly trace?: TraceContext | undefined;
  /** Limits that already counted the parent request. */
  readonly skip?: readonly ('rpm' | 'concurrency')[];
  /**
   * Receives the result of the call: usage, cost, target. A route passes `ctx.state.onOutcome`, which adds it to the access log.
   */
  onOutcome?(call: Call, outcome: Outcome): void;
}

/** Context of an operation's call, with its targets if the request's `model` does not name them. */
export interface OperationContext extends CallContext {
  /** Candidates in order. Default: from the request's `model` (an alias or `provider/model`). */
  readonly targets?: readonly Target[];
  /** Alias that resolved to the targets; allow-lists may name it. */
  readonly requested?: string;
}
