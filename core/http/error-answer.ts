import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorObject } from 'ajv';
import type Koa from 'koa';
import { type ErrorCode, errorHeaders, GatewayError, isGatewayError, toGatewayError } from '../../contract/errors.ts';
import { isObject } from '../../contract/json.ts';
import type { Log } from '../../contract/plugin.ts';
import { createId } from '../calls/ids.ts';
import { ownerOf } from '../plugins/attribution.ts';
import { withoutCredentials } from './authenticate.ts';
import type { RequestState } from './lifecycle.ts';
import { RequestAborted } from './read-body.ts';

/**
 * Responds with an error as JSON in the common format. Errors other than GatewayErrors are logged and reported as `internal_error`.
 * A caller that disconnected during its request gets no response. `findOwner` identifies the plugin of an unattributed error.
 */
export function answerError(ctx: Koa.Context, thrown: unknown, log: Log, findOwner?: FindOwner): void {
  const state = ctx.state as RequestState;
  const { requestId } = state;
  if (isAborted(thrown)) {
    log.debug({ request_id: requestId }, 'the caller disconnected before its request was complete');
    ctx.res.destroy();
    return;
  }
  const error = toGatewayError(httpError(thrown) ?? thrown);
  state.error = error;
  if (state.outer) state.outer.error = error;
  // The pipeline logs errors that end a call, because a stream has no error response.
  if (error.code === 'internal_error' && !state.outcomes?.some(({ outcome }) => outcome.error === error))
    logFailure(log, requestId, error, findOwner);
  if (ctx.headerSent || ctx.respond === false) {
    ctx.res.destroy();
    return;
  }
  for (const name of ctx.res.getHeaderNames())
    if (name.startsWith('content-') || name === 'transfer-encoding' || name === 'etag') ctx.res.removeHeader(name);
  const { body, status } = describeError(state, withNote(ctx, error, log), log, findOwner);
  ctx.status = status ?? error.status;
  ctx.set(errorHeaders(error));
  ctx.type = 'application/json; charset=utf-8';
  ctx.body = `${JSON.stringify(body)}\n`;
  if (!ctx.req.complete) answerEarly(ctx);
}

/** Appends the route's error note, if any. */
function withNote({ req, state }: Koa.Context, error: GatewayError, log: Log): GatewayError {
  const { errorNote, body, requestId } = state as RequestState;
  if (!errorNote) return error;
  try {
    const note = errorNote(error, { body, headers: withoutCredentials(req.headers) });
    if (note === undefined) return error;
    const { code, message, param } = error;
    return new GatewayError(code, `${message} ${note}`, param === undefined ? {} : { param });
  } catch (thrown) {
    logFailure(log, requestId, toGatewayError(thrown));
    return error;
  }
}
type FindOwner = (error: unknown) => string | undefined;

/** Logs a failure for the operator, with its plugin. */
function logFailure(log: Log, requestId: string, error: GatewayError, findOwner?: FindOwner): void {
  const cause = error.cause ?? error;
  const plugin = ownerOf(cause) ?? findOwner?.(cause);
  log.error({ request_id: requestId, ...(plugin !== undefined && { plugin }), err: cause }, 'internal error');
}

/** Returns the body of an error in the client's format; in OpenAI's if the dialect itself fails. */
function describeError(
  { dialect, requestId }: RequestState,
  error: GatewayError,
  log: Log,
  findOwner: FindOwner | undefined,
): { readonly body: unknown; readonly status?: number } {
  const body = error.toBody(requestId);
  try {
    return dialect?.error(error, requestId) ?? { body };
  } catch (thrown) {
    logFailure(log, requestId, toGatewayError(thrown), findOwner);
    return { body };
  }
}

/** Returns whether an error means that the caller disconnected, including one rethrown by a plugin's hook. */
function isAborted(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause)
    if (error instanceof RequestAborted) return true;
  return false;
}

