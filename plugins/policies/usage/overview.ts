import {
  type CallFilter,
  type CallRow,
  formatUsd,
  type Ledger,
  type PluginApi,
  type Route,
  type Schema,
} from '../../../contract/index.ts';
import { FOR_OPERATORS } from '../kit/index.ts';
import { showCallsTo } from './call-shapes.ts';
import { listCalls } from './calls-query.ts';
import { type Latency, measureLatency } from './latency.ts';
import { cutRange, formatHour, readZone } from './range.ts';
import { descriptions, querySchema, wordsOf } from './route-query.ts';
import { FILTER_WORDS, readChoice, readFilter } from './words.ts';

/** Recent calls over time, and the causes of those that failed or were rejected. */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FIVE_MINUTES_MS = 300_000;

const RANGES = ['hour', 'day', 'week'] as const;
type RangeName = (typeof RANGES)[number];

/** Maximum number of failed and of rejected calls that are read, the latest ones, and the search time for each. */
const MOST_CALLS = 5000;
const MOST_MS = 250;
/** Maximum number of causes. */
const MOST_CAUSES = 20;

const COUNT: Schema = { type: 'integer', minimum: 0 };
const MS_OR_NULL: Schema = { type: ['number', 'null'], description: 'Milliseconds; null without successful calls.' };
const SUMS = { requests: COUNT, errors: COUNT, cost_usd: { type: 'string' } } as const;
const DETAILS = {
  refused: { ...COUNT, description: 'Calls that were rejected before any target was tried.' },
  duration_p95_ms: MS_OR_NULL,
  first_byte_p50_ms: MS_OR_NULL,
} as const;

const CAUSE: Schema = {
  type: 'object',
  required: [
    'outcome',
    'error_code',
    'refused_by',
    'alias',
    'provider',
    'model',
    'calls',
    'users',
    'first_at',
    'last_at',
    'last_id',
    'message',
  ],
  properties: {
    outcome: { enum: ['error', 'refused'] },
    error_code: { type: ['string', 'null'] },
    refused_by: { type: ['string', 'null'] },
    alias: { type: ['string', 'null'], description: 'Alias of the requests; null for requests of a model.' },
    provider: { type: ['string', 'null'], description: 'Null for an alias, and for calls without a provider.' },
    model: { type: ['string', 'null'], description: 'Null for an alias.' },
    calls: COUNT,
    users: { ...COUNT, description: 'Number of users with such a call.' },
    first_at: { type: 'string' },
    last_at: { type: 'string' },
    last_id: { type: 'string', description: 'Id of the latest call.' },
    message: {
      type: ['string', 'null'],
      description: 'Error message of the latest call. Messages of vendors need the scope `bodies:read`.',
    },
  },
};

const OVERVIEW: Schema = {
  type: 'object',
  required: ['object', 'from', 'to', 'tz', 'steps', 'totals', 'causes', 'is_complete'],
  properties: {
    object: { const: 'overview' },
    from: { type: 'string' },
    to: { type: 'string' },
    tz: { type: 'string' },
    steps: {
      type: 'array',
      items: {
        type: 'object',
        required: ['at', 'name', ...Object.keys(SUMS)],
        properties: { at: { type: 'string' }, name: { type: 'string' }, ...SUMS, ...DETAILS },
      },
    },
    totals: { type: 'object', required: Object.keys(SUMS), properties: { ...SUMS, ...DETAILS } },
    causes: { type: 'array', items: CAUSE, description: `At most ${MOST_CAUSES}, the most frequent first.` },
    is_complete: {
      type: 'boolean',
      description: `False if "refused" and "causes" have the latest ${MOST_CALLS} calls only.`,
    },
  },
};

/** `GET /api/core/admin/overview` */
export function overviewRoute({ books }: Pick<PluginApi, 'books'>): Route {
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: '/api/core/admin/overview',
    scope: 'calls:read',
    summary: 'Get calls, errors, rejections, cost and latency over time, with the causes of failures',
    query: querySchema({
      range: 'hour (in steps of five minutes), day (of an hour) or week (of a day). Default: day.',
      tz: 'Time zone of hours and days, an IANA name such as Europe/Berlin. Default: UTC.',
      details: 'false leaves out rejections, latency and causes, which are read from records. Default: true.',
      ...descriptions(FILTER_WORDS.filter((word) => word !== 'end_user')),
    }),
    responses: { 200: { description: 'Steps, oldest first.', schema: OVERVIEW } },
    async handler(ctx) {
      const words = wordsOf(ctx);
      const range = readChoice(words, 'range', ['day', 'hour', 'week']);
      ctx.set('cache-control', 'no-store');
      const show = showCallsTo(ctx.state.principal);
      const hasDetails = readChoice(words, 'details', ['true', 'false']) === 'true';
      const wanted = {
        range,
        zone: readZone(words['tz']),
        filter: readFilter(words),
        now: Date.now(),
        show,
        hasDetails,
      };
      ctx.body = await readOverview(books.ledger, wanted);
    },
  };
}

