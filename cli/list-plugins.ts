import { type Builtin, findManifest, locatePlugin } from '../config/import-plugin.ts';
import { VERSION } from '../config/package-root.ts';
import type { PluginReport } from '../core/contract/gateway.ts';
import { HOOKS, type HookName } from '../core/contract/hooks.ts';
import type { PluginKind } from '../core/contract/plugin.ts';
import { createIo, formatTable } from './io.ts';
import { loadFor } from './load.ts';
import type { CommandContext } from './program.ts';
import { quietLog } from './program-log.ts';
import { trySetUp } from './start.ts';

/**
 * `tollgate plugins`: every plugin that the configuration loads, where it comes from, what it registers, and the order in which hooks run.
 * They are set up as for `check`: without the store, and nothing listens.
 */
export async function listPlugins(context: CommandContext): Promise<void> {
  const loaded = await loadFor(context);
  let reports: readonly PluginReport[] = [];
  await trySetUp(loaded, quietLog(), ({ gateway }) => {
    reports = gateway.plugins();
  });
  const order = orderHooks(reports);
  const { builtins, config } = loaded;
  const rows = await Promise.all(
    reports.map(async ({ kind, name, plugin, isBuiltin, hosts, permissions, routes, commands, problem }) => ({
      ...{ kind, name, plugin, source: isBuiltin ? 'built in' : 'yours' },
      ...(await findOrigin(
        { kind, plugin, isBuiltin, ...(problem !== undefined && { problem }) },
        builtins,
        config.baseDir,
      )),
      ...(problem !== undefined && { problem }),
      hooks: order.flatMap(({ hook, plugins }) =>
        plugins.flatMap((owner, at) => (owner === name ? [{ hook, position: at + 1, of: plugins.length }] : [])),
      ),
      ...{ routes, commands, hosts, permissions },
    })),
  );
  const table = formatTable(
    ['KIND', 'NAME', 'PLUGIN', 'SOURCE', 'VERSION', 'LICENCE', 'HOOKS', 'ROUTES', 'COMMANDS', 'HOSTS', 'PERMISSIONS'],
    rows.map((row) => [
      ...[row.kind, row.name, row.plugin, row.source, row.version ?? '', row.license ?? ''],
      [...new Set(row.hooks.map(({ hook }) => hook))].join(','),
      row.routes.length > 3 ? `${row.routes.length} routes` : row.routes.join(','),
      ...[row.commands.join(','), row.hosts.join(','), row.permissions.join(',')],
    ]),
  );
  const orders = formatTable(
    ['HOOK', 'RUNS IN THIS ORDER'],
    order.map(({ hook, plugins }) => [hook, plugins.join(', ')]),
  );
  const left = rows.flatMap(({ name, problem }) =>
    problem === undefined ? [] : [`\n${name} is left out: ${problem}`],
  );
  createIo(context.terminal, context.globals.json === true).result(rows, `${table}\n\n${orders}${left.join('')}`);
}

interface HookOrder {
  readonly hook: HookName;
  /** Instances, in the order in which they run. */
  readonly plugins: readonly string[];
}

/** Inward hooks run in the order of the configuration, outward ones in reverse; `pre` and `post` go before and after all others. */
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

/** The package that a plugin comes from; a file that belongs to no package of its own has neither version nor licence. */
async function findOrigin(
  { kind, plugin, isBuiltin, problem }: Pick<PluginReport, 'kind' | 'plugin' | 'isBuiltin' | 'problem'>,
  builtins: readonly Builtin[],
  baseDir: string,
): Promise<{ readonly version?: string; readonly license?: string }> {
  if (isBuiltin) return { version: VERSION, license: 'MIT' };
  const located = locatePlugin(plugin, { kind: kind as PluginKind, builtins, baseDir });
  // One that was left out may not be there at all.
  const url = await (problem === undefined ? located : located.catch(() => ''));
  const manifest = findManifest(url, baseDir);
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value.slice(0, 100) : undefined);
  const [version, license] = [text(manifest['version']), text(manifest['license'])];
  return { ...(version !== undefined && { version }), ...(license !== undefined && { license }) };
}
