/**
 * Error class of the gateway and the table of error codes. Callers rely on the code, never on the message; the code's row defines
 * everything else. A test checks `docs/http.md` against this table.
 */

/** Values of `error.type` that OpenAI's SDKs know. */
export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'insufficient_quota'
  | 'rate_limit_error'
  | 'upstream_error'
  | 'server_error';

interface ErrorRow {
  readonly status: number;
  readonly type: ErrorType;
  /** Cause, for the docs. */
  readonly when: string;
  /**
   * Value of `x-should-retry`; undefined leaves the decision to the SDK. False where no retry helps. Other errors of providers have
   * none: a call sets the header if other targets and retries failed too.
   */
  readonly retry?: boolean;
}

const request = 'invalid_request_error';
const authentication = 'authentication_error';
const upstream = 'upstream_error';

export const ERRORS = Object.freeze({
  invalid_json: { status: 400, type: request, when: 'The body is not JSON, not UTF-8, or nested too deeply.' },
  invalid_request: {
    status: 400,
    type: request,
    when: 'A field is missing, has the wrong type or is out of range; `param` names it.',
  },
  context_length_exceeded: {
    status: 400,
    type: request,
    when: 'The messages do not fit into the context window of the model.',
  },
  content_filtered: {
    status: 400,
    type: request,
    when: 'The provider, or a policy of this gateway, refused the content.',
  },
  previous_response_not_found: {
    status: 400,
    type: request,
    when: 'The previous response is not stored or has expired; send the whole conversation.',
  },
  ambiguous_credentials: { status: 400, type: request, when: 'One request has two different credentials.' },
  missing_api_key: { status: 401, type: authentication, when: 'The route needs a credential and none was sent.' },
  invalid_api_key: {
    status: 401,
    type: authentication,
    when: 'The API key is malformed or unknown, or the route does not accept this kind of credential.',
  },
  expired_api_key: { status: 401, type: authentication, when: 'The API key is past its `expires_at`.' },
  revoked_api_key: { status: 401, type: authentication, when: 'The API key was revoked.' },
  invalid_token: {
    status: 401,
    type: authentication,
    when: 'The JWT is malformed, expired, of a wrong issuer or audience, or its signature does not verify.',
  },
  insufficient_balance: {
    status: 402,
    type: 'insufficient_quota',
    retry: false,
    when: 'An enforced balance or a budget does not cover the call; the message names it.',
  },
  permission_denied: {
    status: 403,
    type: 'permission_error',
    retry: false,
    when: 'The credential is valid but lacks the permission; or the provider refuses the request to the operator’s account.',
  },
  model_not_allowed: { status: 403, type: 'permission_error', when: 'This key may not use this model or provider.' },
  unsupported_provider: { status: 404, type: request, when: 'No provider of this name is configured.' },
  unsupported_model: {
    status: 404,
    type: request,
    when: 'The provider has no model of this name or prefix; the message names similar ones.',
  },
  not_found: {
    status: 404,
    type: request,
    when: 'The object does not exist, belongs to another user, or is unknown to the provider.',
  },
  unknown_url: { status: 404, type: request, when: 'No route has this path.' },
  method_not_allowed: {
    status: 405,
    type: request,
    when: 'The path does not support the method; `allow` lists the supported ones.',
  },
  request_timeout: { status: 408, type: request, when: 'The request did not arrive in time.' },
  conflict: { status: 409, type: request, retry: false, when: 'The change conflicts with another one.' },
  precondition_failed: {
    status: 412,
    type: request,
    retry: false,
    when: 'The object changed since the version in `If-Match`; read it again. With `If-None-Match: *`: it exists.',
  },
  request_too_large: {
    status: 413,
    type: request,
    when: 'The body, a text in it, or the request for the provider exceeds a limit; the message names the limit.',
  },
  unsupported_media_type: {
    status: 415,
    type: request,
    when: 'The body is not `application/json`, or has an unsupported `content-encoding`.',
  },
  upgrade_required: {
    status: 426,
    type: request,
    retry: false,
    when: 'Websockets are disabled for the path; use POST.',
  },
  rate_limited: {
    status: 429,
    type: 'rate_limit_error',
    when: 'A limit of this gateway is reached; the message names it.',
  },
  upstream_rate_limited: {
    status: 429,
    type: 'rate_limit_error',
    when: 'The provider’s own rate limit is reached, or the one that the operator set for it over all callers.',
  },
  headers_too_large: { status: 431, type: request, when: 'The request headers are over 16 KiB or more than 100.' },
  internal_error: {
    status: 500,
    type: 'server_error',
    when: 'An error in the gateway or in a plugin; the log has it under the request id.',
  },
  provider_not_configured: {
    status: 503,
    type: upstream,
    retry: false,
    when: 'The provider is named in the configuration but has no key.',
  },
  provider_unavailable: {
    status: 503,
    type: upstream,
    when: 'The provider cannot be reached, returned a server error, or interrupted the response.',
  },
  provider_overloaded: {
    status: 503,
    type: upstream,
    when: 'The provider is overloaded; a later attempt may succeed.',
  },
  provider_timeout: {
    status: 503,
    type: upstream,
    when: 'The provider did not connect, respond or continue in time.',
  },
  provider_auth_failed: {
    status: 503,
    type: upstream,
    retry: false,
    when: 'The provider rejected the operator’s key. The caller’s key is fine.',
  },
  provider_quota_exhausted: {
    status: 503,
    type: upstream,
    retry: false,
    when: 'The operator’s account at the provider is out of credit.',
  },
  provider_invalid_response: {
    status: 503,
    type: upstream,
    when: 'The provider returned an invalid response.',
  },
  store_unavailable: {
    status: 503,
    type: 'server_error',
    when: 'The store of keys, balances or limits does not respond.',
  },
  overloaded: { status: 503, type: 'server_error', when: 'The gateway is overloaded and rejects requests.' },
  shutting_down: { status: 503, type: 'server_error', when: 'The gateway is draining.' },
  feature_disabled: {
    status: 503,
    type: 'server_error',
    retry: false,
    when: 'The feature is not configured; the message tells how to enable it.',
  },
} as const satisfies Record<string, ErrorRow>);

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorOptions {
  /** Path of the invalid field, such as `messages[0].role`. */
  readonly param?: string;
  /** Delay after which a retry may succeed; sent as `retry-after` (at most 60 s) and `retry-after-ms`. */
  readonly retryAfterMs?: number;
  /** Extra response headers, such as `x-ratelimit-*`; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Name of the rejecting limit, budget or plugin, such as `budget monthly`. For the record of the call and the log, never sent.
   */
  readonly refusedBy?: string;
  /** Underlying error; logged, never sent. */
  readonly cause?: unknown;
}

