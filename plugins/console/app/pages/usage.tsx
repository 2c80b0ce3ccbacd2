import { get, pathOf, type Query } from '../api.ts';
import { Chart } from '../chart.tsx';
import { count, day, milliseconds, percent, usd, zone } from '../format.ts';
import { type Filter, FilterField } from '../list.tsx';
import { linkTo, route, setWords } from '../routing.ts';
import type { Usage as Report, Sums, UsageRow } from '../shapes.ts';
import {
  Button,
  Choice,
  type Column,
  type Loaded,
  PageHead,
  Panel,
  Problem,
  Search,
  Spinner,
  Table,
  Usd,
  useLoad,
} from '../ui.tsx';

const PERIODS = [
  ['today', 'today'],
  ['yesterday', 'yesterday'],
  ['this-week', 'this week'],
  ['last-week', 'last week'],
  ['7d', 'last 7 days'],
  ['30d', 'last 30 days'],
  ['this-month', 'this month'],
  ['last-month', 'last month'],
  ['range', 'own range'],
] as const;
const GROUPS = [
  ['user', 'user'],
  ['key', 'key'],
  ['model', 'model'],
  ['provider', 'provider'],
  ['tag', 'tag'],
  ['account', 'account'],
  ['operation', 'operation'],
  ['session', 'session'],
  ['end_user', 'end user'],
] as const;
const FIGURES = [
  ['cost_usd', 'cost'],
  ['requests', 'calls'],
  ['errors', 'errors'],
  ['prompt_tokens', 'tokens in'],
  ['completion_tokens', 'tokens out'],
] as const;

const NAMES: readonly Filter[] = [
  { name: 'user', label: 'User', names: 'user' },
  { name: 'model', label: 'Model', names: 'providerModel' },
  { name: 'tag', label: 'Tag', names: 'tag' },
];

/** Usage report. Every number comes from the gateway: the page sums nothing. */
export function Usage() {
  const { query } = route.value;
  const period = PERIODS.find(([word]) => word === query['period'])?.[0] ?? '7d';
  const group = GROUPS.find(([word]) => word === query['by'])?.[0] ?? 'user';
  const figure = FIGURES.find(([word]) => word === query['figure'])?.[0] ?? 'cost_usd';
  const second = GROUPS.find(([word]) => word === query['and'] && word !== group)?.[0];
  const groups = second ? [group, second] : [group];
  const range = rangeQuery(period, query);
  const filter: Query = {
    ...range,
    user: query['user'],
    model: query['model'],
    tag: query['tag'],
    tz: zone.value,
  };
  const step = period === 'today' || period === 'yesterday' ? 'hour' : 'day';
  const byTime = useLoad(JSON.stringify([filter, step]), () =>
    get<Report>('/usage', { ...filter, by: step, limit: 1000 }),
  );
  // Latencies are computed from call records, which is slower than sums, so they are requested only if shown.
  const latency = query['times'] === 'yes' ? 'true' : undefined;
  const compare = query['compare'] === 'previous' ? 'previous' : undefined;
  const byGroup = useLoad(JSON.stringify([filter, groups, latency, compare]), () =>
    get<Report>('/usage', { ...filter, by: groups.join(), sort: 'cost', limit: 200, latency, compare }),
  );
  return (
    <>
      <PageHead title="Usage" note={byTime.data && rangeOf(byTime.data)}>
        <a
          class="button plain"
          href={pathOf('/usage', { ...filter, by: [step, ...groups].join(), format: 'csv' })}
          download={`usage-${period}-by-${groups.join('-')}.csv`}
        >
          Download CSV
        </a>
      </PageHead>
      <search class="filters" aria-label="Which calls">
        <Choice label="When" value={period} options={PERIODS} onPick={(word) => setWords({ period: word })} />
        {period === 'range' &&
          (['from', 'to'] as const).map((name) => (
            <Search
              key={name}
              label={`${capital(name)} day`}
              type="date"
              value={query[name] ?? ''}
              onPick={(text) => setWords({ [name]: text })}
            />
          ))}
        <Choice label="By" value={group} options={GROUPS} onPick={(by) => setWords({ by })} />
        <Choice
          label="And by"
          value={second ?? ''}
          options={[['', 'nothing else'], ...GROUPS.filter(([word]) => word !== group)]}
          onPick={(and) => setWords({ and })}
        />
        <Choice label="Chart" value={figure} options={FIGURES} onPick={(word) => setWords({ figure: word })} />
        {NAMES.map((filter) => (
          <FilterField key={filter.name} filter={filter} />
        ))}
      </search>
      <Problem error={byTime.error ?? byGroup.error} retry={byTime.reload} />
      {byTime.data && <Totals sums={byTime.data.totals} />}
      <Panel title={`${capital(FIGURES.find(([word]) => word === figure)?.[1])} by ${step}`}>
        <Spinner of={byTime} />
        {byTime.data && <OverTime report={byTime.data} step={step} figure={figure} />}
      </Panel>
      <Groups report={byGroup} groups={groups} />
    </>
  );
}

