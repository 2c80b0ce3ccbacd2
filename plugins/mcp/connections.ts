import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { GatewayError, isGatewayError, type PluginApi, type RouteContext } from '../../contract/index.ts';
import { type Authorization, CALLBACK_PATH } from './authorization.ts';
import { createSealer, type OAuthClient } from './token-book.ts';

/** Time for a person to connect an account. */
const LINK_MS = 10 * 60_000;

/** Links that a user may ask for in that time. */
const MAX_LINKS = 30;

const LINK_PATH = '/mcp/link';
const COOKIE = 'tollgate_mcp';
const TOKEN = /^[\w-]{43}$/;

/** Link of one user, until it is opened. */
interface Link {
  readonly user: string;
  readonly server: string;
}

/** Authorization of one user in one browser, until the authorization server sends the browser back. */
interface Pending {
  readonly user: string;
  readonly server: string;
  /** Hash of the browser's cookie. */
  readonly browser: string;
  readonly verifier: string;
  readonly client: OAuthClient;
}

interface ConnectionDeps {
  readonly api: PluginApi;
  readonly authorizations: ReadonlyMap<string, Authorization>;
  readonly publicUrl: string;
  readonly tokenKey: string;
  /** Called after the tokens of a user were removed. */
  readonly onRevoked: (server: string, user: string) => void;
}

/** Registers the routes by which users connect and revoke accounts at servers with OAuth. */
export function registerConnections(deps: ConnectionDeps): void {
  const { api, authorizations, onRevoked } = deps;
  const at = (ctx: RouteContext): Authorization => {
    const found = authorizations.get(ctx.params['server'] ?? '');
    if (!found) throw new GatewayError('not_found', 'No MCP server of this name has accounts of users.');
    return found;
  };
  const path = '/mcp/:server/connect';
  const state = { type: 'object', properties: { server: { type: 'string' }, connected: { type: 'boolean' } } } as const;
  const page = { contentType: 'text/html', description: 'HTML page.' };
  api.route({
    method: 'POST',
    path,
    auth: ['key', 'token'],
    summary: 'Get a link to connect an account at an MCP server',
    description: 'Open the link in a browser within ten minutes. It connects the account for the user of this key.',
    responses: {
      200: {
        description: 'Link for a browser.',
        schema: { type: 'object', properties: { url: { type: 'string' }, expires_in: { type: 'integer' } } },
      },
    },
    handler: async (ctx) => {
      ctx.body = await makeLink(deps, at(ctx as RouteContext).name, userOf(ctx as RouteContext));
    },
  });
  api.route({
    method: 'GET',
    path,
    auth: ['key', 'token'],
    summary: 'Whether an account is connected at an MCP server',
    responses: { 200: { description: 'State of the connection.', schema: state } },
    handler: async (ctx) => {
      const authorization = at(ctx as RouteContext);
      const connected = await authorization.isConnected(userOf(ctx as RouteContext));
      ctx.body = { server: authorization.name, connected };
    },
  });
  api.route({
    method: 'DELETE',
    path,
    auth: ['key', 'token'],
    summary: 'Disconnect an account at an MCP server, and revoke its tokens',
    responses: { 200: { description: 'State of the connection.', schema: state } },
    handler: async (ctx) => {
      const authorization = at(ctx as RouteContext);
      const user = userOf(ctx as RouteContext);
      const isRevoked = await authorization.revoke(user);
      onRevoked(authorization.name, user);
      if (isRevoked) await auditChange(api, ctx as RouteContext, user, 'delete', authorization.name);
      ctx.body = { server: authorization.name, connected: false };
    },
  });
  api.route({
    method: 'GET',
    path: `${LINK_PATH}/:link`,
    auth: 'none',
    summary: 'Page that asks before an account is connected',
    responses: { 200: page, 400: page },
    handler: (ctx) => show(ctx as RouteContext, () => confirm(deps, ctx as RouteContext)),
  });
  api.route({
    method: 'POST',
    path: `${LINK_PATH}/:link`,
    auth: 'none',
    summary: 'Go on to the authorization server',
    responses: { 303: 'Redirect to the authorization server.', 400: page },
    handler: (ctx) => show(ctx as RouteContext, () => goOn(deps, ctx as RouteContext)),
  });
  api.route({
    method: 'GET',
    path: CALLBACK_PATH,
    auth: 'none',
    summary: 'Redirect URI of authorization servers of MCP servers',
    // Authorization servers add parameters of their own.
    query: { type: 'object', properties: { state: { type: 'string' }, code: { type: 'string' } } },
    responses: { 200: page, 400: page },
    handler: (ctx) => show(ctx as RouteContext, () => finish(deps, ctx as RouteContext)),
  });
}

function userOf({ state: { principal } }: RouteContext): string {
  return principal.userId;
}

async function makeLink(
  { api, publicUrl }: ConnectionDeps,
  server: string,
  user: string,
): Promise<{ readonly url: string; readonly expires_in: number }> {
  const { refused, states } = await api.stores.counters.take(
    [{ key: `mcp.links.${hash(user)}`, limit: MAX_LINKS, windowMs: LINK_MS, amount: 1 }],
    Date.now(),
  );
  if (refused !== undefined)
    throw new GatewayError('rate_limited', 'Too many links were made for this user. Open one of them.', {
      retryAfterMs: states[refused]?.resetMs ?? LINK_MS,
    });
  const link = randomToken();
  await api.keyv<Link>('links').set(hash(link), { user, server }, LINK_MS);
  return { url: `${publicUrl.replace(/\/$/, '')}${LINK_PATH}/${link}`, expires_in: LINK_MS / 1000 };
}

