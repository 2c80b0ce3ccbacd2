import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Builtin, findManifest, locatePlugin } from '../config/import-plugin.ts';
import { VERSION } from '../config/package-root.ts';
import type { PluginReport } from '../contract/gateway.ts';
import { HOOKS, type HookName } from '../contract/hooks.ts';
import { isObject, parseJson } from '../contract/json.ts';
import type { PluginKind } from '../contract/plugin.ts';
import type { ProcessState } from '../core/plugins/gather.ts';
import { trySetUp } from './check-config.ts';
import { callGateways } from './cluster/control.ts';
import type { CommandContext } from './io.ts';
import { createIo, fitTable, formatTable, type Terminal } from './io.ts';
import { loadFor } from './load.ts';
import { quietLog } from './program-log.ts';

/**
 * `tollgate plugins`: lists every configured plugin with its origin, its registrations, the order of hooks, and their
 * cost in the gateways that run here. Plugins are set up as for `check`: without a store or a port.
 */
export async function listPlugins(context: CommandContext): Promise<void> {
  const loaded = await loadFor(context);
  let reports: readonly PluginReport[] = [];
  await trySetUp(loaded, quietLog(), ({ gateway }) => {
    reports = gateway.plugins();
  });
  const order = orderHooks(reports);
  const { builtins, config, settings } = loaded;
  const running = await callGateways(settings.dataDir, 'status');
  const counted = running.flatMap((each) => each.hooks);
  const parts = running.flatMap((each) => each.parts);
  const rows = await Promise.all(
    reports.map(
      async ({ kind, name, plugin, isBuiltin, hosts, permissions, environment, routes, commands, problem }) => ({
        kind,
        name,
        plugin,
        source: isBuiltin ? 'built in' : 'yours',
        ...(await findOrigin(
          { kind, plugin, isBuiltin, ...(problem !== undefined && { problem }) },
          builtins,
          config.baseDir,
        )),
        ...(problem !== undefined && { problem }),
        hooks: order.flatMap(({ hook, plugins }) =>
          plugins.flatMap((owner, at) => (owner === name ? [{ hook, position: at + 1, of: plugins.length }] : [])),
        ),
        routes,
        commands,
        hosts,
        permissions,
        environment,
        ...(running.length > 0 && { hook_counts: sumCounts(name, counted), parts: partsOf(name, parts) }),
      }),
    ),
  );
  createIo(context.terminal, context.globals.json === true).result(
    rows,
    formatPlugins(context.terminal, rows, order, running.length > 0),
  );
}

/** One plugin in the list, as printed by `--json`. */
interface PluginRow
  extends Pick<
    PluginReport,
    'kind' | 'name' | 'plugin' | 'routes' | 'commands' | 'hosts' | 'permissions' | 'environment'
  > {
  readonly source: string;
  readonly version?: string;
  readonly license?: string;
  readonly provenance: string;
  readonly problem?: string;
  readonly hooks: readonly { readonly hook: HookName; readonly position: number; readonly of: number }[];
  readonly hook_counts?: ReturnType<typeof sumCounts>;
  readonly parts?: ReturnType<typeof partsOf>;
}

/** Table columns with their values. */
const COLUMNS: Readonly<Record<string, (row: PluginRow) => string>> = {
  KIND: ({ kind }) => kind,
  NAME: ({ name }) => name,
  PLUGIN: ({ plugin }) => plugin,
  SOURCE: ({ source }) => source,
  VERSION: ({ version }) => version ?? '',
  LICENCE: ({ license }) => license ?? '',
  HOOKS: ({ hooks }) => [...new Set(hooks.map(({ hook }) => hook))].join(','),
  ROUTES: ({ routes }) => (routes.length > 3 ? `${routes.length} routes` : routes.join(',')),
  COMMANDS: ({ commands }) => commands.join(','),
  HOSTS: ({ hosts }) => hosts.join(','),
  PERMISSIONS: ({ permissions }) => permissions.join(','),
  ENVIRONMENT: ({ environment }) => environment.join(','),
  PROVENANCE: ({ provenance }) => provenance,
};

/**
 * Formats the list for a person: plugins, hook order, hook cost where a gateway runs, and plugins that were left out.
 */
