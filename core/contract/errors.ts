import { ERRORS, type ErrorRow, type ErrorType } from './error-table.ts';

export { ERRORS, type ErrorType };

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorOptions {
  /** The path of the field that is wrong, as `messages[0].role`. */
  readonly param?: string;
  /** When a retry may succeed; sent as `retry-after` (at most 60 s) and `retry-after-ms`. */
  readonly retryAfterMs?: number;
  /** Extra response headers, such as `x-ratelimit-*`; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What went wrong underneath; logged, never sent. */
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

/** An error with a row in {@link ERRORS}. Its message reaches the caller, so it holds no secret, host, path or stack. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly headers: Readonly<Record<string, string>>;

  /** Throws a TypeError for a code that is not in the table, which plugins in JavaScript may write. */
  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    if (!Object.hasOwn(ERRORS, code))
      throw new TypeError(`there is no error code "${String(code)}"; docs/errors.md lists all of them`);
    this.code = code;
    this.param = options.param;
    this.retryAfterMs = options.retryAfterMs;
    this.headers = options.headers ?? {};
    Object.defineProperty(this, BRAND, { value: true });
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  get type(): ErrorType {
    return ERRORS[this.code].type;
  }

  /** The body that callers see. */
  toBody(requestId?: string): ErrorBody {
    const { message, type, code, param } = this;
    return { error: { message, type, code, param: param ?? null, ...(requestId && { request_id: requestId }) } };
  }
}

/** Whether a value is a {@link GatewayError}, also one made by another copy of this package (a plugin's). */
export function isGatewayError(value: unknown): value is GatewayError {
  if (typeof value !== 'object' || value === null) return false;
  const { [BRAND]: isBranded, code } = value as { readonly [BRAND]?: unknown; readonly code?: unknown };
  // Another copy may know codes that this one does not.
  return isBranded === true && typeof code === 'string' && Object.hasOwn(ERRORS, code);
}

/** Any thrown value as a {@link GatewayError}: what is not one already becomes `internal_error` with a fixed sentence. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (isGatewayError(thrown)) return thrown;
  return new GatewayError(
    'internal_error',
    'The gateway failed to handle this request. The request id finds the reason in its log.',
    {
      cause: thrown,
    },
  );
}

/** The headers of an error response: retry hints, `www-authenticate`, and what the error itself carries. */
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