/** Content of a page. */
interface Page {
  readonly title: string;
  /** HTML. */
  readonly body: string;
}

/** Page that names the user, so that no one connects an account for another person. */
async function confirm(deps: ConnectionDeps, ctx: RouteContext): Promise<Page> {
  const { user, server } = await findLink(deps, ctx);
  return {
    title: `Connect an account at ${server}`,
    body: `<p>The gateway will use your account at the MCP server <b>${escapeHtml(server)}</b> for its user <b>${escapeHtml(user)}</b>.</p>
<p>Go on only if you are this user, and requested this link.</p><form method="post"><button>Go on</button></form>`,
  };
}

async function goOn(deps: ConnectionDeps, ctx: RouteContext): Promise<undefined> {
  const { api, publicUrl, authorizations, tokenKey } = deps;
  const origin = ctx.get('origin');
  if (origin !== '' && origin !== new URL(publicUrl).origin)
    throw new GatewayError('permission_denied', 'This form belongs to another page. Open the link again.');
  const link = await findLink(deps, ctx);
  const authorization = authorizations.get(link.server);
  if (!authorization) throw notBegun();
  await takeOnce(api, 'links', ctx.params['link'] ?? '');
  const [state, browser] = [randomToken(), randomToken()];
  const { url, verifier, client } = await authorization.begin(state);
  const pending: Pending = { ...link, browser: hash(browser), verifier, client };
  const sealed = createSealer(tokenKey).seal(['pending', state], pending);
  await api.keyv<{ readonly sealed: string }>('pending').set(hash(state), sealed, LINK_MS);
  const isSecure = publicUrl.startsWith('https:') ? '; Secure' : '';
  ctx.set('set-cookie', `${COOKIE}=${browser}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${LINK_MS / 1000}${isSecure}`);
  ctx.status = 303;
  ctx.set('location', url);
  ctx.body = '';
}

async function finish(deps: ConnectionDeps, ctx: RouteContext): Promise<Page> {
  const { api, authorizations, tokenKey } = deps;
  const query = new URLSearchParams(ctx.querystring);
  for (const name of ['state', 'code', 'iss', 'error'])
    if (query.getAll(name).length > 1)
      throw new GatewayError('invalid_request', `"${name}" is duplicated. Send it once.`, { param: name });
  const state = query.get('state') ?? '';
  const sealed = TOKEN.test(state)
    ? await api.keyv<{ readonly sealed: string }>('pending').get(hash(state))
    : undefined;
  const pending = sealed && (createSealer(tokenKey).open(['pending', state], sealed) as Pending | undefined);
  const browser = cookieOf(ctx);
  if (!pending || browser === undefined || !isSame(pending.browser, hash(browser))) throw notBegun();
  await takeOnce(api, 'pending', state);
  const { user, server, verifier, client } = pending;
  const authorization = authorizations.get(server);
  const code = query.get('code');
  if (!authorization) throw notBegun();
  if (code === null)
    return { title: 'Not connected', body: '<p>The authorization server did not allow the connection.</p>' };
  await authorization.finish(user, { code, iss: query.get('iss') ?? undefined, verifier, client });
  await auditChange(api, ctx, user, 'create', server);
  return {
    title: 'Connected',
    body: `<p>Your account at ${escapeHtml(server)} is connected. You may close this page.</p>`,
  };
}

function auditChange(
  { operators }: PluginApi,
  ctx: RouteContext,
  userId: string,
  action: 'create' | 'delete',
  subject: string,
): Promise<void> {
  const actor = { via: 'api', userId, address: ctx.state.ip } as const;
  return operators.audit({ actor, action: `mcp_connection.${action}`, subject });
}

async function findLink({ api }: ConnectionDeps, ctx: RouteContext): Promise<Link> {
  const link = ctx.params['link'] ?? '';
  const found = TOKEN.test(link) ? await api.keyv<Link>('links').get(hash(link)) : undefined;
  if (!found) throw notBegun();
  return found;
}

/** Lets one of several requests with the same token continue, on any node. */
async function takeOnce({ keyv, stores }: PluginApi, kind: 'links' | 'pending', token: string): Promise<void> {
  const key = hash(token);
  if (!(await stores.counters.lease(`mcp.${kind}.${key}`, randomToken(), 1, LINK_MS, Date.now()))) throw notBegun();
  await keyv(kind).delete(key);
}

function notBegun(): GatewayError {
  return new GatewayError(
    'invalid_request',
    'This link was used, has expired, or was opened in another browser. Ask for another one.',
    { param: 'state' },
  );
}

async function show(ctx: RouteContext, make: () => Promise<Page | undefined>): Promise<void> {
  ctx.set('cache-control', 'no-store');
  // With `no-referrer`, browsers would send the form without its origin.
  ctx.set('referrer-policy', 'same-origin');
  ctx.set('x-content-type-options', 'nosniff');
  ctx.set('content-security-policy', "default-src 'none'; base-uri 'none'; frame-ancestors 'none'");
  let page: Page | undefined;
  try {
    page = await make();
    if (page) ctx.status = 200;
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    ctx.status = error.status;
    page = { title: 'Not connected', body: `<p>${escapeHtml(error.message)}</p>` };
  }
  if (!page) return;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escapeHtml(page.title)}</title><h1>${escapeHtml(page.title)}</h1>${page.body}</html>`;
}

function cookieOf(ctx: RouteContext): string | undefined {
  const pairs = (ctx.headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='));
  const values = pairs.flatMap(([name, value]) => (name === COOKIE && value !== undefined ? [value] : []));
  return values.length === 1 && TOKEN.test(values[0] ?? '') ? values[0] : undefined;
}

function randomToken(): string {
  return randomBytes(32).toString('base64url');
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