function formatPlugins(
  terminal: Terminal,
  rows: readonly PluginRow[],
  order: readonly HookOrder[],
  isRunning: boolean,
): string {
  const cells = Object.values(COLUMNS);
  const table = fitTable(
    terminal,
    Object.keys(COLUMNS),
    rows.map((row) => cells.map((cell) => cell(row))),
  );
  const orders = formatTable(
    ['HOOK', 'RUNS IN THIS ORDER'],
    order.map(({ hook, plugins }) => [hook, plugins.join(', ')]),
  );
  const costs = rows.flatMap(({ name, hook_counts: counts = [] }) =>
    counts.map(({ hook, calls, failures, seconds }) => [name, hook, `${calls}`, `${failures}`, `${seconds}`]),
  );
  const cost = isRunning
    ? formatTable(['PLUGIN', 'HOOK', 'CALLS', 'FAILED', 'SECONDS'], costs)
    : 'Hook durations are shown only while a gateway of this configuration runs.';
  const left = rows.flatMap(({ name, problem }) =>
    problem === undefined ? [] : [`\n${name} is not loaded: ${problem}`],
  );
  const states = rows.flatMap(({ name, parts = [] }) =>
    parts.map(({ name: part, state, problem }) => [name, part, state, problem ?? '']),
  );
  const programs = states.length === 0 ? '' : `\n\n${formatTable(['PLUGIN', 'PART', 'STATE', 'PROBLEM'], states)}`;
  return `${table}\n\n${orders}\n\n${cost}${programs}${left.join('')}`;
}

interface HookOrder {
  readonly hook: HookName;
  /** Instances in the order in which they run. */
  readonly plugins: readonly string[];
}

/**
 * Orders hooks: inward ones run in the order of the configuration, outward ones in reverse. `pre` and `post` run before
 * and after all others.
 */
export function orderHooks(reports: readonly Pick<PluginReport, 'name' | 'hooks'>[]): readonly HookOrder[] {
  const entries = reports.flatMap(({ name, hooks }) => hooks.map((text) => ({ name, text })));
  return (Object.keys(HOOKS) as HookName[]).flatMap((hook) => {
    const inward = [`${hook} (pre)`, hook, `${hook} (post)`].flatMap((wanted) =>
      entries.filter(({ text }) => text === wanted).map(({ name }) => name),
    );
    if (inward.length === 0) return [];
    return [{ hook, plugins: HOOKS[hook].direction === 'out' ? inward.reverse() : inward }];
  });
}

/** Parts of a plugin in all processes. */
function partsOf(plugin: string, parts: ProcessState['parts']) {
  return parts
    .filter((part) => part.plugin === plugin)
    .map(({ plugin: _plugin, isHealthy, ...part }) => ({ ...part, is_healthy: isHealthy }));
}

/**
 * Sums the hook counts of a plugin over all processes; hooks that did not run yet are omitted. Seconds count
 * asynchronous hooks only.
 */
function sumCounts(plugin: string, counts: ProcessState['hooks']) {
  const own = counts.filter((each) => each.plugin === plugin && each.calls + each.skipped > 0);
  return [...new Set(own.map(({ hook }) => hook))].map((hook) => {
    const sum = (field: 'calls' | 'failures' | 'skipped' | 'timedMs'): number =>
      own.reduce((total, each) => total + (each.hook === hook ? each[field] : 0), 0);
    const seconds = Math.round(sum('timedMs')) / 1000;
    return { hook, calls: sum('calls'), failures: sum('failures'), skipped: sum('skipped'), seconds };
  });
}

/** Finds the package of a plugin; a file outside of any package has neither version nor licence. */
async function findOrigin(
  { kind, plugin, isBuiltin, problem }: Pick<PluginReport, 'kind' | 'plugin' | 'isBuiltin' | 'problem'>,
  builtins: readonly Builtin[],
  baseDir: string,
): Promise<{ readonly version?: string; readonly license?: string; readonly provenance: string }> {
  if (isBuiltin) return { version: VERSION, license: 'MIT', provenance: 'part of Tollgate' };
  const located = locatePlugin(plugin, { kind: kind as PluginKind, builtins, baseDir });
  // A plugin that was left out may be missing on disk.
  const url = await (problem === undefined ? located : located.catch(() => ''));
  const manifest = findManifest(url, baseDir);
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value.slice(0, 100) : undefined);
  const [version, license] = [text(manifest['version']), text(manifest['license'])];
  const provenance = findProvenance(url, text(manifest['name'])) ?? 'file on this machine';
  return { ...(version !== undefined && { version }), ...(license !== undefined && { license }), provenance };
}

/** Reads npm's record of an installed package: its origin and digest. */
function findProvenance(url: string, name: string | undefined): string | undefined {
  const at = url.lastIndexOf('/node_modules/');
  if (!url.startsWith('file:') || at < 0 || name === undefined) return undefined;
  const lock = path.join(fileURLToPath(url.slice(0, at)), 'node_modules', '.package-lock.json');
  let packages: unknown;
  try {
    packages = (parseJson(readFileSync(lock, 'utf8')) as { readonly packages?: unknown } | undefined)?.packages;
  } catch {
    return undefined;
  }
  const entry = isObject(packages) ? packages[`node_modules/${name}`] : undefined;
  if (!isObject(entry) || typeof entry['resolved'] !== 'string') return undefined;
  return [entry['resolved'], entry['integrity']].filter((word) => typeof word === 'string').join(' ');
}