/** Parameters of the API for a period; the last day of an own range is included. */
function rangeQuery(period: string, { from, to }: Readonly<Record<string, string | undefined>>): Query {
  if (period !== 'range') return /^\d/.test(period) ? { last: period } : { period };
  const end = to ? new Date(Date.parse(to) + DAY_MS).toISOString().slice(0, 10) : undefined;
  return { from, to: end };
}

function rangeOf({ from, to, tz }: Report): string {
  const last = new Date(Date.parse(to) - 1).toISOString();
  return `${day(from)} to ${day(last)}, ${tz}. Calls count when they begin.`;
}

function labelOf(group: string): string {
  return GROUPS.find(([word]) => word === group)?.[1] ?? group;
}

function capital(word = ''): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

const DAY_MS = 86_400_000;

/** Values by step; a day without calls is a step without a value. */
function valuesOf({ data, from, to, tz }: Report, step: string, figure: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  // The Swedish date format is the gateway's.
  const days = new Intl.DateTimeFormat('sv', { timeZone: tz });
  const end = Math.min(Date.parse(to) - 1, Date.now());
  if (step === 'day')
    for (let at = Date.parse(from); at < end + DAY_MS; at += DAY_MS) values.set(days.format(Math.min(at, end)), 0);
  for (const row of data) values.set(String(row[step]), Number(row[figure]));
  return values;
}

function Totals({ sums }: { sums: Sums }) {
  return (
    <p class="figures">
      <span>
        <b class="big">
          <Usd of={sums.cost_usd} />
        </b>{' '}
        in all
      </span>
      <span>
        <b>{count(sums.requests)}</b> calls
      </span>
      <span>
        <b>{count(sums.errors)}</b> failed
      </span>
      <span>
        <b>{count(sums.prompt_tokens)}</b> tokens in
      </span>
      <span>
        <b>{count(sums.completion_tokens)}</b> tokens out
      </span>
      {sums.unpriced_requests > 0 && (
        <span>
          <b>{count(sums.unpriced_requests)}</b> without a price
        </span>
      )}
    </p>
  );
}

/** Dollars at a line of the chart, which may be a fraction of a cent. */
function tickOf(value: number): string {
  return Number.isInteger(Math.round(value * 1e6) / 1e4) ? usd(String(value)) : `$${value.toFixed(4)}`;
}

function OverTime({ report, step, figure }: { report: Report; step: string; figure: string }) {
  const values = valuesOf(report, step, figure);
  const steps = [...values.keys()];
  const tell = (value: number): string => (figure === 'cost_usd' ? tickOf(value) : count(value));
  if (report.data.length === 0) return <p class="empty">No usage in this range.</p>;
  return (
    <>
      <Chart steps={steps} tell={tell} series={{ label: figure, colour: '--accent', values: [...values.values()] }} />
      <details>
        <summary>As a table</summary>
        <Table
          label={`Usage by ${step}`}
          rows={report.data}
          keyOf={(row) => String(row[step])}
          columns={[{ name: step, cell: (row) => String(row[step]) }, ...SUM_COLUMNS]}
        />
      </details>
    </>
  );
}

