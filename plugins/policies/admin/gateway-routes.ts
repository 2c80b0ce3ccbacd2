import {
  GatewayError,
  type HookReport,
  type PluginApi,
  type ReloadReport,
  type Route,
  readObject,
  type Schema,
} from '../../../contract/index.ts';
import {
  auditActor,
  FOR_OPERATORS,
  hasScope,
  listOf,
  mergeStates,
  PAGE_QUERY,
  readPage,
  sendList,
  targetRows,
} from '../kit/index.ts';
import type { NamedFacts, ReadFacts } from './nodes.ts';

/** Operator routes that need no other plugin: targets, configuration, reload, plugins. */
export function gatewayRoutes(api: PluginApi, readFacts: ReadFacts): readonly Route[] {
  return [targetsRoute(api, readFacts), reloadRoute(api), configurationRoute(api), pluginsRoute(api, readFacts)];
}

const NODE_NAME: Schema = { type: 'string', description: 'Host and process id.' };

const TARGET_ROW: Schema = {
  type: 'object',
  required: ['target', 'provider', 'model', 'state', 'error_ratio', 'attempts', 'nodes'],
  properties: {
    target: { type: 'string', description: '`provider/model`, or `provider#key/model` of one key' },
    provider: { type: 'string' },
    model: { type: 'string' },
    key: { type: 'string', description: 'Name of the provider’s key, if it has several.' },
    state: {
      enum: ['closed', 'half-open', 'open', 'drained'],
      description: 'Worst state of all processes on the store.',
    },
    nodes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['node', 'state', 'error_ratio', 'attempts'],
        properties: {
          node: NODE_NAME,
          state: { enum: ['closed', 'half-open', 'open', 'drained'] },
          error_ratio: { type: 'number' },
          attempts: { type: 'integer' },
          first_token_ms: { type: 'number' },
        },
      },
      description: 'State in each process that used it, up to ten seconds old.',
    },
    cause: { enum: ['rate_limit', 'credential', 'failures', 'shared'] },
    open_until: { type: 'string', description: 'Time of the next retry.' },
    error_ratio: { type: 'number', description: 'Failure rate of its latest attempts.' },
    attempts: { type: 'integer' },
    whole_ms: { type: 'number', description: 'Recent duration of whole responses.' },
    first_token_ms: { type: 'number', description: 'Recent time to the first token of streams.' },
    last_error: {
      type: 'object',
      required: ['at'],
      properties: {
        at: { type: 'string' },
        message: {
          type: 'string',
          description: 'Error message of the vendor (needs the scope `bodies:read`) or the network, without secrets.',
        },
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
  description: 'Targets and providers drained by operators.',
};

const RETRIES: Schema = {
  type: 'object',
  required: ['live', 'running', 'allowed', 'refused'],
  properties: {
    live: { type: 'integer', description: 'Running calls.' },
    running: { type: 'integer' },
    allowed: { type: 'integer' },
    refused: { type: 'integer' },
  },
};

function targetsRoute({ operators: { gateway } }: PluginApi, readFacts: ReadFacts): Route {
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: '/api/core/admin/targets',
    scope: 'targets:read',
    summary: 'List configured and used targets: state, errors, latency, last error',
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: {
      200: {
        description: 'Targets, sorted by name.',
        schema: listOf(TARGET_ROW, { retries: RETRIES, drained: DRAINED }),
      },
    },
    async handler(ctx) {
      const { limit, after = '' } = readPage(ctx);
      const [own, facts] = await Promise.all([gateway.routing(), readFacts()]);
      const others = facts.filter(({ isOwn }) => !isOwn).map(({ routing }) => routing);
      const state = mergeStates([own, ...others]);
      const rest = targetRows(state).filter(({ target }) => target > after);
      const nodes = nodesOfTargets(facts);
      const next = rest.length > limit ? rest[limit - 1]?.target : undefined;
      const page = rest.slice(0, limit).map((row) => ({ ...row, nodes: nodes.get(row.target) ?? [] }));
      const shown = hasScope(ctx.state.principal, 'bodies:read') ? page : page.map(withoutVendorMessage);
      sendList(ctx, shown, next, { retries: state.retries, drained: state.drained });
    },
  };
}

/** Error messages of vendors may quote prompts. An error without a status is of the network. */
function withoutVendorMessage({ last_error: error, ...row }: TargetRow): object {
  if (error?.status === undefined) return { ...row, ...(error && { last_error: error }) };
  const { message: _message, ...shown } = error;
  return { ...row, last_error: shown };
}

type TargetRow = ReturnType<typeof targetRows>[number];

