import { get, type Page } from '../api.ts';
import { linkTo, route, setWords } from '../routing.ts';
import type { AuditEntry } from '../shapes.ts';
import { PageHead, Problem, Search, Spinner, Table, Time, useLoad } from '../ui.tsx';

const WORDS = Object.freeze({ subject: 'What', actor: 'Who', action: 'Action', from: 'From day', to: 'To day' });

/** What operators changed. Nothing here can be changed. */
export function Audit() {
  const { query } = route.value;
  const entries = useLoad(JSON.stringify(query), () => get<Page<AuditEntry>>('/audit', { ...query, limit: 100 }));
  return (
    <>
      <PageHead
        title="Audit"
        note="What operators changed, newest first: here, over the API and on the command line."
      />
      <search class="filters" aria-label="Which changes">
        {Object.entries(WORDS).map(([name, label]) => (
          <Search
            key={name}
            label={label}
            value={query[name] ?? ''}
            onPick={(text) => setWords({ [name]: text, after: undefined })}
          />
        ))}
      </search>
      <Problem error={entries.error} retry={entries.reload} />
      <Spinner of={entries} />
      {entries.data && (
        <Table
          label="Changes"
          rows={entries.data.data}
          keyOf={({ id }) => id}
          empty="No change matches."
          columns={[
            { name: 'Time', cell: ({ at }) => <Time at={at} /> },
            { name: 'Who', cell: ({ actor }) => `${actor.user_id ?? actor.key_id ?? '–'} by ${actor.via}` },
            { name: 'Action', cell: ({ action }) => <code>{action}</code> },
            { name: 'What', cell: ({ subject }) => <a href={linkTo('audit', { subject })}>{subject}</a> },
            { name: 'Change', cell: (entry) => <div class="wrap">{tellChange(entry)}</div> },
          ]}
        />
      )}
      {entries.data?.next && (
        <p>
          <a class="button plain" href={linkTo('audit', { ...query, after: entries.data.next })}>
            Older
          </a>
        </p>
      )}
    </>
  );
}

/** What is different since, as `rpm 60 → 120`. */
function tellChange({ before, after }: AuditEntry): string {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const tell = (value: unknown): string =>
    value === undefined || value === null ? '–' : typeof value === 'string' ? value : JSON.stringify(value);
  const changed = names.filter((name) => tell(before?.[name]) !== tell(after?.[name]));
  return changed
    .map((name) =>
      before ? `${name} ${tell(before[name])} → ${tell(after?.[name])}` : `${name} ${tell(after?.[name])}`,
    )
    .join(', ');
}
