import type { IncomingMessage } from 'node:http';
import { isGatewayError, type PluginApi, type Route, type RouteContext } from '../../../contract/index.ts';
import { DEVICE_PATH } from '../kit/introductions.ts';
import { createSignInRate } from '../kit/sign-in-rate.ts';
import type { SignInOptions } from './config-schema.ts';
import { GRANT_MS, type Grants, INTERVAL_S } from './grants.ts';
import type { SignIns, Tokens } from './sign-ins.ts';

/** Dependencies of the routes for programs. */
export interface OAuthParts {
  readonly options: SignInOptions;
  readonly grants: Grants;
  readonly signIns: SignIns;
  readonly audit: PluginApi['operators']['audit'];
  readonly log: PluginApi['log'];
  /** Counts a request without a credential; throws `rate_limited` above the limit. */
  count(what: Rate, address: string, now: number): Promise<void>;
  /** Throws for people who may not, or may no longer, sign in. */
  refuse(person: { readonly userId: string; readonly words: readonly string[] }): Promise<void>;
}

/** Requests per minute from one network. */
const RATES = Object.freeze({ begin: 30, code: 30, token: 600 });
export type Rate = keyof typeof RATES;

export function createRates(): OAuthParts['count'] {
  const { begin, code, token } = RATES;
  const rates = { begin: createSignInRate(begin), code: createSignInRate(code), token: createSignInRate(token) };
  return (what, address, now) => rates[what](address, now);
}

/** OAuth errors (RFC 6749, section 5.2) with their status. */
const STATUS = Object.freeze({
  invalid_request: 400,
  unsupported_grant_type: 400,
  authorization_pending: 400,
  slow_down: 400,
  access_denied: 400,
  expired_token: 400,
  // Claude Code treats a 401 with it as the end of its sign-in.
  invalid_grant: 401,
  temporarily_unavailable: 503,
});
type OAuthCode = keyof typeof STATUS;

class OAuthError extends Error {
  override readonly name = 'OAuthError';
  readonly code: OAuthCode;
  constructor(code: OAuthCode, message: string) {
    super(message);
    this.code = code;
  }
}

const METADATA_PATH = '/.well-known/oauth-authorization-server';
const AUTHORIZATION_PATH = '/oauth/device_authorization';
const TOKEN_PATH = '/oauth/token';
const REVOKE_PATH = '/oauth/revoke';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

const ERROR = {
  type: 'object',
  required: ['error'],
  properties: { error: { enum: Object.keys(STATUS) }, error_description: { type: 'string' } },
} as const;
const TOKENS = {
  type: 'object',
  required: ['access_token', 'token_type', 'expires_in', 'refresh_token'],
  properties: {
    access_token: { type: 'string', description: 'Sent as `authorization: Bearer`; opaque.' },
    token_type: { const: 'Bearer' },
    expires_in: { type: 'integer', description: 'Seconds.' },
    refresh_token: { type: 'string', description: 'Valid once, for the next tokens.' },
    email: { type: 'string', description: 'Id of the person who approved.' },
  },
} as const;
const FORM = 'The body is a form: `application/x-www-form-urlencoded`, at most 8 KiB. Unknown fields are ignored.';
const REFUSED = { description: 'An error of OAuth 2.0.', schema: ERROR };

/** Routes for programs without a credential: metadata, codes, tokens and revocation. */
export function oauthRoutes(parts: OAuthParts): readonly Route[] {
  return [metadataRoute(parts), authorizationRoute(parts), tokenRoute(parts), revokeRoute(parts)];
}

function metadataRoute({ options: { origin, basePath } }: OAuthParts): Route {
  const base = origin + basePath;
  return {
    method: 'GET',
    path: METADATA_PATH,
    auth: 'none',
    summary: 'OAuth metadata for programs (RFC 8414)',
    responses: { 200: { description: 'Metadata.', schema: { type: 'object' } } },
    handler(ctx) {
      ctx.body = {
        issuer: base,
        device_authorization_endpoint: base + AUTHORIZATION_PATH,
        token_endpoint: base + TOKEN_PATH,
        revocation_endpoint: base + REVOKE_PATH,
        grant_types_supported: [DEVICE_GRANT, 'refresh_token'],
        response_types_supported: [],
        token_endpoint_auth_methods_supported: ['none'],
        revocation_endpoint_auth_methods_supported: ['none'],
        gateway_protocol_version: 1,
      };
    },
  };
}