/** State of each target in each node. */
function nodesOfTargets(facts: readonly NamedFacts[]): ReadonlyMap<string, readonly object[]> {
  const found = new Map<string, object[]>();
  for (const { node, routing } of facts)
    for (const { target, state, error_ratio, attempts, first_token_ms } of targetRows(routing)) {
      const rows = found.get(target) ?? [];
      found.set(target, rows);
      rows.push({ node, state, error_ratio, attempts, ...(first_token_ms !== undefined && { first_token_ms }) });
    }
  return found;
}

const RELOAD_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { diff: { type: 'boolean', description: 'Only return what a reload would change.' } },
} satisfies Schema;

/** Schema of {@link showChanges}. */
export const CONFIG_CHANGES: Schema = {
  type: 'array',
  items: {
    type: 'object',
    required: ['path', 'needs_restart'],
    properties: {
      path: { type: 'string' },
      before: { type: 'string', description: 'JSON with masked secrets; absent for new values.' },
      after: { type: 'string' },
      needs_restart: { type: 'boolean' },
    },
  },
};

const RELOAD_RESPONSE: Schema = {
  type: 'object',
  required: ['object', 'file', 'reloaded', 'changes'],
  properties: {
    object: { const: 'reload' },
    file: { type: 'string', description: 'Display name of the configuration.' },
    reloaded: { type: 'boolean', description: 'True if it is in use.' },
    changes: CONFIG_CHANGES,
  },
};

function reloadRoute({ operators: { gateway } }: PluginApi): Route {
  return {
    ...FOR_OPERATORS,
    method: 'POST',
    path: '/api/core/admin/reload',
    scope: 'config:reload',
    summary: 'Reload the configuration',
    body: RELOAD_BODY,
    bodyOptional: true,
    responses: { 200: { description: 'Changes, or changes to be made.', schema: RELOAD_RESPONSE } },
    async handler(ctx) {
      const control = gateway.reloads();
      if (!control)
        throw new GatewayError(
          'feature_disabled',
          'This gateway is embedded in a program that loads the configuration. Reload it there, or start it with `tollgate start`.',
        );
      const isTrial = readObject(ctx.state.body)['diff'] === true;
      const report = await (isTrial ? control.compare() : control.reload('the admin API', auditActor(ctx)));
      const body = describeReport(report);
      if (report.isInAudit === false)
        throw new GatewayError(
          'store_unavailable',
          'The configuration was reloaded, but its audit log entry could not be written: the store does not respond.',
          { retryAfterMs: 1000 },
        );
      ctx.set('cache-control', 'no-store');
      ctx.body = body;
    },
  };
}

/** Report of a reload; a refused configuration is an error. */
function describeReport({ file, isReloaded, changes, problem, summary = problem }: ReloadReport): object {
  if (summary !== undefined) throw new GatewayError('conflict', `No changes made: ${summary}`);
  return { object: 'reload', file, reloaded: isReloaded, changes: showChanges(changes) };
}

/** Changes of a reload as the API shows them. */
export function showChanges(changes: ReloadReport['changes']): readonly object[] {
  return changes.map(({ needsRestart, ...change }) => ({ ...change, needs_restart: needsRestart }));
}

const CONFIGURATION: Schema = {
  type: 'object',
  required: ['object', 'file', 'is_default', 'configuration', 'sources'],
  properties: {
    object: { const: 'configuration' },
    file: { type: 'string', description: 'Display name of the configuration.' },
    is_default: { type: 'boolean', description: 'True for the built-in configuration.' },
    configuration: { type: 'object', description: 'Effective values with defaults and masked secrets.' },
    sources: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description:
        'Source of each value by JSON pointer: `env PORT`, `file /run/secrets/key`, `tollgate.config.yaml:3`. Other values are defaults.',
    },
    problem: {
      type: 'string',
      description: 'Reason why the last reload was rejected; absent after a successful reload.',
    },
  },
};

/** Configuration of the running gateway, as shown by `tollgate config print`. */
function configurationRoute({ operators: { gateway } }: PluginApi): Route {
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: '/api/core/admin/configuration',
    scope: 'config:read',
    summary: 'Get the effective configuration, without secrets',
    responses: { 200: { description: 'Effective values.', schema: CONFIGURATION } },
    handler(ctx) {
      const { file, isDefault, printable, sources } = gateway.configuration;
      const problem = gateway.reloadProblem();
      ctx.set('cache-control', 'no-store');
      ctx.body = {
        object: 'configuration',
        file,
        is_default: isDefault,
        ...(problem !== undefined && { problem }),
        configuration: printable(),
        sources: Object.fromEntries(sources),
      };
    },
  };
}

const COUNT: Schema = { type: 'integer', minimum: 0 };

