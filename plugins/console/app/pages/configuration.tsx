import { useState } from 'preact/hooks';
import { change, get, may } from '../api.ts';
import type { Reload, Configuration as Values } from '../shapes.ts';
import { Badge, Button, PageHead, Panel, Problem, Search, Spinner, Table, useLoad } from '../ui.tsx';

/** Effective configuration. It is changed in the file, and reloaded here. */
export function Configuration() {
  const [word, setWord] = useState('');
  const [report, setReport] = useState<Reload>();
  const [error, setError] = useState<unknown>();
  const values = useLoad('configuration', () => get<Values>('/configuration'));
  const reload = (diff: boolean): void => {
    setError(undefined);
    setReport(undefined);
    change<Reload>('POST', '/reload', { diff }).then(setReport, setError).finally(values.reload);
  };
  const rows = values.data ? leavesOf(values.data.configuration).filter(({ name }) => name.includes(word)) : [];
  const problem = values.data?.problem;
  return (
    <>
      <PageHead
        title="Configuration"
        note={
          values.data && (
            <>
              <Badge tone="dim">from the file</Badge> {values.data.file}. Change it there. Secrets are masked.
            </>
          )
        }
      >
        {may('config:reload') && (
          <>
            <Button onClick={() => reload(true)}>Preview a reload</Button>
            <Button onClick={() => reload(false)}>Reload</Button>
          </>
        )}
      </PageHead>
      <Problem error={error ?? values.error ?? (report ? undefined : problem)} />
      {report && <Changes report={report} />}
      <search class="filters" aria-label="Which values">
        <Search label="Name contains" value={word} onPick={setWord} />
      </search>
      <Spinner of={values} />
      {values.data && (
        <Table
          label="Values"
          rows={rows}
          keyOf={({ pointer }) => pointer}
          empty="No name contains this."
          columns={[
            { name: 'Name', cell: ({ name }) => <code class="wrap">{name}</code> },
            { name: 'Value', cell: ({ value }) => <div class="wrap">{JSON.stringify(value)}</div> },
            { name: 'From', cell: ({ pointer }) => values.data?.sources[pointer] ?? 'default' },
          ]}
        />
      )}
    </>
  );
}

function Changes({ report }: { report: Reload }) {
  return (
    <Panel title={report.reloaded ? 'Reloaded' : 'Changes of a reload'}>
      <Table
        label="Changes"
        rows={report.changes}
        keyOf={({ path }) => path}
        empty={report.reloaded ? 'Active; nothing changed.' : 'None: the file is active.'}
        columns={[
          { name: 'Name', cell: ({ path }) => <code>{path}</code> },
          { name: 'Before', cell: ({ before }) => before ?? '–' },
          { name: 'After', cell: ({ after }) => after ?? '–' },
          { name: 'When', cell: ({ needs_restart }) => (needs_restart ? 'after a restart' : 'at a reload') },
        ]}
      />
    </Panel>
  );
}

interface Leaf {
  /** JSON pointer of the value, as used by the gateway. */
  readonly pointer: string;
  readonly name: string;
  readonly value: unknown;
}

/** Every value with its dotted name. */
function leavesOf(value: unknown, pointer = '', name = ''): readonly Leaf[] {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMap || Object.keys(value).length === 0) return [{ pointer, name, value }];
  return Object.entries(value).flatMap(([key, child]) =>
    leavesOf(
      child,
      `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      name === '' ? key : `${name}.${key}`,
    ),
  );
}
