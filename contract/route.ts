import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import type Koa from 'koa';
import type { Call, CredentialKind, Outcome, Principal, TraceContext } from './call.ts';
import type { GatewayError } from './errors.ts';
import type { FromSchema, Schema } from './json.ts';

/** What a route needs. `key`: an API key; `token`: a JWT of the identity provider, with `permission` when one is named. */
export type RouteAuth = 'none' | readonly ('key' | 'token')[];

/** What a form with files may be. */
export interface FormLimits {
  /** Of one file. */
  readonly maxFileBytes: number;
  /** Whether the handler reads the files into memory: they are booked under the caller then. */
  readonly readsWhole?: boolean;
  /** Default 1. */
  readonly maxFiles?: number;
}

/** A file of a form; it is deleted when the handler is done. */
export interface UploadedFile {
  /** The form's field. */
  readonly field: string;
  /** The caller's name for it: text to show, never a path to use. */
  readonly name: string;
  readonly contentType: string;
  readonly bytes: number;
  /** Where it is meanwhile. Absolute. */
  readonly path: string;
}

/** What a handler finds in `ctx.state`. Body and files are there until the response is over: keep what is needed longer. */
export interface RouteState<Body = unknown> {
  readonly requestId: string;
  /** The caller's address, as far as proxies in front are believed. */
  readonly ip: string;
  /** Present unless the route's auth is `none`. */
  readonly principal: Principal;
  /** The validated body; undefined when none was sent to a route whose body is optional. */
  readonly body: Body;
  /** The files of a form, for routes with `form`. */
  readonly files?: readonly UploadedFile[];
  /** What the caller named its session in a header such as `x-session-id`; to be passed on as `CallContext.session`. */
  readonly session?: string | undefined;
  /** The trace that the request belongs to; to be passed on as `CallContext.trace`. */
  readonly trace?: TraceContext | undefined;
  /** Fires when the caller hangs up or the gateway drains. */
  readonly signal: AbortSignal;
  /** What the calls made for this request came to so far; absent while there was none. */
  readonly outcomes?: readonly { readonly call: Call; readonly outcome: Outcome }[] | undefined;
  /** Notes a call made for this request, for the access log; to be passed on as `CallContext.onOutcome`. */
  onOutcome(call: Call, outcome: Outcome): void;
  /** Runs this when the response is over: its last byte is out, or its caller has left. Middleware has it too, as `ctx.state.onClosed`. */
  onClosed(listener: () => void): void;
  /** Sends a request to this gateway itself, from the caller's address: all that holds for requests holds for it. Resolves with the head of the response. */
  send(request: OwnRequest): Promise<IncomingMessage>;
}

/** A request that a route sends to its own gateway. */
export interface OwnRequest {
  readonly method: string;
  /** As it stands in a URL, with the query. */
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  /** Read as it comes. */
  readonly body: Readable;
  readonly signal: AbortSignal;
}

export type RouteContext<Body = unknown> = Koa.ParameterizedContext<RouteState<Body>> & {
  readonly params: Readonly<Record<string, string>>;
};

/** The kinds of credentials that a route takes. A session only goes where operators are: no model call is paid by a cookie. */
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

/** What is known of a request that is refused. */
export interface RefusedRequest {
  /** The validated body; undefined when the request was refused before. */
  readonly body: unknown;
  readonly headers: IncomingHttpHeaders;
}

/** Gets who was refused a route of operators: the caller where it is known, the address, and the route as it is registered. */
export type RefusalWatcher = (refused: {
  readonly error: GatewayError;
  readonly route: string;
  readonly ip: string;
  readonly principal: Principal | undefined;
}) => void;

/** Ends the message of every error of a route. */
export type ErrorNote = NonNullable<Route['errorNote']>;