/**
 * Sends the response at once although the request is still arriving, and discards the rest of the request. A persistent connection
 * then continues with the next request. Other connections are closed only then, because an earlier close would reset them.
 */
function answerEarly(ctx: Koa.Context): void {
  const { req, res } = ctx;
  const isRead = discardBody(req);
  if (res.shouldKeepAlive && res.getHeader('connection') !== 'close') {
    void isRead.then((isWhole) => isWhole || req.destroy());
    return;
  }
  ctx.set('connection', 'close');
  res.write(ctx.body);
  ctx.respond = false;
  void isRead.then(() => res.end());
}

/** Converts errors with a status from Koa middleware (`http-errors`) to the nearest row of the table. */
function httpError(thrown: unknown): GatewayError | undefined {
  if (!(thrown instanceof Error) || isGatewayError(thrown)) return undefined;
  const { status, expose } = thrown as { status?: unknown; expose?: unknown };
  if (typeof status !== 'number' || expose !== true) return undefined;
  const code = BY_STATUS[status];
  return code && new GatewayError(code, thrown.message.slice(0, 300), { cause: thrown });
}

const BY_STATUS: Readonly<Record<number, ErrorCode>> = Object.freeze({
  400: 'invalid_request',
  401: 'invalid_api_key',
  403: 'permission_denied',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  409: 'conflict',
  413: 'request_too_large',
  415: 'unsupported_media_type',
  429: 'rate_limited',
  503: 'overloaded',
});

/** Responds to invalid or slow HTTP requests in the common format, directly on the socket. */
export function answerClientError({ code }: Error & { code?: string }, socket: Duplex): void {
  // After a failed handshake the client cannot read a response.
  if (!socket.writable || code === 'ECONNRESET' || /^ERR_(?:SSL|TLS)_|^EPROTO$/.test(code ?? '')) {
    socket.destroy();
    return;
  }
  const error = clientError(code);
  const requestId = createId('req_');
  endWithResponse(socket, requestId, error.status, error.toBody(requestId));
}

/** Ends a socket with a complete response, where Node has no response object. */
export function endWithResponse(
  socket: Duplex,
  requestId: string,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = `${JSON.stringify(value)}\n`;
  const head = {
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    'request-id': requestId,
    connection: 'close',
  };
  const lines = Object.entries(head).map(([name, text]) => `${name}: ${text}`);
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n'), () =>
    socket.destroy(),
  );
}

function clientError(code: string | undefined): GatewayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError(
        'headers_too_large',
        'The request headers are over 16 KiB. Send fewer or shorter headers.',
      );
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('request_timeout', 'The request did not arrive in time. Send it again.');
    default:
      return new GatewayError('invalid_request', 'This is not a valid HTTP/1.1 request.');
  }
}

interface DiscardLimits {
  readonly maxBytes: number;
  readonly maxMs: number;
}

const LIMITS: DiscardLimits = Object.freeze({ maxBytes: 32 * 1024 * 1024, maxMs: 5000 });

/**
 * Discards the rest of a request, so that its sender can read the response. Closing a socket with unread bytes resets it and loses
 * the response. Resolves true at the request's end, and false if it takes too long; the connection must then be closed.
 */
export function discardBody(req: IncomingMessage, { maxBytes, maxMs } = LIMITS): Promise<boolean> {
  return new Promise((resolve) => {
    let bytes = 0;
    const finish = (isRead: boolean): void => {
      clearTimeout(timer);
      resolve(isRead);
    };
    const timer = setTimeout(finish, maxMs, false);
    req.on('error', () => finish(false));
    req.on('close', () => finish(req.complete));
    req.on('end', () => finish(true));
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) finish(false);
    });
    req.resume();
    if (req.destroyed) finish(req.complete);
  });
}