/** The JSON body of every error response and of every error frame in a stream. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: ErrorType;
    readonly code: ErrorCode;
    readonly param: string | null;
    readonly request_id?: string;
  };
}

const BRAND = Symbol.for('tollgate.GatewayError');

/** Error with a row in {@link ERRORS}. Its message reaches the caller, so it contains no secret, host, path or stack. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly refusedBy: string | undefined;

  /** Throws a TypeError for an unknown code, which plugins in JavaScript may pass. */
  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    if (!Object.hasOwn(ERRORS, code))
      throw new TypeError(`the error code "${String(code)}" does not exist; docs/http.md lists all codes`);
    this.code = code;
    this.param = options.param;
    this.retryAfterMs = options.retryAfterMs;
    this.headers = options.headers ?? {};
    this.refusedBy = options.refusedBy;
    Object.defineProperty(this, BRAND, { value: true });
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  get type(): ErrorType {
    return ERRORS[this.code].type;
  }

  /** Returns the response body. */
  toBody(requestId?: string): ErrorBody {
    const { message, type, code, param } = this;
    return { error: { message, type, code, param: param ?? null, ...(requestId && { request_id: requestId }) } };
  }
}

/** Returns whether a value is a {@link GatewayError}, including one made by another copy of this package (a plugin's). */
export function isGatewayError(value: unknown): value is GatewayError {
  if (typeof value !== 'object' || value === null) return false;
  const { [BRAND]: isBranded, code } = value as { readonly [BRAND]?: unknown; readonly code?: unknown };
  // Another copy may know other codes.
  return isBranded === true && typeof code === 'string' && Object.hasOwn(ERRORS, code);
}

/** Returns a copy of the error with another message, path or headers. */
export function rewordError(
  error: GatewayError,
  change: {
    readonly message?: string;
    readonly param?: string | undefined;
    readonly headers?: ErrorOptions['headers'];
  },
): GatewayError {
  const { code, message, param, retryAfterMs, headers, refusedBy, cause } = error;
  const options = { param, retryAfterMs, headers, refusedBy, cause, ...change } as ErrorOptions;
  return new GatewayError(code, change.message ?? message, options);
}

/** Converts any thrown value to a {@link GatewayError}; unknown values become `internal_error` with a fixed message. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (isGatewayError(thrown)) return thrown;
  return new GatewayError(
    'internal_error',
    'The gateway failed to handle this request. Search its log for the request id.',
    {
      cause: thrown,
    },
  );
}

/** Returns the headers of an error response: retry hints, `www-authenticate`, and the error's own headers. */
export function errorHeaders(error: GatewayError): Record<string, string> {
  const row: ErrorRow = ERRORS[error.code];
  const headers: Record<string, string> = { ...error.headers };
  if (row.status === 401) headers['www-authenticate'] = 'Bearer';
  if (row.retry === false) headers['x-should-retry'] ??= 'false';
  if (error.retryAfterMs !== undefined) {
    const ms = Math.min(Math.max(Math.ceil(error.retryAfterMs), 1), 60_000);
    headers['retry-after'] = String(Math.ceil(ms / 1000));
    headers['retry-after-ms'] = String(ms);
    if (error.retryAfterMs > 60_000) headers['x-should-retry'] = 'false';
  }
  return headers;
}