export interface Route<Body extends object = object> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** @koa/router's syntax: `/api/things/:id`, `/files/*path`. */
  readonly path: string;
  /** One line, for OpenAPI. */
  readonly summary: string;
  readonly description?: string;
  readonly auth: RouteAuth;
  /** Whether it gives way to another plugin's route with the same method and path, whichever was registered first. */
  readonly isFallback?: boolean;
  /** Whether it costs something, so that a request with an `Idempotency-Key` is worked on once and its response kept. Needs a body. */
  readonly isIdempotent?: boolean;
  /** Whether monitors ask it: no line in the access log, and a response also while the gateway sheds load. Its path has no parameters. */
  readonly isProbe?: boolean;
  /** Whether its response may go on for ever, such as a feed: it is ended as soon as the gateway drains. */
  readonly isEndless?: boolean;
  /** A permission that a token needs; keys do not have any and are not asked. */
  readonly permission?: string;
  /** `admin`: for operators alone, by a key that was made for it, a token with a role, or the session of a person who signed in; {@link permission} is not asked then. */
  readonly role?: 'admin';
  /** With {@link role}: what an operator needs who is no admin, such as `usage:read`; `any`: whichever scope. Without it the route is for admins alone. */
  readonly scope?: string;
  /** The JSON body's schema; a route without one takes no body. */
  readonly body?: Body;
  /** Whether an empty body is fine. */
  readonly bodyOptional?: boolean;
  readonly maxBodyBytes?: number;
  /** Takes `multipart/form-data` instead of JSON: text fields in `state.body` (which `body` then describes), files in `state.files`. */
  readonly form?: FormLimits;
  /** Schema of the query (type object; values arrive as strings). Unknown names are refused. */
  readonly query?: Schema;
  /** By status: a description, or a JSON schema (or `{ contentType, schema }`) of the response. Errors are added by core. */
  readonly responses: Readonly<
    Record<number, string | { readonly description: string; readonly schema?: Schema; readonly contentType?: string }>
  >;
  /**
   * What the message of every error at this path ends with, whoever refuses and however early (a credential, a limit, load, a body
   * that is too large or wrong); undefined for an error that needs nothing. The path has no parameters. It does no I/O.
   */
  errorNote?(error: GatewayError, request: RefusedRequest): string | undefined;
  handler(ctx: RouteContext<Body extends Schema ? FromSchema<Body> : unknown>): void | Promise<void>;
}

/** Memory that one request, message or response needs, booked for who sent it. */
export interface Hold {
  /** What it holds now. */
  readonly bytes: number;
  /**
   * Books more, in bytes of heap. Throws `request_too_large` when this hold alone would need more than one owner may have,
   * `rate_limited` when the owner's other holds are in the way, and `overloaded` when those of others are. After
   * {@link release} it does nothing.
   */
  grow(heapBytes: number): void;
  /** Books this much in all; throws as {@link grow} does where that is more than before. */
  resize(heapBytes: number): void;
  release(): void;
}

/** Counts what comes, and calls once when that is slower than the least rate. */
export interface RateWatch {
  add(bytes: number): void;
  stop(): void;
}

/** The memory in flight as one caller has it. */
export interface CallerMemory {
  /** Bytes of heap for one byte of text: as it came, what is parsed from that, and what is sent on. */
  readonly heapPerByte: number;
  /** Opens a hold, of no bytes unless given; throws as {@link Hold.grow} does. */
  book(heapBytes?: number): Hold;
  /**
   * Parses JSON by the rules and bounds of a body; `reserve` gets the bytes of heap that the value needs, and may throw. The text waits in the
   * line of the caller's account, as a request does; a large one also waits for its turn.
   */
  parse(text: string, reserve: (heapBytes: number) => void): unknown;
  /** Watches how fast bytes come; `onSlow` gets the error that ends what is too slow. */
  watchRate(onSlow: (error: GatewayError) => void): RateWatch;
}

/** A request to upgrade a connection, of a caller whose key was accepted and whose page may connect. */
export interface Upgrade {
  readonly request: IncomingMessage;
  /** Without the query. */
  readonly path: string;
  /** The caller's address, as far as proxies in front are believed. */
  readonly address: string;
  readonly principal: Principal;
  /** The connection, and what came on it already: for the library that speaks its protocol. Core cuts it at the end of a drain. */
  readonly stream: Duplex;
  readonly head: Buffer;
  /** The most bytes of one message, as of a body. */
  readonly maxBytes: number;
  /** Fires when the gateway drains; its reason is the error to tell. */
  readonly signal: AbortSignal;
  readonly memory: CallerMemory;
  /** Checks the caller anew; rejects with what the upgrade would be refused with now. */
  recheck(): Promise<void>;
  /** Posts JSON to the same path with the headers of the upgrade, the credential among them: all that holds for a request of the caller holds for it. */
  post(body: string, signal: AbortSignal): Promise<IncomingMessage>;
}

/** What else a path that takes websockets wants. */
export interface UpgradeOptions {
  /** The beginning of a subprotocol with a key behind it, for pages, which can set no header. It is taken out before anyone sees it. */
  readonly keyProtocol?: string;
}

/** Takes the connection over, or throws a `GatewayError` before it wrote anything: core refuses the upgrade with that. */
export type UpgradeHandler = (upgrade: Upgrade) => void | Promise<void>;

/**
 * The name of the cookie that holds the session of a person who signed in, as the OpenAPI document tells it. Over https it has the
 * prefix `__Host-`: no other host can set it.
 */
export const SESSION_COOKIE = 'tollgate-session';
