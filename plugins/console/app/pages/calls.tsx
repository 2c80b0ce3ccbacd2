import { useMemo, useState } from 'preact/hooks';
import { CallDrawer } from '../call-drawer.tsx';
import { callColumns } from '../calls-table.tsx';
import { useLiveCalls } from '../live-calls.ts';
import { linkTo, route, setWords } from '../routing.ts';
import { Badge, Button, Choice, PageHead, Problem, Search, Table } from '../ui.tsx';

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
const TEXTS = Object.freeze({
  search: 'Any name',
  user: 'User',
  key: 'Key',
  provider: 'Provider',
  model: 'Model',
  tag: 'Tag',
  session: 'Session',
  end_user: 'End user',
  address: 'Address',
  alias: 'Alias',
  error_code: 'Error code',
  min_duration: 'Longer than',
  request: 'Request id',
});

/** Live list of all calls. The gateway filters, and the filter is part of the address. */
export function Calls() {
  const { id, ...words } = route.value.query;
  const [isOn, setOn] = useState(true);
  // A request has few calls and all are loaded: the feed has no such filter.
  const live = useLiveCalls(words, isOn && words['request'] === undefined);
  const isFiltered = Object.values(words).some(Boolean);
  const columns = useMemo(() => callColumns((more) => linkTo('calls', { ...words, ...more })), [JSON.stringify(words)]);
  return (
    <>
      <PageHead title="Calls" note="Newest first. What was said is not shown, unless the gateway keeps it.">
        <span aria-live="polite">
          <Badge tone={live.isLive ? 'good' : 'dim'}>{live.isLive ? 'live' : isOn ? 'connecting' : 'paused'}</Badge>
        </span>
        <Button onClick={() => setOn(!isOn)} aria-pressed={isOn}>
          {isOn ? 'Pause' : 'Go live'}
        </Button>
      </PageHead>
      <search class="filters" aria-label="Which calls">
        <Choice
          label="Outcome"
          value={words['outcome'] ?? ''}
          options={OUTCOMES}
          onPick={(outcome) => setWords({ outcome })}
        />
        <Choice label="When" value={words['last'] ?? ''} options={RANGES} onPick={(last) => setWords({ last })} />
        {Object.entries(TEXTS).map(([name, label]) => (
          <Search key={name} label={label} value={words[name] ?? ''} onPick={(text) => setWords({ [name]: text })} />
        ))}
        {isFiltered && (
          <a class="button quiet" href={linkTo('calls')}>
            Clear
          </a>
        )}
      </search>
      <Problem error={live.error} />
      {live.isCut && (
        <p role="status">Some calls are not shown: there were too many. Reload the page to see all of them.</p>
      )}
      {(!live.isLoading || live.calls.length > 0) && (
        <Table
          label="Calls"
          rows={live.calls}
          keyOf={(call) => call.id}
          isCurrent={(call) => call.id === id}
          columns={columns}
          empty={emptyText(live.next !== undefined, isFiltered)}
        />
      )}
      {live.isLoading && (
        <p class="muted" role="status">
          {live.next === undefined ? 'Loading …' : 'Looking further back …'}
        </p>
      )}
      {!live.isLoading && live.next !== undefined && (
        <p>
          <Button onClick={live.loadOlder}>Show older</Button>
        </p>
      )}
      {id && <CallDrawer id={id} onClose={() => setWords({ id: undefined })} />}
    </>
  );
}

function emptyText(hasMore: boolean, isFiltered: boolean): string {
  if (hasMore) return 'None of the latest calls matches. Look further back, or take a filter away.';
  return isFiltered
    ? 'No call matches. Take a filter away, or look at a longer time.'
    : 'No call has come yet. This page shows each as soon as it is over.';
}
