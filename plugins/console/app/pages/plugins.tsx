import { get, type Page } from '../api.ts';
import type { Plugin } from '../shapes.ts';
import { Badge, PageHead, Problem, Spinner, Table, useLoad } from '../ui.tsx';

/** What is loaded, in the order in which hooks run on the way in. */
export function Plugins() {
  const plugins = useLoad('plugins', () => get<Page<Plugin>>('/plugins'));
  return (
    <>
      <PageHead
        title="Plugins"
        note="In the order of the configuration, in which hooks run on the way in; on the way out they run in reverse."
      />
      <Problem error={plugins.error} retry={plugins.reload} />
      <Spinner of={plugins} />
      {plugins.data && (
        <Table
          label="Plugins"
          rows={plugins.data.data}
          keyOf={({ kind, name }) => `${kind} ${name}`}
          columns={[
            {
              name: 'Plugin',
              cell: ({ name, plugin, is_builtin, problem }) => (
                <>
                  <b>{name}</b> {plugin !== name && <span class="muted">{plugin}</span>}{' '}
                  {!is_builtin && <Badge tone="warn">not built in</Badge>}{' '}
                  {problem !== undefined && (
                    <span title={problem}>
                      <Badge tone="bad">left out</Badge>
                    </span>
                  )}
                </>
              ),
            },
            { name: 'Kind', cell: ({ kind }) => kind },
            { name: 'Hooks', cell: ({ hooks }) => <div class="wrap">{hooks.join(', ') || '–'}</div> },
            { name: 'Failures', cell: ({ hook_counts }) => <Failures counts={hook_counts} /> },
            { name: 'Routes', cell: ({ routes }) => <Few names={routes} /> },
            { name: 'Commands', isExtra: true, cell: ({ commands }) => commands.join(', ') || '–' },
            { name: 'Hosts', isExtra: true, cell: ({ hosts }) => hosts.join(', ') || '–' },
          ]}
        />
      )}
    </>
  );
}

/** Hooks that failed or were left alone, of how many calls. */
function Failures({ counts }: { counts: Plugin['hook_counts'] }) {
  const bad = counts.filter(({ failures, skipped }) => failures + skipped > 0);
  if (bad.length === 0) return <>–</>;
  return (
    <ul class="lines">
      {bad.map(({ hook, calls, failures, skipped }) => (
        <li key={hook}>
          {hook}: {failures} of {calls} failed{skipped > 0 && `, ${skipped} went without it`}
        </li>
      ))}
    </ul>
  );
}

function Few({ names }: { names: readonly string[] }) {
  if (names.length < 2) return <>{names[0] ?? '–'}</>;
  return (
    <details>
      <summary>{names.length} routes</summary>
      <ul class="lines">
        {names.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </details>
  );
}