function authorizationRoute({ options: { origin, basePath }, grants, count }: OAuthParts): Route {
  return {
    method: 'POST',
    path: AUTHORIZATION_PATH,
    auth: 'none',
    summary: 'Start a sign-in with a program (RFC 8628)',
    description: FORM,
    responses: {
      200: { description: 'User code and device code.', schema: { type: 'object' } },
      400: REFUSED,
    },
    handler: (ctx) =>
      respond(ctx, async () => {
        const now = Date.now();
        await count('begin', ctx.state.ip, now);
        const form = await readForm(ctx.req);
        const program = programOf(form.get('surface') ?? form.get('client_id'), ctx.headers['user-agent']);
        const { deviceCode, userCode } = await grants.begin({ program, address: ctx.state.ip }, now);
        const page = `${origin}${basePath}${DEVICE_PATH}`;
        return {
          device_code: deviceCode,
          user_code: userCode,
          verification_uri: page,
          verification_uri_complete: `${page}?user_code=${userCode}`,
          expires_in: GRANT_MS / 1000,
          interval: INTERVAL_S,
        };
      }),
  };
}

function tokenRoute(parts: OAuthParts): Route {
  return {
    method: 'POST',
    path: TOKEN_PATH,
    auth: 'none',
    summary: 'Get tokens for an approved device code or a refresh token',
    description: FORM,
    responses: { 200: { description: 'The tokens.', schema: TOKENS }, 400: REFUSED, 401: REFUSED },
    handler: (ctx) =>
      respond(ctx, async () => {
        const now = Date.now();
        await parts.count('token', ctx.state.ip, now);
        const form = await readForm(ctx.req);
        switch (form.get('grant_type')) {
          case DEVICE_GRANT:
            return showTokens(await redeem(parts, needed(form, 'device_code'), now));
          case 'refresh_token':
            return showTokens(await refresh(parts, needed(form, 'refresh_token'), ctx, now));
          case undefined:
            throw new OAuthError('invalid_request', 'The form field "grant_type" is missing.');
          default:
            throw new OAuthError(
              'unsupported_grant_type',
              `"grant_type" must be "refresh_token" or "${DEVICE_GRANT}".`,
            );
        }
      }),
  };
}

const WAITS: Readonly<Record<string, string>> = Object.freeze({
  authorization_pending: 'The code is not approved yet. Poll again after the interval.',
  slow_down: 'Polled too early. Increase the interval by five seconds.',
  access_denied: 'The person denied the request.',
  expired_token: 'The code is invalid, was already used or has expired. Start again.',
});

async function redeem(
  { grants, signIns, refuse, audit }: OAuthParts,
  deviceCode: string,
  now: number,
): Promise<Tokens> {
  const found = await grants.redeem(
    deviceCode,
    async ({ program, address }, person) => {
      // The person may have been blocked since.
      await refuse(person).catch(asGrantError);
      // The words of the person are those of their latest sign-in, and not copied.
      const { words: _words, ...who } = person;
      const tokens = await signIns.begin({ ...who, program, address }, now);
      const actor = { via: 'console', userId: person.userId, address } as const;
      await audit({ actor, action: 'sign-in.begin', subject: person.userId, after: { program } });
      return tokens;
    },
    now,
  );
  if (typeof found === 'string') throw new OAuthError(found, WAITS[found] ?? '');
  return found;
}

async function refresh(
  { signIns, refuse, log }: OAuthParts,
  token: string,
  ctx: Pick<RouteContext, 'state'>,
  now: number,
): Promise<Tokens> {
  const found = await signIns.refresh(token, now, (signIn) => refuse(signIn).catch(asGrantError));
  if (typeof found !== 'string') return found;
  if (found === 'reused')
    log.warn(
      { request_id: ctx.state.requestId, address: ctx.state.ip },
      'refresh token reused, it may be stolen; its sign-in was ended',
    );
  throw new OAuthError(
    'invalid_grant',
    found === 'used'
      ? 'This refresh token was just used. Read the newer one from your token storage.'
      : 'This sign-in has ended. Sign in again.',
  );
}