const HOOK_COUNTS: Schema = {
  type: 'object',
  required: ['hook', 'calls', 'failures', 'skipped', 'seconds', 'nodes'],
  properties: {
    hook: { type: 'string' },
    calls: { ...COUNT, description: 'Includes one run per chunk for transforms of streams.' },
    failures: { ...COUNT, description: 'Rejections are not included.' },
    skipped: { ...COUNT, description: 'Calls that skipped the hook after timeouts.' },
    seconds: { type: 'number', description: 'Duration of asynchronous runs.' },
    nodes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['node', 'calls', 'failures', 'skipped', 'seconds'],
        properties: {
          node: NODE_NAME,
          calls: COUNT,
          failures: COUNT,
          skipped: COUNT,
          seconds: { type: 'number' },
        },
      },
      description: 'Counts of each process, up to ten seconds old.',
    },
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
    name: { type: 'string', description: 'Name in the configuration.' },
    plugin: { type: 'string', description: 'Built-in name, package or path.' },
    kind: { type: 'string' },
    is_builtin: { type: 'boolean' },
    hosts: {
      type: 'array',
      items: { type: 'string' },
      description: 'Hosts that it may connect to, in addition to those of its options.',
    },
    permissions: {
      type: 'array',
      items: { type: 'string' },
      description: 'Additional rights in the gateway.',
    },
    environment: {
      type: 'array',
      items: { type: 'string' },
      description: 'Environment variables in its options, set or not.',
    },
    problem: {
      type: 'string',
      description: 'Reason why an optional plugin is not loaded.',
    },
    hooks: { type: 'array', items: { type: 'string' } },
    parts: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name', 'state', 'is_healthy'],
        properties: {
          name: { type: 'string' },
          state: { type: 'string' },
          is_healthy: { type: 'boolean' },
          problem: { type: 'string' },
        },
      },
      description: 'Programs and connections of the plugin, such as MCP servers, in each process.',
    },
    hook_counts: {
      type: 'array',
      items: HOOK_COUNTS,
      description: 'Sum over all processes on the store, each since its start.',
    },
    routes: { type: 'array', items: { type: 'string' } },
    commands: { type: 'array', items: { type: 'string' } },
  },
};

/** Plugins in the order in which inward hooks run. */
function pluginsRoute({ operators: { gateway, gather } }: PluginApi, readFacts: ReadFacts): Route {
  const gatherCounts = gather('hooks', () =>
    gateway.plugins().map(({ name, counts, parts }) => ({ name, counts, parts })),
  );
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: '/api/core/admin/plugins',
    scope: 'config:read',
    summary: 'List loaded plugins: hooks in their order, routes, commands',
    responses: { 200: { description: 'Plugins, in the order of the configuration.', schema: listOf(PLUGIN) } },
    async handler(ctx) {
      const [own, facts] = await Promise.all([gatherCounts(), readFacts()]);
      const all = own.flat();
      const others = facts.filter(({ isOwn }) => !isOwn).flatMap(({ hooks }) => hooks);
      const rows = gateway.plugins().map(({ isBuiltin, counts, parts: _parts, ...row }) => ({
        ...row,
        is_builtin: isBuiltin,
        parts: all
          .filter(({ name }) => name === row.name)
          .flatMap(({ parts }) => parts.map(({ isHealthy, ...part }) => ({ ...part, is_healthy: isHealthy }))),
        hook_counts: counts.map(({ hook }) =>
          sumCounts(
            hook,
            [
              ...all.filter(({ name }) => name === row.name).flatMap((each) => each.counts),
              ...others.filter(({ plugin }) => plugin === row.name),
            ],
            nodesOfHook(facts, row.name, hook),
          ),
        ),
      }));
      sendList(ctx, rows, undefined);
    },
  };
}

type Counts = Pick<HookReport, 'hook' | 'calls' | 'failures' | 'skipped' | 'timedMs'>;

function sumCounts(
  hook: string,
  counts: readonly Counts[],
  nodes: readonly object[],
): Readonly<Record<string, unknown>> {
  const own = counts.filter((each) => each.hook === hook);
  const sum = (field: 'calls' | 'failures' | 'skipped' | 'timedMs'): number =>
    own.reduce((total, each) => total + each[field], 0);
  return {
    hook,
    calls: sum('calls'),
    failures: sum('failures'),
    skipped: sum('skipped'),
    seconds: toSeconds(sum('timedMs')),
    nodes,
  };
}

function toSeconds(ms: number): number {
  return Math.round(ms) / 1000;
}

/** Counts of a hook in each node. */
function nodesOfHook(facts: readonly NamedFacts[], plugin: string, hook: string): readonly object[] {
  return facts.flatMap(({ node, hooks }) =>
    hooks
      .filter((each) => each.plugin === plugin && each.hook === hook)
      .map(({ calls, failures, skipped, timedMs }) => ({
        node,
        calls,
        failures,
        skipped,
        seconds: toSeconds(timedMs),
      })),
  );
}
