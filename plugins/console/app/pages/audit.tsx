import { startOfDay } from '../format.ts';
import { type Filter, Filters, LoadedList, useList } from '../list.tsx';
import { linkTo, route } from '../routing.ts';
import type { AuditEntry } from '../shapes.ts';
import { type Column, PageHead, Time } from '../ui.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'subject', label: 'Object', placeholder: 'tg_…, a user, a plan' },
  { name: 'actor', label: 'Actor' },
  { name: 'action', label: 'Action', placeholder: 'key.block' },
  { name: 'from', label: 'From day', type: 'date' },
  { name: 'to', label: 'To day', type: 'date' },
];
const VIA: Readonly<Record<string, string>> = Object.freeze({
  cli: 'the command line',
  api: 'the API',
  file: 'the file',
});

/** Changes by operators; read only. */
export function Audit() {
  const { subject, actor, action, from, to, after } = route.value.query;
  // Days are those of the chosen zone.
  const range = { from: from && startOfDay(from), to: to && startOfDay(to, 1) };
  const query = { subject, actor, action, ...range, after };
  const list = useList<AuditEntry>('/audit', query);
  return (
    <>
      <PageHead
        title="Audit"
        note="Changes by operators in the console, over the API and on the command line, newest first."
      />
      <Filters label="Filters of changes" filters={FILTERS} />
      <LoadedList
        name="audit"
        label="Changes"
        path="/audit"
        query={query}
        list={list}
        keyOf={({ id }) => id}
        empty="No change matches."
        columns={COLUMNS}
      />
    </>
  );
}

function actorOf({ actor }: AuditEntry): string {
  return actor.user_id ?? actor.key_id ?? '–';
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { name: 'Time', value: ({ at }) => at, cell: ({ at }) => <Time at={at} /> },
  {
    name: 'Actor',
    value: actorOf,
    cell: (entry) => (
      <div class="wrap">
        {actorOf(entry)} <span class="muted">by {VIA[entry.actor.via] ?? entry.actor.via}</span>
      </div>
    ),
  },
  { name: 'Address', isExtra: true, isWide: true, value: (entry) => entry.actor.address, cell: addressOf },
  { name: 'Action', value: ({ action }) => action, cell: ({ action }) => <code>{action}</code> },
  {
    name: 'Object',
    value: ({ subject }) => subject,
    cell: ({ subject }) => (
      <div class="wrap short">
        <a href={linkTo('audit', { subject })}>{subject}</a>
      </div>
    ),
  },
  { name: 'Change', value: describeChange, cell: (entry) => <div class="wrap">{describeChange(entry)}</div> },
];

function addressOf({ actor }: AuditEntry): string {
  return actor.address ?? '–';
}

/** Fields that the row already shows, or that are the same for each of its kind. */
const KNOWN: ReadonlySet<string> = new Set(['id', 'prefix', 'created_at', 'deleted', 'object']);

function nameOf(field: string): string {
  return field.replace(/_usd$/, ' in USD').replaceAll('_', ' ');
}

function describe(value: unknown): string {
  if (value === undefined || value === null || value === '') return '–';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(describe).join(' and ');
  if (typeof value !== 'object') return String(value);
  return Object.entries(value)
    .map(([name, each]) => `${nameOf(name)} ${describe(each)}`)
    .join(' ');
}

/** Changed values, such as `rpm 60 → 120`. */
function describeChange({ before, after }: AuditEntry): string {
  const all = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const names = [...all].filter((name) => !KNOWN.has(name));
  const changed = names.filter((name) => describe(before?.[name]) !== describe(after?.[name]));
  return changed
    .map((name) =>
      before
        ? `${nameOf(name)} ${describe(before[name])} → ${describe(after?.[name])}`
        : `${nameOf(name)} ${describe(after?.[name])}`,
    )
    .join(', ');
}
