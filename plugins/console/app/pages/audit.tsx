import { get, type Page } from '../api.ts';
import { linkTo, route, setWords } from '../routing.ts';
import type { AuditEntry } from '../shapes.ts';
import { PageHead, Problem, Search, Spinner, Table, Time, useLoad } from '../ui.tsx';

const WORDS = Object.freeze({ subject: 'What', actor: 'Who', action: 'Action' });
const DAYS = Object.freeze({ from: 'From day', to: 'To day' });
const VIA: Readonly<Record<string, string>> = Object.freeze({
  cli: 'the command line',
  api: 'the API',
  file: 'the file',
});

/** Changes by operators; read only. */
export function Audit() {
  const { query } = route.value;
  const entries = useLoad(JSON.stringify(query), () => get<Page<AuditEntry>>('/audit', { ...query, limit: 100 }));
  return (
    <>
      <PageHead
        title="Audit"
        note="What operators changed, newest first: here, over the API and on the command line."
      />
      <Filters query={query} />
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
            {
              name: 'Who',
              cell: ({ actor }) => (
                <div class="wrap">
                  {actor.user_id ?? actor.key_id ?? '–'} <span class="muted">by {VIA[actor.via] ?? actor.via}</span>
                </div>
              ),
            },
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

function Filters({ query }: { query: Readonly<Record<string, string | undefined>> }) {
  return (
    <search class="filters" aria-label="Which changes">
      {Object.entries(WORDS).map(([name, label]) => (
        <Search
          key={name}
          label={label}
          value={query[name] ?? ''}
          onPick={(text) => setWords({ [name]: text, after: undefined })}
        />
      ))}
      {Object.entries(DAYS).map(([name, label]) => (
        <Search
          key={name}
          label={label}
          type="date"
          value={query[name] ?? ''}
          onPick={(text) => setWords({ [name]: text, after: undefined })}
        />
      ))}
    </search>
  );
}

/** Fields that the row already shows, or that are the same for each of its kind. */
const KNOWN: ReadonlySet<string> = new Set(['id', 'prefix', 'created_at', 'deleted', 'object']);

function nameOf(field: string): string {
  return field.replace(/_usd$/, ' in USD').replaceAll('_', ' ');
}

function tell(value: unknown): string {
  if (value === undefined || value === null || value === '') return '–';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(tell).join(' and ');
  if (typeof value !== 'object') return String(value);
  return Object.entries(value)
    .map(([name, each]) => `${nameOf(name)} ${tell(each)}`)
    .join(' ');
}

/** Changed values, such as `rpm 60 → 120`. */
function tellChange({ before, after }: AuditEntry): string {
  const all = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const names = [...all].filter((name) => !KNOWN.has(name));
  const changed = names.filter((name) => tell(before?.[name]) !== tell(after?.[name]));
  return changed
    .map((name) =>
      before
        ? `${nameOf(name)} ${tell(before[name])} → ${tell(after?.[name])}`
        : `${nameOf(name)} ${tell(after?.[name])}`,
    )
    .join(', ');
}
