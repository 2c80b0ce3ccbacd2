import { get, type Query } from './api.ts';
import { clock, count, day, milliseconds, usd, zone } from './format.ts';
import { nextStep } from './next-steps.ts';
import { linkTo, route, setWords } from './routing.ts';
import type { Cause, Overview, OverviewSums } from './shapes.ts';
import { TimeBars } from './time-bars.tsx';
import { Badge, Button, type Column, type Loaded, Panel, Problem, Spinner, Table, Time, Usd, useLoad } from './ui.tsx';

/** Calls over time, and the causes of failures. */

const RANGES = ['hour', 'day', 'week'] as const;
type Range = (typeof RANGES)[number];
/** The same range as a filter of calls. */
const LAST: Readonly<Record<Range, string>> = Object.freeze({ hour: '1h', day: '24h', week: '7d' });

/** Range in the address. */
function rangeOf(): Range {
  return RANGES.find((each) => each === route.value.query['range']) ?? 'day';
}

/** Loads the overview of the range in the address; nothing without the scope. */
export function useOverview(isAllowed: boolean): Loaded<Overview> {
  const [range, tz] = [rangeOf(), zone.value];
  return useLoad(isAllowed ? `${range} ${tz}` : undefined, () => get<Overview>('/overview', { range, tz }));
}

interface Figure {
  readonly name: string;
  readonly tone?: 'bad' | 'warn';
  /** Outcome of its calls, if not all. */
  readonly outcome?: string;
  number(sums: OverviewSums): number;
  tell(sums: OverviewSums): string;
}

const FIGURES: readonly Figure[] = [
  { name: 'Calls', number: ({ requests }) => requests, tell: ({ requests }) => count(requests) },
  {
    name: 'Errors',
    tone: 'bad',
    outcome: 'error',
    number: ({ errors }) => errors,
    tell: ({ errors }) => count(errors),
  },
  {
    name: 'Rejections',
    tone: 'warn',
    outcome: 'refused',
    number: ({ refused }) => refused,
    tell: ({ refused }) => count(refused),
  },
  { name: 'Cost', number: ({ cost_usd: cost }) => Number(cost), tell: ({ cost_usd: cost }) => usd(cost) },
  {
    name: 'Duration p95',
    number: ({ duration_p95_ms: ms }) => ms ?? 0,
    tell: ({ duration_p95_ms: ms }) => milliseconds(ms),
  },
  {
    name: 'First token p50',
    number: ({ first_byte_p50_ms: ms }) => ms ?? 0,
    tell: ({ first_byte_p50_ms: ms }) => milliseconds(ms),
  },
];

type Step = Overview['steps'][number];

function nameOf({ at }: Step, range: Range): string {
  return range === 'week' ? day(at) : clock(at);
}

/** Figures of the last hour, day or week, with their steps. */
export function OverTime({ overview }: { overview: Loaded<Overview> }) {
  const range = rangeOf();
  const { data } = overview;
  return (
    <Panel
      title="Over time"
      actions={RANGES.map((each) => (
        <Button
          key={each}
          kind="quiet"
          aria-pressed={each === range}
          onClick={() => setWords({ range: each === 'day' ? undefined : each })}
        >
          {`Last ${each}`}
        </Button>
      ))}
    >
      <Problem error={overview.error} retry={overview.reload} />
      <Spinner of={overview} />
      {data && (
        <>
          <div class="tiles">
            {FIGURES.map((figure) => (
              <Tile key={figure.name} figure={figure} overview={data} range={range} />
            ))}
          </div>
          <details>
            <summary>As a table</summary>
            <Table
              label="Calls over time"
              rows={data.steps}
              keyOf={({ at }) => at}
              columns={[
                {
                  name: range === 'week' ? 'Day' : 'From',
                  cell: (step: Step) => (
                    <a href={linkTo('calls', timeOf(step.at, data.steps[data.steps.indexOf(step) + 1]?.at ?? data.to))}>
                      {nameOf(step, range)}
                    </a>
                  ),
                },
                ...FIGURES.map(
                  ({ name, tell }): Column<Step> => ({
                    name,
                    isNumber: true,
                    cell: (step) => (name === 'Cost' ? <Usd of={step.cost_usd} /> : tell(step)),
                  }),
                ),
              ]}
            />
          </details>
        </>
      )}
    </Panel>
  );
}

/** Filter of calls for a range of time. Ranges exclude each other. */
function timeOf(from: string, to: string): Readonly<Record<string, string | undefined>> {
  return { from, to, last: undefined };
}

