import { LRUCache } from 'lru-cache';
import type { Generation } from '../calls/generation.ts';
import { type AuditChange, auditActor } from '../contract/audit.ts';
import type { Principal, RoutingState } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import { readObject, type Schema } from '../contract/json.ts';
import type { Route as AdminRoute } from '../contract/plugin.ts';
import type { Route, RouteContext } from '../contract/route.ts';
import { mergeStates, ROUTING_TOPIC, targetRows } from '../routing/routing-states.ts';

/** What the routes of operators have in common: who may call them, pages of lists, versions against lost updates. */

/** Spread into a route: for operators alone. */
export const FOR_OPERATORS = Object.freeze({ auth: ['key', 'token'], role: 'admin' } as const satisfies Partial<Route>);

const MAX_PAGE = 1000;
const DEFAULT_PAGE = 100;

/** The query of a list. */
export const PAGE_QUERY = Object.freeze({
  limit: {
    type: 'string',
    pattern: '^([1-9][0-9]{0,2}|1000)$',
    description: `1 to ${MAX_PAGE}; ${DEFAULT_PAGE} by default.`,
  },
  after: { type: 'string', minLength: 1, maxLength: 500, description: '`next` of the page before.' },
} as const satisfies Readonly<Record<string, Schema>>);

/** The query of a list as the validator saw it: of a name that came twice, Koa's own `ctx.query` also has the other value. */
export function readPage(ctx: Pick<RouteContext, 'querystring'>): {
  readonly limit: number;
  readonly after?: string;
  readonly query: Readonly<Record<string, string>>;
} {
  const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
  const { limit = String(DEFAULT_PAGE), after } = query;
  return { limit: Number(limit), ...(after !== undefined && { after }), query };
}

/** The schema of a list's response; `beside` is what comes with it that is no part of the list. */
export function listOf(item: Schema, beside: Readonly<Record<string, Schema>> = {}): Schema {
  return {
    type: 'object',
    required: ['object', 'data', 'has_more', ...Object.keys(beside)],
    properties: {
      object: { const: 'list' },
      data: { type: 'array', items: item },
      has_more: { type: 'boolean' },
      next: { type: 'string', description: 'What the next page goes on `after`; absent on the last one.' },
      ...beside,
    },
  };
}

/** Sends a page; `next` is where the next one goes on, absent on the last. `beside` is what comes with it. */
export function sendList(
  ctx: RouteContext<unknown>,
  data: readonly object[],
  next: string | undefined,
  beside?: object,
): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = { object: 'list', data, has_more: next !== undefined, ...(next !== undefined && { next }), ...beside };
}

/** One place at which two configurations differ. Secrets are masked. */
export interface ConfigChange {
  /** As `providers.openai.apiKey`. */
  readonly path: string;
  /** As JSON; absent where the former one has nothing there. */
  readonly before?: string;
  /** As JSON; absent where the new one has nothing there. */
  readonly after?: string;
  /** Whether it counts only after a restart. */
  readonly needsRestart: boolean;
}

/** What a reload came to, or would come to. */
export interface ReloadReport {
  /** The configuration's name for people. */
  readonly file: string;
  /** Whether it serves now; a trial changes nothing. */
  readonly isReloaded: boolean;
  readonly changes: readonly ConfigChange[];
  /** Why the former configuration goes on. */
  readonly problem?: string;
  /** The same in words that anybody may read: without paths, and not too long. */
  readonly summary?: string;
}

/** Reads the configuration of a running gateway anew. Nothing rejects: what is wrong is in the report. */
export interface ReloadControl {
  /** Goes on with it; one after the other. `cause` is for the log. */
  reload(cause: string): Promise<ReloadReport>;
  /** What a reload would change; changes nothing. */
  compare(): Promise<ReloadReport>;
}

export interface AdminRouteDeps {
  /** What all processes of the gateway answer about a topic. */
  gather(topic: string): Promise<readonly unknown[]>;
  /** How the configuration is read anew; undefined in a program that does it itself. */
  reloads(): ReloadControl | undefined;
  audit(change: AuditChange): Promise<void>;
  /** The configuration that serves, and what its plugins registered. */
  readonly generation: Pick<Generation, 'loaded' | 'registry'>;
}

/** What operators ask of a gateway whatever its plugins are. */
export function adminRoutes(deps: AdminRouteDeps): readonly AdminRoute[] {
  return [targetsRoute(deps), reloadRoute(deps), configurationRoute(deps), pluginsRoute(deps)];
}