type Calls = Pick<Ledger, 'report' | 'calls'>;

interface Steps {
  readonly edges: readonly number[];
  readonly names: readonly string[];
}

/** Steps up to now; the last one is not over yet. */
function stepsOf(range: RangeName, zone: string, now: number): Steps {
  const to = now + 1;
  if (range === 'day') return cutRange({ from: now - DAY_MS + HOUR_MS - (now % HOUR_MS), to, zone }, 'hour');
  if (range === 'week') return cutRange({ from: now - 7 * DAY_MS + HOUR_MS - (now % HOUR_MS), to, zone }, 'day');
  const first = now - HOUR_MS + FIVE_MINUTES_MS - (now % FIVE_MINUTES_MS);
  const starts = Array.from({ length: 12 }, (_, at) => first + at * FIVE_MINUTES_MS);
  return { edges: [...starts, to], names: starts.map((start) => formatHour(zone, start)) };
}

interface Wanted {
  readonly range: RangeName;
  readonly zone: string;
  readonly filter: CallFilter;
  readonly now: number;
  /** Call as the reader may see it: error messages of vendors need a scope. */
  readonly show: ReturnType<typeof showCallsTo>;
  /** False for sums only, which take no longer with millions of records. */
  readonly hasDetails: boolean;
}

async function readOverview(ledger: Calls, { range, zone, filter, now, show, hasDetails }: Wanted): Promise<object> {
  const { edges, names } = stepsOf(range, zone, now);
  const [from = now, to = now] = [edges[0], edges.at(-1)];
  const [rows, latencies, errors, refusals] = await Promise.all([
    ledger.report({ ...filter, edges, by: [] }),
    hasDetails ? measureLatency(ledger, { filter, by: ['hour'], edges, names }) : undefined,
    ...(hasDetails ? (['error', 'refused'] as const) : []).map((outcome) =>
      listCalls(ledger, { filter: { ...filter, outcome }, from, to, limit: MOST_CALLS }, MOST_MS),
    ),
  ]);
  const refused = names.map(() => 0);
  for (const { countedAt } of refusals?.calls ?? []) {
    const at = edges.findLastIndex((edge) => edge <= countedAt);
    if (refused[at] !== undefined) refused[at] += 1;
  }
  const steps = names.map((name, at) => {
    const row = rows.find(({ interval }) => interval === at);
    return {
      at: new Date(edges[at] ?? now).toISOString(),
      name,
      requests: row?.requests ?? 0,
      errors: row?.errors ?? 0,
      cost_usd: formatUsd(row?.cost ?? 0n),
      ...(latencies && { refused: refused[at] ?? 0, ...tellLatency(latencies.rows.get(JSON.stringify([name]))) }),
    };
  });
  const sum = (field: 'requests' | 'errors'): number => rows.reduce((total, row) => total + row[field], 0);
  const failed = [...(errors?.calls ?? []), ...(refusals?.calls ?? [])];
  return {
    object: 'overview',
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    tz: zone,
    steps,
    totals: {
      requests: sum('requests'),
      errors: sum('errors'),
      cost_usd: formatUsd(rows.reduce((total, { cost }) => total + cost, 0n)),
      ...(latencies && { refused: refusals?.calls.length ?? 0, ...tellLatency(latencies.totals) }),
    },
    causes: groupCauses(failed).map((group) => describeCause(group, show)),
    is_complete: errors?.next === undefined && refusals?.next === undefined,
  };
}

function tellLatency(latency: Latency | undefined): object {
  return {
    duration_p95_ms: latency?.duration_p95_ms ?? null,
    first_byte_p50_ms: latency?.first_byte_p50_ms ?? null,
  };
}

/** Groups calls with the same error of the same model, the most frequent first. */
function groupCauses(calls: readonly CallRow[]): readonly (readonly CallRow[])[] {
  const groups = new Map<string, CallRow[]>();
  for (const call of calls) {
    const key = JSON.stringify([call.outcome, call.errorCode, call.refusedBy, targetOf(call)]);
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(call);
  }
  return [...groups.values()].toSorted((a, b) => b.length - a.length).slice(0, MOST_CAUSES);
}

/** Describes a group, whose calls are newest first. */
function describeCause(group: readonly CallRow[], show: Wanted['show']): object {
  const [latest, oldest] = [group[0] as CallRow, group.at(-1) as CallRow];
  return {
    outcome: latest.outcome,
    error_code: latest.errorCode ?? null,
    refused_by: latest.refusedBy ?? null,
    ...targetOf(latest),
    calls: group.length,
    users: new Set(group.map(({ userId }) => userId)).size,
    first_at: new Date(oldest.at).toISOString(),
    last_at: new Date(latest.at).toISOString(),
    last_id: latest.id,
    message: show(latest)['error_message'] ?? null,
  };
}

function targetOf({ requested, provider, model }: CallRow) {
  if (requested !== undefined) return { alias: requested, provider: null, model: null };
  return { alias: null, provider: provider === '-' ? null : provider, model };
}
