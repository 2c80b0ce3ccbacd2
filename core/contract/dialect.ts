import type { ChatChunk, ChatRequest, ChatResponse } from './chat.ts';
import type { GatewayError } from './errors.ts';
import type { Schema } from './json.ts';

/** A request as it came in over HTTP, its body checked by the dialect's schema. */
export interface DialectInput<Body = unknown> {
  readonly body: Body;
  /** Parameters of the route's path, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Names in lower case; without credentials. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** What a dialect makes of a request. */
export interface DialectRequest {
  readonly request: ChatRequest;
  /** The provider that the caller named apart from the model, such as in the path. */
  readonly provider?: string;
}

/** What a dialect may know of the call that it writes for. It has no clock and does no I/O. */
export interface DialectContext<Body = unknown> {
  readonly input: DialectInput<Body>;
  /** The canonical request as the dialect read it. */
  readonly request: ChatRequest;
  /** The call's id, unique, for formats whose responses have one. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly requestId: string;
  /** Input tokens, estimated before the call was sent, for formats that tell them first. */
  readonly estimatedInputTokens: number;
}

/** Writes one stream. Each text is whole frames, ready to be sent. */
export interface DialectStream {
  /** Frames for one canonical chunk; the last chunk has the usage, whatever the caller asked for. */
  push(chunk: ChatChunk): string;
  /** Frames of a complete end. */
  end(): string;
  /** Frames of an end by an error; nothing follows them. */
  fail(error: GatewayError, requestId: string): string;
}

/** The way in of a dialect, as data. */
export interface DialectRoute {
  /** @koa/router's syntax. */
  readonly path: string;
  /** One line, for OpenAPI. */
  readonly summary: string;
  readonly description?: string;
}

/** A client format of chat, both directions; pure. Registered with `api.dialect`. */
export interface DialectDefinition<Body = unknown> {
  readonly name: string;
  /** Of the body; it validates and documents. */
  readonly request: Schema;
  /** Of a whole response, for the OpenAPI document. */
  readonly response: Schema;
  readonly routes: readonly DialectRoute[];
  /** Throws `GatewayError('invalid_request', …, { param })` for what cannot be said canonically. */
  read(input: DialectInput<Body>): DialectRequest;
  /** The body of a whole response. */
  write(response: ChatResponse, context: DialectContext<Body>): unknown;
  stream(context: DialectContext<Body>): DialectStream;
  /** What is sent while a provider is silent: a comment, or an event of the format. */
  readonly keepAlive: string;
  /** The body of an error, and its status where the format has another one. */
  error(error: GatewayError, requestId: string): { readonly body: unknown; readonly status?: number };
}