const SUM_COLUMNS: readonly Column<UsageRow>[] = [
  { name: 'Cost', isNumber: true, cell: (row) => <Usd of={row.cost_usd} /> },
  { name: 'Calls', isNumber: true, cell: (row) => count(row.requests) },
  { name: 'Errors', isNumber: true, cell: (row) => count(row.errors) },
  { name: 'Tokens in', isNumber: true, cell: (row) => count(row.prompt_tokens) },
  { name: 'Cached', isNumber: true, isExtra: true, cell: (row) => count(row.cached_tokens) },
  { name: 'Tokens out', isNumber: true, cell: (row) => count(row.completion_tokens) },
];

const COMPARED_COLUMNS: readonly Column<UsageRow>[] = [
  { name: 'Cost before', isNumber: true, cell: ({ previous }) => <Usd of={previous?.cost_usd} /> },
  {
    name: 'Change',
    isNumber: true,
    cell: ({ cost_usd, previous }) => changeOf(Number(previous?.cost_usd ?? 0), Number(cost_usd)),
  },
];

function changeOf(before: number, now: number): string {
  if (before === 0) return now === 0 ? '–' : 'new';
  const share = (now - before) / before;
  return `${share > 0 ? '+' : ''}${percent(share)}`;
}

const LATENCY_COLUMNS: readonly Column<UsageRow>[] = [
  { name: 'p50', isNumber: true, cell: ({ latency }) => milliseconds(latency?.duration_p50_ms) },
  { name: 'p95', isNumber: true, cell: ({ latency }) => milliseconds(latency?.duration_p95_ms) },
  {
    name: 'First byte p50',
    isNumber: true,
    isExtra: true,
    isWide: true,
    cell: ({ latency }) => milliseconds(latency?.first_byte_p50_ms),
  },
  {
    name: 'First byte p95',
    isNumber: true,
    isExtra: true,
    isWide: true,
    cell: ({ latency }) => milliseconds(latency?.first_byte_p95_ms),
  },
];

/** Groups that the list of calls can filter by. */
const FILTERS: ReadonlySet<string> = new Set([
  'user',
  'key',
  'provider',
  'model',
  'tag',
  'session',
  'account',
  'operation',
  'end_user',
]);

function Groups({ report, groups }: { report: Loaded<Report>; groups: readonly string[] }) {
  const nameOf = (row: UsageRow, group: string): string => String(row[group]);
  const hasTimes = route.value.query['times'] === 'yes';
  const isCompared = route.value.query['compare'] === 'previous';
  return (
    <Panel
      title={`By ${groups.map(labelOf).join(' and ')}`}
      note={
        report.data?.has_more
          ? `the first ${report.data.data.length} of ${count(report.data.rows)}; the CSV has all`
          : undefined
      }
      actions={
        <>
          <Button
            kind="quiet"
            aria-pressed={isCompared}
            onClick={() => setWords({ compare: isCompared ? undefined : 'previous' })}
          >
            Compare
          </Button>
          <Button
            kind="quiet"
            aria-pressed={hasTimes}
            onClick={() => setWords({ times: hasTimes ? undefined : 'yes' })}
          >
            Times
          </Button>
        </>
      }
    >
      <Spinner of={report} />
      {report.data && (
        <Table
          label={`Usage by ${groups.map(labelOf).join(' and ')}`}
          rows={report.data.data}
          keyOf={(row) => JSON.stringify(groups.map((group) => nameOf(row, group)))}
          empty="No usage in this range."
          columns={[
            ...groups.map(
              (group): Column<UsageRow> => ({
                name: capital(labelOf(group)),
                cell: (row) => (
                  <div class="wrap">
                    {FILTERS.has(group) && nameOf(row, group) !== '-' ? (
                      <a href={linkTo('calls', { [group]: nameOf(row, group) })}>{nameOf(row, group)}</a>
                    ) : (
                      nameOf(row, group)
                    )}
                  </div>
                ),
              }),
            ),
            ...SUM_COLUMNS,
            ...(isCompared ? COMPARED_COLUMNS : []),
            ...(hasTimes ? LATENCY_COLUMNS : []),
          ]}
        />
      )}
      {hasTimes && report.data?.latency_of && (
        <p class="muted">
          Times are those of calls that went well, by their records
          {!report.data.latency_of.is_complete && `, the latest ${count(report.data.latency_of.calls)}`}: half of the
          calls took no longer, 95 of 100 took no longer.
        </p>
      )}
    </Panel>
  );
}