/** Returns the 400 for the first error of Ajv in a body or query; `param` is the field as a caller would write it. */
export function requestError(error: ErrorObject, value: unknown, where: string | undefined): GatewayError {
  if (error.instancePath === '' && error.keyword === 'type') {
    return new GatewayError(
      'invalid_request',
      value === undefined ? 'The request has no body; send a JSON object.' : 'The body must be a JSON object.',
    );
  }
  const base = toParam(error.instancePath);
  const extra = extraName(error);
  const param = extra === undefined ? base : joinName(base, extra);
  const subject = `${where ? `${where} ` : ''}"${param || 'body'}"`;
  const advice = where === undefined && error.keyword === 'required' ? adviseOnBody(param, value) : '';
  return new GatewayError('invalid_request', `${subject} ${reason(error)}.${advice}`, param ? { param } : {});
}

const GENERATE_CONTENT = '/v1beta/models/{model}:generateContent';

/** Bodies of other formats: the missing field, the field that they have instead, the path of their format. */
const OTHER_FORMATS: readonly (readonly [missing: string, has: string, path: string])[] = Object.freeze([
  ['messages', 'input', '/v1/responses'],
  ['messages', 'contents', GENERATE_CONTENT],
  ['messages', 'prompt', '/v1/completions'],
  ['input', 'messages', '/v1/chat/completions'],
  ['input', 'contents', GENERATE_CONTENT],
  ['prompt', 'messages', '/v1/chat/completions'],
  ['prompt', 'contents', GENERATE_CONTENT],
  ['contents', 'messages', '/v1/chat/completions'],
  ['contents', 'input', '/v1/responses'],
  ['contents', 'prompt', '/v1/completions'],
  // Gemini's bodies have none: the path has it.
  ['model', 'contents', GENERATE_CONTENT],
]);

/** Returns where to send a body that has the fields of another format; otherwise nothing. */
function adviseOnBody(missing: string, body: unknown): string {
  const found = isObject(body) && OTHER_FORMATS.find(([field, has]) => field === missing && has in body);
  return found ? ` Send a body with "${found[1]}" to ${found[2]}.` : '';
}

/** Converts `/messages/0/role` to `messages[0].role`. */
export function toParam(pointer: string): string {
  let param = '';
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    param = /^\d+$/.test(name) ? `${param}[${name}]` : joinName(param, name);
  }
  return param.length > 200 ? `${param.slice(0, 197)}…` : param;
}

function joinName(base: string, name: string): string {
  const short = name.length > 80 ? `${name.slice(0, 77)}…` : name;
  return base === '' ? short : `${base}.${short}`;
}

function extraName(error: ErrorObject): string | undefined {
  const { missingProperty, additionalProperty, unevaluatedProperty, propertyName } = error.params as Record<
    string,
    string | undefined
  >;
  return missingProperty ?? additionalProperty ?? unevaluatedProperty ?? propertyName;
}

function reason(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'is not a field of this request';
    case 'type':
      return `must be ${article(params['type'])}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as unknown[]).map((allowed) => JSON.stringify(allowed)).join(', ')}`;
    case 'const':
      return `must be ${JSON.stringify(params['allowedValue'])}`;
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return `must be ${String(params['comparison'])} ${String(params['limit'])}`;
    case 'minLength':
      return 'must not be empty';
    case 'minItems':
      return `must have at least ${String(params['limit'])} item(s)`;
    case 'maxItems':
      return `must have at most ${String(params['limit'])} items`;
    case 'maxLength':
      return `must have at most ${String(params['limit'])} characters`;
    case 'maxProperties':
      return `must have at most ${String(params['limit'])} fields`;
    case 'pattern':
      return `must match ${String(params['pattern'])}`;
    default:
      return error.message ?? 'is not valid';
  }
}

function article(type: unknown): string {
  const names = Array.isArray(type) ? type : [type];
  return names
    .map((name) =>
      name === 'null' ? 'null' : /^[aeiou]/.test(String(name)) ? `an ${String(name)}` : `a ${String(name)}`,
    )
    .join(' or ');
}