/** For a person who may no longer sign in, OAuth requires `invalid_grant`. */
function asGrantError(error: unknown): never {
  if (isGatewayError(error) && error.status === 403) throw new OAuthError('invalid_grant', error.message);
  throw error;
}

function showTokens({ access, refresh: next, expiresInMs, signIn: { email } }: Tokens): object {
  return {
    access_token: access,
    token_type: 'Bearer',
    expires_in: Math.floor(expiresInMs / 1000),
    refresh_token: next,
    ...(email !== undefined && { email }),
  };
}

function revokeRoute({ signIns, count, audit }: OAuthParts): Route {
  return {
    method: 'POST',
    path: REVOKE_PATH,
    auth: 'none',
    summary: 'Sign out a program (RFC 7009)',
    description: `Ends the sign-in of an access or refresh token; unknown tokens are not an error. ${FORM}`,
    responses: { 200: { description: 'The token is revoked.', schema: { type: 'object' } }, 400: REFUSED },
    handler: (ctx) =>
      respond(ctx, async () => {
        const now = Date.now();
        await count('token', ctx.state.ip, now);
        const ended = await signIns.endByToken(needed(await readForm(ctx.req), 'token'), now);
        if (ended) {
          const actor = { via: 'api', userId: ended.userId, address: ctx.state.ip } as const;
          await audit({ actor, action: 'sign-in.end', subject: ended.userId, before: { program: ended.program } });
        }
        return {};
      }),
  };
}

/** Sends the result of `work`, or its error in OAuth's form. Forbids caching. */
async function respond(ctx: RouteContext, work: () => Promise<object>): Promise<void> {
  ctx.set({ 'cache-control': 'no-store', pragma: 'no-cache' });
  try {
    ctx.body = await work();
  } catch (error) {
    const { code, message, status, retryAfterMs } = asOAuth(error);
    ctx.status = status;
    if (retryAfterMs !== undefined) ctx.set('retry-after', String(Math.ceil(retryAfterMs / 1000)));
    ctx.body = { error: code, error_description: message };
  }
}

function asOAuth(error: unknown): {
  readonly code: OAuthCode;
  readonly message: string;
  readonly status: number;
  readonly retryAfterMs?: number | undefined;
} {
  if (error instanceof OAuthError) return { code: error.code, message: error.message, status: STATUS[error.code] };
  if (!isGatewayError(error)) throw error;
  const { message, status, retryAfterMs } = error;
  if (status === 429) return { code: 'slow_down', message, status, retryAfterMs };
  if (status === 503) return { code: 'temporarily_unavailable', message, status, retryAfterMs };
  return { code: 'invalid_request', message, status };
}

const MAX_FORM_BYTES = 8192;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** Reads the fields of a form. Throws `invalid_request` for another type, a form over 8 KiB, and a repeated field. */
export async function readForm(req: IncomingMessage): Promise<ReadonlyMap<string, string>> {
  const bytes = await readBytes(req, MAX_FORM_BYTES);
  if (!bytes) throw new OAuthError('invalid_request', `The form is larger than ${MAX_FORM_BYTES} bytes.`);
  if (bytes.length === 0) return new Map();
  if (!FORM_TYPE.test(req.headers['content-type'] ?? ''))
    throw new OAuthError('invalid_request', 'The content-type must be application/x-www-form-urlencoded.');
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(bytes.toString('utf8'))) {
    if (fields.has(name)) throw new OAuthError('invalid_request', 'A form field is duplicated. Send each field once.');
    fields.set(name, value);
  }
  return fields;
}

/** Reads a body; undefined if it is too large. Core handles the rest of it. */
async function readBytes(req: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

function needed(form: ReadonlyMap<string, string>, name: string): string {
  const value = form.get(name);
  if (value !== undefined && value !== '') return value;
  throw new OAuthError('invalid_request', `The form field "${name}" is missing.`);
}

const MAX_PROGRAM = 80;

/** Name of a program for display: printable ASCII. */
function programOf(name: string | undefined, agent: string | undefined): string {
  const text = [name, agent].find((each) => each !== undefined && each.trim() !== '') ?? 'a program';
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_PROGRAM);
}
