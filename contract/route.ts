import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import type Koa from 'koa';
import type { Call, CallContext, CredentialKind, Outcome, Principal, TraceContext } from './call.ts';
import type { GatewayError } from './errors.ts';
import type { FromSchema, Schema } from './json.ts';

/**
 * Credentials that a route accepts. `key`: an API key; `token`: a JWT of the identity provider, with `permission` if one is set.
 */
export type RouteAuth = 'none' | readonly ('key' | 'token')[];

/** Limits of a multipart form. */
export interface FormLimits {
  /** Per file. */
  readonly maxFileBytes: number;
  /** True if the handler reads the files into memory; their size is then charged to the caller's memory limit. */
  readonly readsWhole?: boolean;
  /** Default 1. */
  readonly maxFiles?: number;
}

/** Uploaded file; deleted when the handler returns. */
export interface UploadedFile {
  /** Form field. */
  readonly field: string;
  /** The caller's file name: for display, never a path. */
  readonly name: string;
  readonly contentType: string;
  readonly bytes: number;
  /** Temporary path. Absolute. */
  readonly path: string;
}

/** Value of `ctx.state` in a handler. Body and files exist until the response ends; copy longer-lived data. */
export interface RouteState<Body = unknown> {
  readonly requestId: string;
  /** Caller's address, from trusted proxies if configured. */
  readonly ip: string;
  /** Missing on routes with auth `none`. */
  readonly principal: Principal;
  /** Validated body; undefined for an empty optional body. */
  readonly body: Body;
  /** Uploaded files, for routes with `form`. */
  readonly files?: readonly UploadedFile[];
  /** Session name from a header such as `x-session-id`; pass it on as `CallContext.session`. */
  readonly session?: string | undefined;
  /** Trace of the request; pass it on as `CallContext.trace`. */
  readonly trace?: TraceContext | undefined;
  /** Fires when the caller disconnects or the gateway drains. */
  readonly signal: AbortSignal;
  /** Silence of an event stream after which a keep-alive is sent: `server.sseKeepAlive`. */
  readonly sseKeepAliveMs?: number | undefined;
  /** Results of the calls for this request so far; absent if there were none. */
  readonly outcomes?: readonly { readonly call: Call; readonly outcome: Outcome }[] | undefined;
  /** Records a call for this request, for the access log; pass it on as `CallContext.onOutcome`. */
  onOutcome(call: Call, outcome: Outcome): void;
  /**
   * Adds a listener for the end of the response: its last byte was sent, or the caller disconnected. Also available to middleware,
   * as `ctx.state.onClosed`.
   */
  onClosed(listener: () => void): void;
  /**
   * Sends a request to this gateway from the caller's address. All checks of requests apply. Resolves with the head of the
   * response.
   */
  send(request: OwnRequest): Promise<IncomingMessage>;
}

/** Request of a route to its own gateway. */
export interface OwnRequest {
  readonly method: string;
  /** Path and query, URL-encoded. */
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  /** Consumed as a stream. */
  readonly body: Readable;
  readonly signal: AbortSignal;
}

/** Returns the context of a call that a route makes for its caller, such as for `api.models.call`. */
export function callContext({ principal, requestId, session, trace, signal, onOutcome }: RouteState): CallContext {
  return { principal, requestId, session, trace, signal, onOutcome };
}

export type RouteContext<Body = unknown> = Koa.ParameterizedContext<RouteState<Body>> & {
  readonly params: Readonly<Record<string, string>>;
};

/**
 * Returns the kinds of credentials that a route accepts. Sessions are accepted only on operator routes: a cookie never pays for a
 * model call.
 */
export function kindsTaken({
  auth,
  role,
}: {
  readonly auth: RouteAuth;
  readonly role?: Route['role'] | undefined;
}): readonly CredentialKind[] {
  if (auth === 'none') return [];
  return role === 'admin' ? [...auth, 'session'] : auth;
}

/** Data of a rejected request. */
export interface RefusedRequest {
  /** Validated body; undefined if the request was rejected before validation. */
  readonly body: unknown;
  readonly headers: IncomingHttpHeaders;
}

/** Receives each rejected caller of an operator route: the principal if known, the address, and the route as registered. */
export type RefusalWatcher = (refused: {
  readonly error: GatewayError;
  readonly route: string;
  readonly ip: string;
  readonly principal: Principal | undefined;
}) => void;

/** Text added to the message of every error of a route. */
export type ErrorNote = NonNullable<Route['errorNote']>;

