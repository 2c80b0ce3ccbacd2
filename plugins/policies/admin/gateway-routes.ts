import {
  GatewayError,
  type HookReport,
  type PluginApi,
  type ReloadReport,
  type Route,
  readObject,
  type Schema,
} from '../../../contract/index.ts';
import { auditActor, FOR_OPERATORS, listOf, PAGE_QUERY, readPage, sendList, targetRows } from '../kit/index.ts';

/** Operator routes that need no other plugin: targets, configuration, reload, plugins. */
export function gatewayRoutes(api: PluginApi): readonly Route[] {
  return [targetsRoute(api), reloadRoute(api), configurationRoute(api), pluginsRoute(api)];
}

const TARGET_ROW: Schema = {
  type: 'object',
  required: ['target', 'provider', 'model', 'state', 'error_ratio', 'attempts'],
  properties: {
    target: { type: 'string', description: '`provider/model`, or `provider#key/model` of one key' },
    provider: { type: 'string' },
    model: { type: 'string' },
    key: { type: 'string', description: 'The name of the provider’s key, where it has several.' },
    state: { enum: ['closed', 'half-open', 'open', 'drained'], description: 'Of several processes the worst.' },
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

const DRAINED: Schema = {
  type: 'array',
  items: { type: 'string' },
  description: 'The targets and whole providers that operators drained.',
};

const RETRIES: Schema = {
  type: 'object',
  required: ['live', 'running', 'allowed', 'refused'],
  properties: {
    live: { type: 'integer', description: 'Calls that have begun and not ended.' },
    ...{ running: { type: 'integer' }, allowed: { type: 'integer' }, refused: { type: 'integer' } },
  },
};

function targetsRoute({ operators: { gateway } }: PluginApi): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: '/api/core/admin/targets', scope: 'targets:read' },
    summary: 'The targets that the configuration names or that were tried: state, errors, latency, the last error',
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: { 200: { description: 'By name.', schema: listOf(TARGET_ROW, { retries: RETRIES, drained: DRAINED }) } },
    async handler(ctx) {
      const { limit, after = '' } = readPage(ctx);
      const state = await gateway.routing();
      const rest = targetRows(state).filter(({ target }) => target > after);
      const next = rest.length > limit ? rest[limit - 1]?.target : undefined;
      sendList(ctx, rest.slice(0, limit), next, { retries: state.retries, drained: state.drained });
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

function reloadRoute({ operators: { gateway } }: PluginApi): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'POST', path: '/api/core/admin/reload', scope: 'config:reload' },
    summary: 'Read the configuration anew, as `tollgate reload` does',
    ...{ body: RELOAD_BODY, bodyOptional: true },
    responses: { 200: { description: 'What changed, or would.', schema: RELOAD_RESPONSE } },
    async handler(ctx) {
      const control = gateway.reloads();
      if (!control)
        throw new GatewayError(
          'feature_disabled',
          'This gateway is part of another program, which reads its configuration. Start it with `tollgate start`, or reload it there.',
        );
      const isTrial = readObject(ctx.state.body)['diff'] === true;
      const report = await (isTrial ? control.compare() : control.reload('the admin API', auditActor(ctx)));
      const body = describeReport(report);
      if (report.isInAudit === false)
        throw new GatewayError(
          'store_unavailable',
          'The configuration was reloaded, but the store does not answer, so the audit log lacks an entry for it.',
          { retryAfterMs: 1000 },
        );
      ctx.set('cache-control', 'no-store');
      ctx.body = body;
    },
  };
}

/** Report of a reload; a refused configuration is an error. */
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
        'By JSON pointer where a value came from: `env PORT`, `file /run/secrets/key`, `tollgate.config.yaml:3`. What is not there is a default.',
    },
    problem: {
      type: 'string',
      description:
        'Why the last reload was refused, whatever asked for it; absent where none was, or one went well since.',
    },
  },
};

/** Configuration of the running gateway, as shown by `tollgate config print`. */
function configurationRoute({ operators: { gateway } }: PluginApi): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: '/api/core/admin/configuration', scope: 'config:read' },
    summary: 'The configuration that serves, without its secrets',
    responses: { 200: { description: 'The values that count.', schema: CONFIGURATION } },
    handler(ctx) {
      const { file, isDefault, printable, sources } = gateway.configuration;
      const problem = gateway.reloadProblem();
      ctx.set('cache-control', 'no-store');
      ctx.body = {
        ...{ object: 'configuration', file, is_default: isDefault, ...(problem !== undefined && { problem }) },
        ...{ configuration: printable(), sources: Object.fromEntries(sources) },
      };
    },
  };
}

const COUNT: Schema = { type: 'integer', minimum: 0 };

const HOOK_COUNTS: Schema = {
  type: 'object',
  required: ['hook', 'calls', 'failures', 'skipped', 'seconds'],
  properties: {
    hook: { type: 'string' },
    calls: { ...COUNT, description: 'Of the transform of a stream also one a chunk.' },
    failures: { ...COUNT, description: 'A refusal is none.' },
    skipped: { ...COUNT, description: 'Calls without it while it was left alone.' },
    seconds: { type: 'number', description: 'What it took where it gave a promise.' },
  },
};

const PLUGIN: Schema = {
  type: 'object',
  required: [
    'name',
    'plugin',
    'kind',
    'is_builtin',
    'hosts',
    'permissions',
    'environment',
    'hooks',
    'hook_counts',
    'routes',
    'commands',
  ],
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
    permissions: {
      type: 'array',
      items: { type: 'string' },
      description: 'What of the gateway it uses beyond what every plugin may.',
    },
    environment: {
      type: 'array',
      items: { type: 'string' },
      description: 'The environment variables that its options name, whether or not they are set.',
    },
    problem: {
      type: 'string',
      description: 'Why the gateway runs without it, where it could not be set up and is not required.',
    },
    hooks: { type: 'array', items: { type: 'string' } },
    hook_counts: { type: 'array', items: HOOK_COUNTS, description: 'Of all processes, each since its start.' },
    routes: { type: 'array', items: { type: 'string' } },
    commands: { type: 'array', items: { type: 'string' } },
  },
};

/** Plugins in the order in which inward hooks run. */
function pluginsRoute({ operators: { gateway, gather } }: PluginApi): Route {
  const gatherCounts = gather('hooks', () => gateway.plugins().map(({ name, counts }) => ({ name, counts })));
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: '/api/core/admin/plugins', scope: 'config:read' },
    summary: 'The plugins that serve: hooks in their order, routes, commands',
    responses: { 200: { description: 'All of them, in the order of the configuration.', schema: listOf(PLUGIN) } },
    async handler(ctx) {
      const all = (await gatherCounts()).flat();
      const rows = gateway.plugins().map(({ isBuiltin, counts, ...row }) => ({
        ...{ ...row, is_builtin: isBuiltin },
        hook_counts: counts.map(({ hook }) =>
          sumCounts(
            hook,
            all.filter(({ name }) => name === row.name).flatMap((each) => each.counts),
          ),
        ),
      }));
      sendList(ctx, rows, undefined);
    },
  };
}

function sumCounts(hook: string, counts: readonly HookReport[]): Readonly<Record<string, unknown>> {
  const own = counts.filter((each) => each.hook === hook);
  const sum = (field: 'calls' | 'failures' | 'skipped' | 'timedMs'): number =>
    own.reduce((total, each) => total + each[field], 0);
  return {
    ...{ hook, calls: sum('calls'), failures: sum('failures'), skipped: sum('skipped') },
    seconds: Math.round(sum('timedMs')) / 1000,
  };
}
