import { GatewayError, isGatewayError, type PluginApi, type Route, type RouteContext } from '../../contract/index.ts';
import { createDocuments } from '../auth/kit/documents.ts';
import { hashId, isSame, randomId } from '../auth/kit/random-id.ts';
import { createSecrets, type Secrets } from '../auth/kit/secrets.ts';
import { auditActor, FOR_OPERATORS, listOf, PAGE_QUERY, readPage, sendList } from '../policies/kit/index.ts';
import { type Authorization, CALLBACK_PATH } from './authorization.ts';
import { createSealer, type OAuthClient, type Sealed, type TokenBook } from './token-book.ts';

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
  /** Version of the user's tokens that the new ones replace. */
  readonly version: string;
}

/** Authorization of one user in one browser, until the authorization server sends the browser back. */
interface Pending extends Link {
  /** Hash of the browser's cookie. */
  readonly browser: string;
  readonly verifier: string;
  readonly client: OAuthClient;
}

interface ConnectionParts extends ConnectionDeps {
  /** By the token in their URL. */
  readonly links: Secrets<Link>;
  /** By state, sealed with it. */
  readonly pending: Secrets<Sealed>;
}

interface ConnectionDeps {
  readonly api: PluginApi;
  readonly authorizations: ReadonlyMap<string, Authorization>;
  readonly book: TokenBook;
  readonly publicUrl: string;
  readonly tokenKey: string;
  /** Called after the tokens of a user were removed. */
  readonly onRevoked: (server: string, user: string) => void;
}