export interface Route<Body extends object = object> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Syntax of @koa/router: `/api/things/:id`, `/files/*path`. */
  readonly path: string;
  /** One line, for OpenAPI. */
  readonly summary: string;
  readonly description?: string;
  readonly auth: RouteAuth;
  /** True if another plugin's route with the same method and path takes precedence, regardless of registration order. */
  readonly isFallback?: boolean;
  /** True for routes with a cost: a request with an `Idempotency-Key` runs once and its response is stored. Requires a body. */
  readonly isIdempotent?: boolean;
  /** True for monitoring endpoints: no access log, and a response even under load shedding. Its path has no parameters. */
  readonly isProbe?: boolean;
  /** True if its response may be endless, such as a feed: it ends at the start of a drain. */
  readonly isEndless?: boolean;
  /** Permission that a token needs; keys have no permissions and are not checked. */
  readonly permission?: string;
  /**
   * `admin`: for operators only, by an admin key, a token with a role, or a session of a signed-in person. {@link permission} is
   * not checked then.
   */
  readonly role?: 'admin';
  /**
   * With {@link role}: scope for operators who are not admins, such as `usage:read`; `any` accepts every scope. Without it only
   * admins have access.
   */
  readonly scope?: string;
  /** JSON body schema; a route without one accepts no body. */
  readonly body?: Body;
  /** True if the body may be empty. */
  readonly bodyOptional?: boolean;
  readonly maxBodyBytes?: number;
  /** Accepts `multipart/form-data` instead of JSON: text fields in `state.body` (described by `body`), files in `state.files`. */
  readonly form?: FormLimits;
  /** Query schema (type object; values arrive as strings). Unknown names are rejected. */
  readonly query?: Schema;
  /** Responses by status: a description, or a JSON schema (or `{ contentType, schema }`). Core adds the errors. */
  readonly responses: Readonly<
    Record<number, string | { readonly description: string; readonly schema?: Schema; readonly contentType?: string }>
  >;
  /**
   * Returns a text to append to the message of every error at this path, at any stage (credential, limit, load, invalid or
   * oversized body). Undefined for no text. The path has no parameters. No I/O.
   */
  errorNote?(error: GatewayError, request: RefusedRequest): string | undefined;
  handler(ctx: RouteContext<Body extends Schema ? FromSchema<Body> : unknown>): void | Promise<void>;
}

/** Memory reserved for one request, message or response, charged to its owner. */
export interface Hold {
  /** Reserved bytes. */
  readonly bytes: number;
  /**
   * Reserves more bytes of heap. Throws `request_too_large` if this hold alone exceeds the owner's limit, `rate_limited` if the
   * owner's other holds prevent it, and `overloaded` if those of others do. No effect after {@link release}.
   */
  grow(heapBytes: number): void;
  /** Sets the total reservation. An increase throws as {@link grow} does. */
  resize(heapBytes: number): void;
  release(): void;
}

/** Counts incoming bytes and calls back once if the rate falls below the minimum. */
export interface RateWatch {
  add(bytes: number): void;
  stop(): void;
}

/** Memory accounting of one caller. */
export interface CallerMemory {
  /** Bytes of heap per byte of text: received, parsed and forwarded. */
  readonly heapPerByte: number;
  /** Opens a hold; default: 0 bytes. Throws as {@link Hold.grow} does. */
  book(heapBytes?: number): Hold;
  /**
   * Parses JSON with the rules and limits of a body. `reserve` receives the heap size of the value, and may throw. The text waits
   * in the queue of the caller's account, as a request does; a large text also waits for a parse slot.
   */
  parse(text: string, reserve: (heapBytes: number) => void): unknown;
  /** Watches the rate of incoming bytes; `onSlow` receives the error that ends a slow transfer. */
  watchRate(onSlow: (error: GatewayError) => void): RateWatch;
}

/** Upgrade request of an authenticated caller from an allowed origin. */
export interface Upgrade {
  readonly request: IncomingMessage;
  /** Path without the query. */
  readonly path: string;
  /** Caller's address, from trusted proxies if configured. */
  readonly address: string;
  readonly principal: Principal;
  /** Connection and its already received bytes, for the library that speaks its protocol. Core closes it at the end of a drain. */
  readonly stream: Duplex;
  readonly head: Buffer;
  /** Maximum bytes of one message, as for a body. */
  readonly maxBytes: number;
  /** Fires when the gateway drains; its reason is the error to send. */
  readonly signal: AbortSignal;
  readonly memory: CallerMemory;
  /** Authenticates the caller again; rejects with the error that the upgrade would fail with now. */
  recheck(): Promise<void>;
  /**
   * Posts JSON to the same path with the headers of the upgrade, including the credential. All checks of the caller's requests
   * apply.
   */
  post(body: string, signal: AbortSignal): Promise<IncomingMessage>;
}

/** Options of a websocket path. */
export interface UpgradeOptions {
  /**
   * Prefix of a subprotocol that contains a key, for browsers, which cannot set headers. It is removed before any handler sees it.
   */
  readonly keyProtocol?: string;
}

/** Takes over the connection, or throws a `GatewayError` before its first write; core then rejects the upgrade with that error. */
export type UpgradeHandler = (upgrade: Upgrade) => void | Promise<void>;

/**
 * Name of the session cookie of a signed-in person, as in the OpenAPI document. Over https it has the prefix `__Host-`: no other
 * host can set it.
 */
export const SESSION_COOKIE = 'tollgate-session';
