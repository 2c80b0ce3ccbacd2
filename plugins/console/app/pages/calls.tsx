import { useMemo, useState } from 'preact/hooks';
import { get, type Page, type Query } from '../api.ts';
import { CallDrawer } from '../call-drawer.tsx';
import { callColumns } from '../calls-table.tsx';
import { count } from '../format.ts';
import { type Filter, Filters, List } from '../list.tsx';
import { useLiveCalls } from '../live-calls.ts';
import { CallsOverTime } from '../overview.tsx';
import { linkTo, route, setWords } from '../routing.ts';
import type { Call } from '../shapes.ts';
import { Badge, Button, PageHead, Problem, Time, useLoad } from '../ui.tsx';

const OUTCOMES = [
  ['', 'all'],
  ...['ok', 'error', 'refused', 'aborted', 'expired', 'unknown'].map((word) => [word, word] as const),
] as const;
const RANGES = [
  ['', 'all time'],
  ['1h', 'last hour'],
  ['24h', 'last 24 hours'],
  ['7d', 'last 7 days'],
  ['30d', 'last 30 days'],
] as const;
const FILTERS: readonly Filter[] = [
  { name: 'search', label: 'Any name', placeholder: 'part of it' },
  { name: 'outcome', label: 'Outcome', options: OUTCOMES },
  { name: 'last', label: 'Range', options: RANGES, clears: ['from', 'to'] },
  { name: 'user', label: 'User', names: 'user' },
  { name: 'key', label: 'Key', names: 'key' },
  { name: 'model', label: 'Model', names: 'providerModel' },
  { name: 'error_code', label: 'Error code', names: 'errorCode' },
  ...(
    [
      { name: 'from', label: 'From', type: 'time', clears: ['last'] },
      { name: 'to', label: 'To', type: 'time', clears: ['last'] },
      { name: 'status', label: 'HTTP status', placeholder: '429', names: 'status' },
      { name: 'min_cost', label: 'Cost from, USD', placeholder: '0.05' },
      { name: 'min_duration', label: 'Duration from', placeholder: '5s' },
      { name: 'alias', label: 'Alias', names: 'alias' },
      { name: 'provider', label: 'Provider', names: 'provider' },
      { name: 'tag', label: 'Team or tag', names: 'tag' },
      { name: 'end_user', label: 'End user', names: 'endUser' },
      { name: 'address', label: 'Address', placeholder: '10.1.0.0/16' },
      { name: 'account', label: 'Account', names: 'account' },
      { name: 'operation', label: 'Operation', placeholder: 'chat', names: 'operation' },
      { name: 'session', label: 'Session', names: 'session' },
      { name: 'request', label: 'Request id' },
    ] satisfies readonly Filter[]
  ).map((filter): Filter => ({ ...filter, isMore: true })),
];

/** Values of calls on the page that the fields of filters offer. */
function shownValues(calls: readonly Call[]): Readonly<Record<string, readonly string[]>> {
  const of = (read: (call: Call) => readonly (string | number | null | undefined)[]): readonly string[] => [
    ...new Set(calls.flatMap(read).flatMap((value) => (value === null || value === undefined ? [] : [String(value)]))),
  ];
  return {
    user: of(({ user_id }) => [user_id]),
    key: of(({ key }) => (key === '-' ? [] : [key])),
    model: of(({ model }) => [model]),
    error_code: of(({ error_code }) => [error_code]),
    status: of(({ attempts }) => attempts.map(({ status }) => status)),
    tag: of(({ tags }) => tags),
    end_user: of(({ end_user }) => [end_user]),
    address: of(({ address }) => [address]),
    session: of(({ session }) => [session]),
  };
}

