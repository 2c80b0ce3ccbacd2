import { startOfDay, wholeTime } from '../format.ts';
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
      <Filters label="Filters of changes" filters={FILTERS} shown={shownValues(list.data?.data ?? [])} />
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

/** Values on the page that the fields of filters offer. */
function shownValues(entries: readonly AuditEntry[]): Readonly<Record<string, readonly string[]>> {
  return {
    subject: entries.map(({ subject }) => subject),
    actor: entries.map(actorOf),
    action: entries.map(({ action }) => action),
  };
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
  { name: 'Change', value: (entry) => changesOf(entry).join(', '), cell: (entry) => <Changes entry={entry} /> },
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

/** Changed values, such as `rpm 60 → 120`. `show` may format them further. */
function changesOf({ before, after }: AuditEntry, show: (text: string) => string = (text) => text): readonly string[] {
  const all = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const tell = (value: unknown): string => show(describe(value));
  return [...all].flatMap((name) => {
    const [old, now] = [before?.[name], after?.[name]];
    if (KNOWN.has(name) || describe(old) === describe(now)) return [];
    return [before ? `${nameOf(name)} ${tell(old)} → ${tell(now)}` : `${nameOf(name)} ${tell(now)}`];
  });
}

const INSTANT = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/;

/** Times are those of the chosen zone. Each change is an element, so that right-to-left marks end with it. */
function Changes({ entry }: { entry: AuditEntry }) {
  const changes = changesOf(entry, (text) => (INSTANT.test(text) ? wholeTime(text) : text));
  return (
    <div class="wrap">
      {changes.map((change, at) => (
        <span key={change}>
          {at > 0 && ', '}
          <bdi>{change}</bdi>
        </span>
      ))}
    </div>
  );
}
