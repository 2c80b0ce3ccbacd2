import { get, type Page } from '../api.ts';
import { count, milliseconds } from '../format.ts';
import type { Plugin } from '../shapes.ts';
import { Badge, type Column, PageHead, Panel, Problem, Spinner, Table, useLoad } from '../ui.tsx';

/** Hook of a plugin, with its counts. */
type HookRow = Plugin['hook_counts'][number] & { readonly plugin: string };

/** Loaded plugins, in the order of inward hooks, with the cost of hooks. */
export function Plugins() {
  const plugins = useLoad('plugins', () => get<Page<Plugin>>('/plugins'));
  const rows = plugins.data?.data ?? [];
  const hooks = rows.flatMap(({ name, hook_counts }) => hook_counts.map((each) => ({ ...each, plugin: name })));
  return (
    <>
      <PageHead
        title="Plugins"
        note="In the order of the configuration. Hooks of requests run in this order, hooks of responses in reverse."
      />
      <Problem error={plugins.error} retry={plugins.reload} />
      <Spinner of={plugins} />
      {plugins.data && (
        <>
          <Panel title="Hooks" note="sum over all processes on the store, each since its start; failing ones first">
            <Table
              label="Runs of hooks"
              rows={hooks.filter(({ calls, skipped }) => calls + skipped > 0).toSorted(byFailures)}
              keyOf={({ plugin, hook }) => `${plugin} ${hook}`}
              empty="No hook has run yet."
              columns={HOOK_COLUMNS}
            />
          </Panel>
          <Table label="Plugins" rows={rows} keyOf={({ kind, name }) => `${kind} ${name}`} columns={COLUMNS} />
        </>
      )}
    </>
  );
}

function byFailures(one: HookRow, other: HookRow): number {
  return other.failures + other.skipped - (one.failures + one.skipped);
}

const HOOK_COLUMNS: readonly Column<HookRow>[] = [
  {
    name: 'Plugin',
    cell: ({ plugin, hook, nodes }) => (
      <div class="wrap">
        <b>{plugin}</b> <code>{hook}</code>
        <HookNodes nodes={nodes} />
      </div>
    ),
  },
  { name: 'Runs', isNumber: true, cell: ({ calls }) => count(calls) },
  {
    name: 'Failed',
    isNumber: true,
    cell: ({ failures }) => (failures > 0 ? <Badge tone="bad">{count(failures)}</Badge> : '0'),
  },
  {
    name: 'Skipped',
    isNumber: true,
    cell: ({ skipped }) => (skipped > 0 ? <Badge tone="warn">{count(skipped)}</Badge> : '0'),
  },
  {
    name: 'Total time',
    isNumber: true,
    cell: ({ seconds }) => (seconds > 0 ? milliseconds(seconds * 1000) : '–'),
  },
  {
    name: 'Time per run',
    isNumber: true,
    cell: ({ seconds, calls }) => (seconds > 0 && calls > 0 ? `${((seconds * 1000) / calls).toFixed(2)} ms` : '–'),
  },
];

/** Runs of a hook in each process. */
function HookNodes({ nodes }: Pick<HookRow, 'nodes'>) {
  if (nodes.length < 2) return null;
  return (
    <details>
      <summary>{nodes.length} processes</summary>
      <ul class="lines">
        {nodes.map(({ node, calls, failures, skipped }) => (
          <li key={node}>
            <b>{node}</b>{' '}
            <span class="muted">
              {count(calls)} runs, {count(failures)} failed, {count(skipped)} skipped
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}

const COLUMNS: readonly Column<Plugin>[] = [
  {
    name: 'Plugin',
    cell: ({ name, plugin, is_builtin, problem }) => (
      <div class="wrap">
        <b>{name}</b> {plugin !== name && <span class="muted">{plugin}</span>}{' '}
        {!is_builtin && <Badge tone="warn">not built in</Badge>}{' '}
        {problem !== undefined && <Badge tone="bad">not loaded</Badge>}
        {problem !== undefined && <p>{problem}</p>}
      </div>
    ),
  },
  { name: 'Kind', cell: ({ kind }) => kind },
  { name: 'Hooks', cell: ({ hooks }) => <div class="wrap">{[...new Set(hooks)].join(', ') || '–'}</div> },
  { name: 'Routes', cell: ({ routes }) => <Few names={routes} /> },
  { name: 'Commands', isExtra: true, cell: ({ commands }) => <div class="wrap">{commands.join(', ') || '–'}</div> },
  {
    name: 'Hosts, $variables, permissions',
    isExtra: true,
    cell: ({ hosts, environment, permissions }) => (
      <div class="wrap">{[...hosts, ...environment.map((name) => `$${name}`), ...permissions].join(', ') || '–'}</div>
    ),
  },
];

function Few({ names }: { names: readonly string[] }) {
  if (names.length === 0) return <>–</>;
  return (
    <details>
      <summary>{names.length === 1 ? '1 route' : `${names.length} routes`}</summary>
      <ul class="lines">
        {names.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </details>
  );
}