/** Registers the routes by which users connect and revoke accounts at servers with OAuth. */
export function registerConnections(deps: ConnectionDeps): void {
  const { api, authorizations, onRevoked } = deps;
  const { counters } = api.stores;
  const parts: ConnectionParts = {
    ...deps,
    links: createSecrets('mcp.links', LINK_MS, createDocuments(api.keyv('links')), counters),
    pending: createSecrets('mcp.pending', LINK_MS, createDocuments(api.keyv('pending')), counters),
  };
  const at = (ctx: RouteContext): Authorization => {
    const found = authorizations.get(ctx.params['server'] ?? ctx.params['name'] ?? '');
    if (!found) throw new GatewayError('not_found', 'No MCP server of this name has accounts of users.');
    return found;
  };
  const path = '/mcp/:server/connect';
  const state = { type: 'object', properties: { server: { type: 'string' }, connected: { type: 'boolean' } } } as const;
  const page = { contentType: 'text/html', description: 'HTML page.' };
  const link = {
    description: 'Link for a browser.',
    schema: { type: 'object', properties: { url: { type: 'string' }, expires_in: { type: 'integer' } } },
  } as const;
  registerForOperators(parts, at, link);
  api.route({
    method: 'POST',
    path,
    auth: ['key', 'token'],
    summary: 'Get a link to connect an account at an MCP server',
    description: 'Open the link in a browser within ten minutes. It connects the account for the user of this key.',
    responses: { 200: link },
    handler: async (ctx) => {
      ctx.body = await makeLink(parts, at(ctx as RouteContext).name, userOf(ctx as RouteContext));
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
    handler: (ctx) => show(ctx as RouteContext, () => confirm(parts, ctx as RouteContext)),
  });
  api.route({
    method: 'POST',
    path: `${LINK_PATH}/:link`,
    auth: 'none',
    summary: 'Go on to the authorization server',
    responses: { 303: 'Redirect to the authorization server.', 400: page },
    handler: (ctx) => show(ctx as RouteContext, () => goOn(parts, ctx as RouteContext)),
  });
  api.route({
    method: 'GET',
    path: CALLBACK_PATH,
    auth: 'none',
    summary: 'Redirect URI of authorization servers of MCP servers',
    // Authorization servers add parameters of their own.
    query: { type: 'object', properties: { state: { type: 'string' }, code: { type: 'string' } } },
    responses: { 200: page, 400: page },
    handler: (ctx) => show(ctx as RouteContext, () => finish(parts, ctx as RouteContext)),
  });
}

/** Routes of the console: who has connected an account, and the operator's own. */
function registerForOperators(
  parts: ConnectionParts,
  at: (ctx: RouteContext) => Authorization,
  link: Exclude<Route['responses'][number], string>,
): void {
  const { api, book, onRevoked } = parts;
  const path = '/api/core/admin/mcp/:name/connections';
  api.route({
    ...FOR_OPERATORS,
    scope: 'mcp:read',
    method: 'GET',
    path,
    summary: 'List users with an account at an MCP server',
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: {
      200: {
        description: 'Users.',
        schema: listOf({ type: 'object', required: ['user_id'], properties: { user_id: { type: 'string' } } }),
      },
    },
    async handler(ctx) {
      const { limit, after } = readPage(ctx);
      const { name } = at(ctx as RouteContext);
      const users = await book.users(name, { limit, ...(after !== undefined && { after }) });
      const rows = users.map((user_id) => ({ user_id }));
      sendList(ctx, rows, users.length === limit ? users.at(-1) : undefined);
    },
  });
  api.route({
    ...FOR_OPERATORS,
    scope: 'mcp:read',
    method: 'POST',
    path,
    summary: 'Get a link to connect an account at an MCP server for the own user',
    responses: { 200: link },
    async handler(ctx) {
      ctx.set('cache-control', 'no-store');
      ctx.body = await makeLink(parts, at(ctx as RouteContext).name, userOf(ctx as RouteContext));
    },
  });
  api.route({
    ...FOR_OPERATORS,
    scope: 'mcp:write',
    method: 'DELETE',
    path: `${path}/:user`,
    summary: 'Disconnect the account of a user at an MCP server, and revoke its tokens',
    responses: {
      200: {
        description: 'State of the connection.',
        schema: { type: 'object', properties: { user_id: { type: 'string' }, connected: { type: 'boolean' } } },
      },
    },
    async handler(ctx) {
      const authorization = at(ctx as RouteContext);
      const user = ctx.params['user'] ?? '';
      const isRevoked = await authorization.revoke(user);
      onRevoked(authorization.name, user);
      if (isRevoked)
        await api.operators.audit({
          actor: auditActor(ctx),
          action: 'mcp_connection.delete',
          subject: authorization.name,
          before: { user_id: user },
        });
      ctx.body = { user_id: user, connected: false };
    },
  });
}

function userOf({ state: { principal } }: RouteContext): string {
  return principal.userId;
}

async function makeLink(
  { api, book, publicUrl, links }: ConnectionParts,
  server: string,
  user: string,
): Promise<{ readonly url: string; readonly expires_in: number }> {
  const now = Date.now();
  const { refused, states } = await api.stores.counters.take(
    [{ key: `mcp.links.${hashId(user)}`, limit: MAX_LINKS, windowMs: LINK_MS, amount: 1 }],
    now,
  );
  if (refused !== undefined)
    throw new GatewayError('rate_limited', 'Too many links were made for this user. Open one of them.', {
      retryAfterMs: states[refused]?.resetMs ?? LINK_MS,
    });
  const link = await links.put(user, { user, server, version: await book.reserve(user, server) }, now);
  return { url: `${publicUrl.replace(/\/$/, '')}${LINK_PATH}/${link}`, expires_in: LINK_MS / 1000 };
}

/** Content of a page. */
interface Page {
  readonly title: string;
  /** HTML. */
  readonly body: string;
}

/** Page that names the user, so that no one connects an account for another person. */
async function confirm({ links }: ConnectionParts, ctx: RouteContext): Promise<Page> {
  const { user, server } = orNotBegun(await links.find(linkIn(ctx), Date.now()));
  return {
    title: `Connect an account at ${server}`,
    body: `<p>The gateway will use your account at the MCP server <b>${escapeHtml(server)}</b> for its user <b>${escapeHtml(user)}</b>.</p>
<p>Go on only if you are this user, and requested this link.</p><form method="post"><button>Go on</button></form>`,
  };
}

async function goOn(parts: ConnectionParts, ctx: RouteContext): Promise<undefined> {
  const { publicUrl, authorizations, tokenKey, links, pending } = parts;
  const origin = ctx.get('origin');
  if (origin !== '' && origin !== new URL(publicUrl).origin)
    throw new GatewayError('permission_denied', 'This form belongs to another page. Open the link again.');
  const now = Date.now();
  const { server } = orNotBegun(await links.find(linkIn(ctx), now));
  const authorization = authorizations.get(server);
  if (!authorization) throw notBegun();
  const link = orNotBegun(await links.take(linkIn(ctx), now));
  const [state, browser] = [randomId(), randomId()];
  const { url, verifier, client } = await authorization.begin(state);
  const begun: Pending = { ...link, browser: hashId(browser), verifier, client };
  await pending.put(link.user, createSealer(tokenKey).seal(['pending', state], begun), Date.now(), state);
  const isSecure = publicUrl.startsWith('https:') ? '; Secure' : '';
  ctx.set('set-cookie', `${COOKIE}=${browser}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${LINK_MS / 1000}${isSecure}`);
  ctx.status = 303;
  ctx.set('location', url);
  ctx.body = '';
}

async function finish(parts: ConnectionParts, ctx: RouteContext): Promise<Page> {
  const { api, authorizations, tokenKey, pending } = parts;
  const query = new URLSearchParams(ctx.querystring);
  for (const name of ['state', 'code', 'iss', 'error'])
    if (query.getAll(name).length > 1)
      throw new GatewayError('invalid_request', `"${name}" is duplicated. Send it once.`, { param: name });
  const state = query.get('state') ?? '';
  const now = Date.now();
  const sealed = await pending.find(state, now);
  const begun = sealed && (createSealer(tokenKey).open(['pending', state], sealed) as Pending | undefined);
  const browser = cookieOf(ctx);
  if (!begun || browser === undefined || !isSame(begun.browser, hashId(browser))) throw notBegun();
  if (!(await pending.take(state, now))) throw notBegun();
  const { user, server, verifier, client, version } = begun;
  const authorization = authorizations.get(server);
  const code = query.get('code');
  if (!authorization) throw notBegun();
  if (code === null)
    return { title: 'Not connected', body: '<p>The authorization server did not allow the connection.</p>' };
  await authorization.finish(user, { code, iss: query.get('iss') ?? undefined, verifier, client, version });
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

function linkIn({ params }: RouteContext): string {
  return params['link'] ?? '';
}

function orNotBegun<T>(found: T | undefined): T {
  if (found === undefined) throw notBegun();
  return found;
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

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