function Tile({
  figure: { name, tone, outcome, number, tell },
  overview: { steps, totals, to },
  range,
}: {
  figure: Figure;
  overview: Overview;
  range: Range;
}) {
  const most = Math.max(...steps.map(number));
  const highest = steps.find((step) => number(step) === most);
  const label = most > 0 && highest ? `Highest: ${tell(highest)}, ${nameOf(highest, range)}` : 'None';
  return (
    <div class="tile">
      <span class="muted">{name}</span>
      <b class="big">{tell(totals)}</b>
      <TimeBars
        bars={steps.map((step) => ({ at: step.at, value: number(step) }))}
        end={to}
        label={`${name}. ${label}`}
        tone={tone}
        onPick={(from, end) => {
          location.hash = linkTo('calls', { outcome, ...timeOf(from, end) });
        }}
      />
    </div>
  );
}

/** Filters that a chart of calls can have, too. */
const CHART_FILTERS = ['account', 'user', 'key', 'tag', 'provider', 'model', 'operation', 'session'];

/** Shortest range of the overview that has a time. */
function rangeSince(from: string): Range {
  const hours = (Date.now() - Date.parse(from)) / 3_600_000;
  return hours <= 1 ? 'hour' : hours <= 24 ? 'day' : 'week';
}

/** Calls over time, by the filter of a list where a chart can have it. Its time becomes the filter of the list. */
export function CallsOverTime({ words }: { words: Query }) {
  const { last, from, outcome: _outcome, to: _to, ...others } = words;
  const range = from
    ? rangeSince(String(from))
    : (RANGES.find((each) => LAST[each] === last) ?? (last === '30d' ? 'week' : 'day'));
  const filter = Object.fromEntries(Object.entries(others).filter(([name]) => CHART_FILTERS.includes(name)));
  const ignored = Object.keys(others).filter((name) => others[name] && !CHART_FILTERS.includes(name));
  const tz = zone.value;
  const overview = useLoad(JSON.stringify([filter, range, tz]), () =>
    get<Overview>('/overview', { ...filter, range, tz, details: 'false' }),
  );
  const { data } = overview;
  if (overview.error !== undefined) return <Problem error={overview.error} retry={overview.reload} />;
  if (!data) return <div class="strip" />;
  return (
    <div class="strip">
      <TimeBars
        bars={data.steps.map(({ at, requests, errors }) => ({ at, value: requests, bad: errors }))}
        end={data.to}
        label={`Calls of the last ${range}: ${count(data.totals.requests)}, ${count(data.totals.errors)} failed`}
        onPick={(start, end) => setWords(timeOf(start, end))}
      />
      <div class="spread muted">
        <span>{clock(data.from)}</span>
        <span>
          Calls of the last {range}, failed ones in red
          {ignored.length > 0 && `; without the filter ${ignored.join(', ').replaceAll('_', ' ')}`}
        </span>
        <span>now</span>
      </div>
    </div>
  );
}

/** Number of causes that are shown. */
const MOST = 6;

function modelOf({ alias, provider, model }: Cause): string {
  return alias ?? [provider, model].filter(Boolean).join('/');
}

/** Failures and rejections of the range, grouped by cause. */
export function Causes({ overview }: { overview: Loaded<Overview> }) {
  const { data } = overview;
  if (!data) return null;
  const last = LAST[rangeOf()];
  return (
    <Panel
      title="Causes of failures"
      note={data.is_complete ? `last ${rangeOf()}` : `last ${rangeOf()}, of the latest calls only`}
    >
      <ul class="lines">
        {data.causes.slice(0, MOST).map((cause) => {
          const { outcome, error_code, alias, provider, model, calls, users, first_at, last_at, message } = cause;
          const filter = { outcome, error_code, alias, provider, model };
          const words = Object.entries(filter).map(([name, value]) => [name, value ?? undefined]);
          return (
            <li key={JSON.stringify([filter, cause.refused_by])}>
              <Badge tone={outcome === 'error' ? 'bad' : 'warn'}>{outcome === 'error' ? 'failed' : 'rejected'}</Badge>{' '}
              <a href={linkTo('calls', { ...Object.fromEntries(words), last })}>
                {error_code ?? outcome}, {modelOf(cause)}, {count(calls)} ×
              </a>{' '}
              <span class="muted">
                since <Time at={first_at} />
                {calls > 1 && (
                  <>
                    , last <Time at={last_at} />
                  </>
                )}
                {users > 1 && `, ${count(users)} users`}
              </span>
              <p>{message}</p>
              {nextStep(error_code) && <p class="muted">{nextStep(error_code)}</p>}
            </li>
          );
        })}
        {data.causes.length > MOST && <li class="muted">and {data.causes.length - MOST} more</li>}
        {data.causes.length === 0 && <li class="muted">No call failed or was rejected.</li>}
      </ul>
    </Panel>
  );
}