/** Live list of all calls. The gateway filters, and the filter is part of the address. */
export function Calls() {
  const { id, sort, order: _order, ...words } = route.value.query;
  const [isOn, setOn] = useState(true);
  // A request has few calls and all are loaded, and a past time has no new ones: the feed has no such filters.
  const isOpen = words['request'] === undefined && words['to'] === undefined;
  const live = useLiveCalls(words, isOn && sort === undefined && isOpen);
  const sorted = useLoad(sort && JSON.stringify([words, sort]), () =>
    get<Sorted>('/calls', { ...words, sort, limit: 100 }),
  );
  const isFiltered = Object.values(words).some(Boolean);
  const columns = useMemo(() => callColumns((more) => linkTo('calls', { ...words, ...more })), [JSON.stringify(words)]);
  const rows = sort === undefined ? live.calls : (sorted.data?.data ?? []);
  const isLoading = sort === undefined ? live.isLoading : sorted.isLoading;
  const error = sort === undefined ? live.error : sorted.error;
  return (
    <>
      <PageHead title="Calls" note="Newest first. Request and response are shown only if the gateway stores them.">
        <span aria-live="polite">
          <Badge tone={live.isLive ? 'good' : 'dim'}>{live.isLive ? 'live' : isOn ? 'connecting' : 'paused'}</Badge>
        </span>
        <Button onClick={() => setOn(!isOn)} aria-pressed={isOn}>
          {isOn ? 'Pause' : 'Go live'}
        </Button>
      </PageHead>
      <Filters label="Filters of calls" filters={FILTERS} shown={shownValues(rows)} />
      <CallsOverTime words={words} />
      <Problem error={error} />
      {live.isCut && (
        <p role="status">Some calls are not shown: there were too many. Reload the page to see all of them.</p>
      )}
      {(!isLoading || rows.length > 0) && (
        <List
          name="calls"
          label="Calls"
          path="/calls"
          query={{ ...words, sort }}
          rows={rows}
          keyOf={(call) => call.id}
          isCurrent={(call) => call.id === id}
          columns={columns}
          empty={sort === undefined && live.next !== undefined ? 'No call found yet.' : emptyText(isFiltered)}
          total={<Total key={JSON.stringify(words)} words={words} shown={rows.length} sorted={sorted.data} />}
        />
      )}
      {isLoading && (
        <p class="muted" role="status">
          {live.next === undefined ? 'Loading …' : 'Searching older calls …'}
          {live.searchedTo !== undefined && (
            <>
              {' '}
              back to <Time at={live.searchedTo} />
            </>
          )}
        </p>
      )}
      {sort === undefined && !live.isLoading && live.next !== undefined && (
        <>
          {live.searchedTo !== undefined && (
            <p role="status">
              The search stopped at <Time at={live.searchedTo} />. Search older calls, or choose a range, a user, a key
              or another exact value: a part of a name is compared with every call.
            </p>
          )}
          <p>
            <Button onClick={live.loadOlder}>{live.searchedTo === undefined ? 'Show older' : 'Search older'}</Button>
          </p>
        </>
      )}
      {id && <CallDrawer id={id} onClose={() => setWords({ id: undefined })} />}
    </>
  );
}

interface Covered {
  readonly calls: number;
  readonly is_complete: boolean;
}

interface Sorted extends Page<Call> {
  readonly sorted_of?: Covered;
  readonly count?: Covered;
}

/** Number of shown calls, and of all that match, which the gateway counts on request. */
function Total({ words, shown, sorted }: { words: Query; shown: number; sorted: Sorted | undefined }) {
  const [isWanted, setWanted] = useState(false);
  const counted = useLoad(isWanted ? 'count' : undefined, () =>
    get<Sorted>('/calls', { ...words, count: 'true', limit: 1 }),
  );
  const found = counted.data?.count;
  const of = sorted?.sorted_of;
  return (
    <>
      {count(shown)} shown
      {of && `, the highest of ${of.is_complete ? '' : 'the latest '}${count(of.calls)} that match`}
      {found && `, ${found.is_complete ? '' : 'more than '}${count(found.calls)} match`}
      {counted.isLoading && ', counting …'}{' '}
      {!isWanted && (
        <Button kind="quiet" onClick={() => setWanted(true)}>
          Count all
        </Button>
      )}
      <Problem error={counted.error} />
    </>
  );
}

function emptyText(isFiltered: boolean): string {
  return isFiltered
    ? 'No call matches. Remove a filter, or choose a longer time.'
    : 'No calls yet. Each call appears here when it ends.';
}