const TARGET_ROW: Schema = {
  type: 'object',
  required: ['target', 'provider', 'model', 'state', 'error_ratio', 'attempts'],
  properties: {
    target: { type: 'string', description: '`provider/model`' },
    provider: { type: 'string' },
    model: { type: 'string' },
    state: { enum: ['closed', 'half-open', 'open'], description: 'Of several processes the worst.' },
    cause: { enum: ['rate_limit', 'credential', 'failures', 'shared'] },
    open_until: { type: 'string', description: 'Until when it is left alone.' },
    error_ratio: { type: 'number', description: 'The share of its latest attempts that failed.' },
    attempts: { type: 'integer' },
    whole_ms: { type: 'number', description: 'What a whole response takes lately.' },
    first_token_ms: { type: 'number', description: 'What the first token of a stream takes lately.' },
    last_error: {
      type: 'object',
      required: ['at', 'message'],
      properties: {
        at: { type: 'string' },
        message: { type: 'string', description: 'The words of the vendor or the network, secrets cut out.' },
        class: { type: 'string' },
        status: { type: 'integer' },
        errno: { type: 'string' },
        request_id: { type: 'string' },
      },
    },
  },
};

const RETRIES: Schema = {
  type: 'object',
  required: ['running', 'allowed', 'refused'],
  properties: { running: { type: 'integer' }, allowed: { type: 'integer' }, refused: { type: 'integer' } },
};

function targetsRoute({ gather }: AdminRouteDeps): AdminRoute {
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: '/api/core/admin/targets' },
    summary: 'The targets that were tried: state, errors, latency, the last error',
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: { 200: { description: 'By name.', schema: listOf(TARGET_ROW, { retries: RETRIES }) } },
    async handler(ctx) {
      const { limit, after = '' } = readPage(ctx);
      const state = mergeStates((await gather(ROUTING_TOPIC)) as readonly RoutingState[]);
      const rest = targetRows(state).filter(({ target }) => target > after);
      const next = rest.length > limit ? rest[limit - 1]?.target : undefined;
      sendList(ctx, rest.slice(0, limit), next, { retries: state.retries });
    },
  };
}

const RELOAD_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { diff: { type: 'boolean', description: 'Only say what a reload would change.' } },
} satisfies Schema;

const RELOAD_RESPONSE: Schema = {
  type: 'object',
  required: ['object', 'file', 'reloaded', 'changes'],
  properties: {
    object: { const: 'reload' },
    file: { type: 'string', description: 'The configuration’s name for people.' },
    reloaded: { type: 'boolean', description: 'Whether it serves now.' },
    changes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'needs_restart'],
        properties: {
          path: { type: 'string' },
          before: { type: 'string', description: 'As JSON, secrets masked; absent for what is new.' },
          after: { type: 'string' },
          needs_restart: { type: 'boolean' },
        },
      },
    },
  },
};

function reloadRoute({ reloads, audit }: AdminRouteDeps): AdminRoute {
  return {
    ...{ ...FOR_OPERATORS, method: 'POST', path: '/api/core/admin/reload' },
    summary: 'Read the configuration anew, as `tollgate reload` does',
    ...{ body: RELOAD_BODY, bodyOptional: true },
    responses: { 200: { description: 'What changed, or would.', schema: RELOAD_RESPONSE } },
    async handler(ctx) {
      const control = reloads();
      if (!control)
        throw new GatewayError(
          'feature_disabled',
          'This gateway is part of another program, which reads its configuration. Start it with `tollgate start`, or reload it there.',
        );
      const isTrial = readObject(ctx.state.body)['diff'] === true;
      const report = await (isTrial ? control.compare() : control.reload('the admin API'));
      const body = describeReport(report);
      if (!isTrial)
        await audit({ actor: auditActor(ctx), action: 'configuration.reload', subject: report.file, after: body });
      ctx.set('cache-control', 'no-store');
      ctx.body = body;
    },
  };
}

/** What came of it; a configuration that was refused is an error. */
function describeReport({ file, isReloaded, changes, problem, summary = problem }: ReloadReport): object {
  if (summary !== undefined) throw new GatewayError('conflict', `Nothing was changed: ${summary}`);
  const rows = changes.map(({ needsRestart, ...change }) => ({ ...change, needs_restart: needsRestart }));
  return { object: 'reload', file, reloaded: isReloaded, changes: rows };
}

const CONFIGURATION: Schema = {
  type: 'object',
  required: ['object', 'file', 'is_default', 'configuration', 'sources'],
  properties: {
    object: { const: 'configuration' },
    file: { type: 'string', description: 'The configuration’s name for people.' },
    is_default: { type: 'boolean', description: 'Whether it is the built-in one.' },
    configuration: { type: 'object', description: 'The values that count, defaults included, secrets masked.' },
    sources: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description:
        'By JSON pointer where a value came from: `env PORT`, `file /run/secrets/key`. Else from the file, or a default.',
    },
  },
};

/** What `tollgate config print` shows, of the running gateway. */
function configurationRoute({ generation }: AdminRouteDeps): AdminRoute {
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: '/api/core/admin/configuration' },
    summary: 'The configuration that serves, without its secrets',
    responses: { 200: { description: 'The values that count.', schema: CONFIGURATION } },
    handler(ctx) {
      const { config } = generation.loaded;
      ctx.set('cache-control', 'no-store');
      ctx.body = {
        ...{ object: 'configuration', file: config.file, is_default: config.isDefault },
        ...{ configuration: config.printable(), sources: Object.fromEntries(config.sources) },
      };
    },
  };
}

const PLUGIN: Schema = {
  type: 'object',
  required: ['name', 'plugin', 'kind', 'is_builtin', 'hosts', 'hooks', 'routes', 'commands'],
  properties: {
    name: { type: 'string', description: 'What the configuration calls it.' },
    plugin: { type: 'string', description: 'The built-in name, package or path.' },
    kind: { type: 'string' },
    is_builtin: { type: 'boolean' },
    hosts: {
      type: 'array',
      items: { type: 'string' },
      description: 'Where it may connect, in addition to its options.',
    },
    hooks: { type: 'array', items: { type: 'string' } },
    routes: { type: 'array', items: { type: 'string' } },
    commands: { type: 'array', items: { type: 'string' } },
  },
};

/** The plugins in the order in which inward hooks run. */
function pluginsRoute({ generation }: AdminRouteDeps): AdminRoute {
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: '/api/core/admin/plugins' },
    summary: 'The plugins that serve: hooks in their order, routes, commands',
    responses: { 200: { description: 'All of them, in the order of the configuration.', schema: listOf(PLUGIN) } },
    handler: (ctx) => sendList(ctx, describePlugins(generation), undefined),
  };
}

function describePlugins({ loaded, registry }: AdminRouteDeps['generation']): readonly object[] {
  const { config, builtins, plugins } = loaded;
  return [config.store, ...config.instances].map(({ name, plugin, kind }, at) => {
    const isOwn = ({ owner }: { readonly owner: string }): boolean => owner === name;
    return {
      ...{ name, plugin, kind, hosts: plugins[at]?.hosts ?? [] },
      is_builtin: builtins.some((builtin) => builtin.kind === kind && builtin.name === plugin),
      hooks: registry.hooks.filter(isOwn).map(({ name: hook, order }) => (order ? `${hook} (${order})` : hook)),
      routes: [...registry.routes].filter(([, entry]) => isOwn(entry)).map(([label]) => label),
      commands: [...registry.commands].filter(([, entry]) => isOwn(entry)).map(([command]) => command),
    };
  });
}

/** How many requests a minute an operator may send to the routes of operators, by process. */
const ADMIN_RPM = 600;
const MINUTE_MS = 60_000;
const MAX_OPERATORS = 10_000;

/** Counts a request to a route of operators; throws `rate_limited` for one too many. */
export type CountAdmin = (principal: Principal) => void;

/** Counts in this process: operators look at targets also while the store is down. */
export function createAdminRate(): CountAdmin {
  const windows = new LRUCache<string, { readonly until: number; sent: number }>({ max: MAX_OPERATORS });
  return ({ userId, keyId }) => {
    const now = Date.now();
    const key = keyId ?? `user ${userId}`;
    const known = windows.get(key);
    const window = known && known.until > now ? known : { until: now + MINUTE_MS, sent: 0 };
    windows.set(key, window);
    if (window.sent >= ADMIN_RPM)
      throw new GatewayError(
        'rate_limited',
        `An operator may send ${ADMIN_RPM} requests a minute to the admin API. Try again later, or ask for larger pages.`,
        { retryAfterMs: window.until - now },
      );
    window.sent += 1;
  };
}
