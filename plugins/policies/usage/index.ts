import {
  type CallRow,
  type Command,
  type CommandInput,
  type CommandIo,
  type CommandOption,
  definePlugin,
  formatUsd,
  GatewayError,
  type Ledger,
  type PluginApi,
  type Route,
  type RouteContext,
  type Schema,
  type Subcommand,
} from '../../../contract/index.ts';
import { type Cell, formatCsv } from '../kit/csv.ts';
import { createTeamRoutes, refuseOtherTag } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';
import { bodyRules, CALLS_CONFIG, checkCalls } from './bodies/config.ts';
import { BODIES, keepBodies, personalBodies, type StoredBodies } from './bodies/keep-bodies.ts';
import { formatCallHead, formatCallLine, formatCalls, tellCall } from './call-shapes.ts';
import { findCalls, readCallsQuery, tellCovered } from './calls-query.ts';
import { callsRoutes, type FindBodies, registerTeamCalls } from './calls-routes.ts';
import type { By } from './dimensions.ts';
import { findCall } from './find-call.ts';
import { followCalls } from './follow-calls.ts';
import type { Latency } from './latency.ts';
import { overviewRoute } from './overview.ts';
import { readInstant, readLast, readZone } from './range.ts';
import { NONE, type Sums } from './report.ts';
import { descriptions, ownCalls, RANGE_WORDS, reportQuery, wordsOf } from './route-query.ts';
import { readUsageQuery, runUsageQuery, type UsagePage, type UsageQuery } from './usage-query.ts';
import {
  assertFollowed,
  FILTER_WORDS,
  type FilterWord,
  SEARCHES,
  type Words,
  wordsOfOptions,
  wrongWord,
} from './words.ts';

/** Columns after the names, in order. */
const COLUMNS = Object.freeze({
  requests: ({ requests }) => requests,
  errors: ({ errors }) => errors,
  prompt_tokens: ({ prompt_tokens }) => prompt_tokens,
  cached_tokens: ({ cached_tokens }) => cached_tokens,
  completion_tokens: ({ completion_tokens }) => completion_tokens,
  reasoning_tokens: ({ reasoning_tokens }) => reasoning_tokens,
  characters: ({ characters }) => characters,
  cost_usd: ({ cost }) => formatUsd(cost),
  saved_usd: ({ saved }) => formatUsd(saved),
  estimated_requests: ({ estimated }) => estimated,
  unpriced_requests: ({ unpriced }) => unpriced,
} satisfies Readonly<Record<string, (sums: Sums) => Cell>>);

/** Converts the sums of a row to the API's form. */
function tellSums(sums: Sums): Readonly<Record<string, Cell>> {
  return Object.fromEntries(Object.entries(COLUMNS).map(([name, read]) => [name, read(sums)]));
}

/** Page of a report as JSON. */
function tellReport(
  { page, rows, totals, shared, next, latencies, previous }: UsagePage,
  { range, by }: UsageQuery,
): object {
  return {
    object: 'list',
    from: new Date(range.from).toISOString(),
    to: new Date(range.to).toISOString(),
    tz: range.zone,
    by,
    currency: 'USD',
    ...(previous && {
      previous: { from: new Date(previous.range.from).toISOString(), to: new Date(previous.range.to).toISOString() },
    }),
    data: page.map(({ names, sums, interval }) => ({
      ...Object.fromEntries(by.map((word, i) => [word, names[i] ?? NONE])),
      ...tellSums(sums),
      ...(previous && { previous: tellSums(previous.of({ names, sums, interval })) }),
      ...(latencies && { latency: latencies.rows.get(JSON.stringify(names)) ?? null }),
    })),
    rows: rows.length,
    totals: {
      ...tellSums(totals),
      ...(previous && { previous: tellSums(previous.totals) }),
      ...(latencies && { latency: latencies.totals ?? null }),
    },
    ...(latencies && { latency_of: { calls: latencies.calls, is_complete: latencies.isComplete } }),
    ...(shared && {
      shared: {
        requests: shared.calls.requests,
        cost_usd: formatUsd(shared.calls.cost),
        repeated_requests: shared.repeated.requests,
        repeated_cost_usd: formatUsd(shared.repeated.cost),
      },
    }),
    has_more: next !== undefined,
    ...(next !== undefined && { next }),
  };
}

/** Row that subtracts repeated calls: those with several tags are in several rows. */
const REPEATED = '(in several rows)';

/** All rows as CSV, regardless of the page; every column adds up to the totals. */
function csvOfReport({ rows, shared, previous }: UsagePage, by: readonly By[]): string {
  const cells = (sums: Sums, before: Sums | undefined): readonly Cell[] => [
    ...Object.values(tellSums(sums)),
    ...(before ? [before.requests, formatUsd(before.cost)] : []),
  ];
  const lines = rows.map((row) => [
    ...row.names.map((name) => (name === NONE ? '' : name)),
    ...cells(row.sums, previous?.of(row)),
  ]);
  const repeated = shared?.repeated;
  if (repeated && repeated.requests + (previous?.repeated.requests ?? 0) > 0)
    lines.push([
      ...by.map((word) => (word === 'tag' ? REPEATED : '')),
      ...cells(negate(repeated), previous && negate(previous.repeated)),
    ]);
  return formatCsv([...by, ...Object.keys(COLUMNS), ...(previous ? PREVIOUS_COLUMNS : [])], lines);
}

const PREVIOUS_COLUMNS = Object.freeze(['previous_requests', 'previous_cost_usd']);

function negate(sums: Sums): Sums {
  const negative = Object.entries(sums).map(([name, value]: [string, number | bigint]) => [
    name,
    value ? -value : value,
  ]);
  return Object.fromEntries(negative) as Sums;
}

const DESCRIPTION =
  'Counts calls at their start; `to` is exclusive. `totals` covers all pages; `shared` has calls with several tags.';

const LATENCY: Schema = {
  type: ['object', 'null'],
  description:
    'With `latency=true`: duration of successful calls, by their records. null if none of the checked records belongs to the row.',
  required: ['calls', 'duration_p50_ms', 'duration_p95_ms'],
  properties: {
    calls: { type: 'integer', minimum: 1 },
    duration_p50_ms: { type: 'number' },
    duration_p95_ms: { type: 'number' },
    first_byte_p50_ms: {
      type: 'number',
      description: 'Time to the first byte of the provider; for a stream, about the first token.',
    },
    first_byte_p95_ms: { type: 'number' },
  },
};

const SUMS: Schema = {
  type: 'object',
  required: Object.keys(COLUMNS),
  properties: {
    ...Object.fromEntries(
      Object.keys(COLUMNS).map((name) => [
        name,
        name.endsWith('_usd')
          ? { type: 'string', description: 'US dollars as a decimal string.' }
          : { type: 'integer', minimum: 0 },
      ]),
    ),
    latency: LATENCY,
  },
};

const REPORT: Schema = {
  type: 'object',
  required: ['object', 'from', 'to', 'tz', 'by', 'currency', 'data', 'rows', 'totals', 'has_more'],
  properties: {
    object: { const: 'list' },
    from: { type: 'string', format: 'date-time' },
    to: { type: 'string', format: 'date-time', description: 'Exclusive.' },
    tz: { type: 'string' },
    previous: {
      type: 'object',
      description:
        'With `compare=previous`: the range before. Each row and the totals then have `previous` with the sums of that range; rows without calls now have zeros.',
      required: ['from', 'to'],
      properties: { from: { type: 'string', format: 'date-time' }, to: { type: 'string', format: 'date-time' } },
    },
    by: { type: 'array', items: { type: 'string' } },
    currency: { const: 'USD' },
    data: { type: 'array', items: SUMS, description: 'One field for each word of `by`, and the sums.' },
    rows: { type: 'integer', description: 'Total number of rows over all pages.' },
    totals: SUMS,
    latency_of: {
      type: 'object',
      description:
        'With `latency=true`: number of checked calls, latest first, and whether these are all stored calls of the range.',
      required: ['calls', 'is_complete'],
      properties: { calls: { type: 'integer' }, is_complete: { type: 'boolean' } },
    },
    shared: {
      type: 'object',
      description: 'By tag only: calls with several tags, and the amount by which the rows exceed the totals.',
      required: ['requests', 'cost_usd', 'repeated_requests', 'repeated_cost_usd'],
    },
    has_more: { type: 'boolean' },
    next: { type: 'string', description: 'Value of `after` for the next page.' },
  },
};

const RESPONSES = { 200: { description: 'One row per group; with `format=csv`, as text/csv.', schema: REPORT } };

/** `GET /api/core/usage` for everyone, `GET /api/core/admin/usage` for operators. */
function usageRoutes(api: PluginApi, permission: string): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/core/usage',
      summary: 'Report your usage by time, model, provider, tag, key or operation',
      description: `A key sees its own usage, a token that of its account. ${DESCRIPTION}`,
      auth: ['key', 'token'],
      permission,
      query: reportQuery(FILTER_WORDS.filter((word) => word !== 'account')),
      responses: RESPONSES,
      async handler(ctx) {
        const query = readUsageQuery(wordsOf(ctx), Date.now());
        await respond(ctx, api, { ...query, filter: ownCalls(ctx.state.principal, query.filter) });
      },
    },
    {
      method: 'GET',
      path: '/api/core/admin/usage',
      summary: 'Report all usage by user, key, tag, provider, model, operation, session or time',
      description: DESCRIPTION,
      auth: ['key', 'token'],
      role: 'admin',
      scope: 'usage:read',
      query: reportQuery(FILTER_WORDS),
      responses: RESPONSES,
      handler: (ctx) => respond(ctx, api, readUsageQuery(wordsOf(ctx), Date.now())),
    },
  ];
}

/** Usage with the tag of a team, for its owners. */
function registerTeamUsage(api: PluginApi): void {
  createTeamRoutes(api)({
    method: 'GET',
    path: '/usage',
    summary: 'Report the usage with the tag of your team',
    description: DESCRIPTION,
    query: reportQuery(FILTER_WORDS),
    responses: RESPONSES,
    async handler(ctx, { tag }) {
      const query = readUsageQuery(wordsOf(ctx), Date.now());
      refuseOtherTag(query.filter.tag, tag);
      await respond(ctx, api, { ...query, filter: { ...query.filter, tag } });
    },
  });
}

async function respond(ctx: RouteContext, { books: { ledger } }: PluginApi, query: UsageQuery): Promise<void> {
  const page = await runUsageQuery(ledger, query);
  ctx.set('cache-control', 'no-store');
  if (query.format === 'json') {
    ctx.body = tellReport(page, query);
    return;
  }
  const { from, to } = query.range;
  const days = [from, to].map((at) => new Date(at).toISOString().slice(0, 10));
  ctx.set('content-disposition', `attachment; filename="usage-${days.join('-to-')}.csv"`);
  ctx.type = 'text/csv; charset=utf-8';
  ctx.body = csvOfReport(page, query.by);
}

/** Command options that select calls and time. */
function chooseOptions(filters: readonly FilterWord[]): readonly CommandOption[] {
  return optionsOf({ ...RANGE_WORDS, ...descriptions(filters) });
}

/** Options of parameters: `--end-user <end-user>` for `end_user`. */
function optionsOf(words: Readonly<Record<string, string>>): readonly CommandOption[] {
  return Object.entries(words).map(([word, summary]) => {
    const name = word.replaceAll('_', '-');
    return { flags: `--${name} <${name}>`, summary: plain(summary) };
  });
}

const SEARCH_OPTIONS = optionsOf(SEARCHES);

/** Help texts have no backticks and begin in lower case. */
function plain(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1).replaceAll('`', '').replace(/\.$/, '');
}

/** `tollgate usage`: reports spending by user and other groups, from the configured store. */
export function usageCommand(ledger: Pick<Ledger, 'report' | 'calls'>): Command {
  return {
    name: 'usage',
    summary: 'Report usage and cost',
    changesStore: false,
    options: [
      {
        flags: '--by <words>',
        summary:
          'comma-separated: user, key, tag, provider, model, operation, session, account, end_user, hour, day, week or month (default: day)',
      },
      ...chooseOptions(FILTER_WORDS),
      { flags: '--sort <how>', summary: 'name, or cost (highest first)' },
      { flags: '--limit <n>', summary: 'maximum number of rows (default: 100)' },
      { flags: '--after <cursor>', summary: 'continue after that page' },
      { flags: '--compare', summary: 'add the cost of the range before, of the same length, and the change' },
      { flags: '--latency', summary: 'add latency: p50 and p95 of the latest 5,000 successful calls' },
      { flags: '--csv', summary: 'print all rows as CSV' },
    ],
    async run({ options, io }) {
      const isCsv = options['csv'] === true;
      if (isCsv && io.json) throw wrongWord('csv', 'cannot be combined with --json.');
      const words = {
        ...wordsOfOptions(options),
        ...(isCsv && { format: 'csv' }),
        ...(options['latency'] === true && { latency: 'true' }),
        ...(options['compare'] === true && { compare: 'previous' }),
      };
      const query = readUsageQuery(words, Date.now());
      const page = await runUsageQuery(ledger, query);
      if (isCsv) return io.write(csvOfReport(page, query.by));
      io.result(tellReport(page, query), formatReport(page, query, io));
      if (page.next !== undefined)
        io.note(`There are ${page.rows.length} rows: --limit, --csv, or --after ${page.next}`);
    },
  };
}

/** Columns of the table, each with its unit. Columns with zeros alone are omitted, except the most important ones. */
const HEADS: Readonly<Record<keyof typeof COLUMNS, string>> = Object.freeze({
  requests: 'REQUESTS',
  errors: 'ERRORS',
  prompt_tokens: 'TOKENS IN',
  cached_tokens: 'TOKENS CACHED',
  completion_tokens: 'TOKENS OUT',
  reasoning_tokens: 'TOKENS REASONING',
  characters: 'CHARACTERS',
  cost_usd: 'COST USD',
  saved_usd: 'SAVED USD',
  estimated_requests: 'REQUESTS ESTIMATED',
  unpriced_requests: 'REQUESTS UNPRICED',
});
const TOOK = Object.freeze([
  ['P50 MS', 'duration_p50_ms'],
  ['P95 MS', 'duration_p95_ms'],
  ['FIRST BYTE P50 MS', 'first_byte_p50_ms'],
  ['FIRST BYTE P95 MS', 'first_byte_p95_ms'],
] as const satisfies readonly (readonly [head: string, field: keyof Latency])[]);
const ALWAYS: ReadonlySet<string> = new Set(['requests', 'prompt_tokens', 'completion_tokens', 'cost_usd']);

function formatReport(
  { page, totals, shared, latencies, previous }: UsagePage,
  { by }: UsageQuery,
  io: CommandIo,
): string {
  const columns = (Object.keys(HEADS) as (keyof typeof HEADS)[]).filter(
    (name) => ALWAYS.has(name) || Number(COLUMNS[name](totals)) !== 0,
  );
  const cells = (sums: Sums): readonly string[] => columns.map((name) => String(COLUMNS[name](sums)));
  const took = (latency: Latency | undefined): readonly string[] =>
    latencies ? TOOK.map(([, field]) => String(latency?.[field] ?? '')) : [];
  const before = (sums: Sums, past: Sums | undefined): readonly string[] =>
    past ? [formatUsd(past.cost), formatChange(sums.cost, past.cost)] : [];
  const rows = page.map(({ names, sums, interval }) => [
    ...names.map((name) => printable(name)),
    ...cells(sums),
    ...before(sums, previous?.of({ names, sums, interval })),
    ...took(latencies?.rows.get(JSON.stringify(names))),
  ]);
  const total = [
    'TOTAL',
    ...by.slice(1).map(() => ''),
    ...cells(totals),
    ...before(totals, previous?.totals),
    ...took(latencies?.totals),
  ];
  const table = io.table(
    [
      ...by.map((word) => word.toUpperCase()),
      ...columns.map((name) => HEADS[name]),
      ...(previous ? ['BEFORE USD', 'CHANGE %'] : []),
      ...(latencies ? TOOK.map(([head]) => head) : []),
    ],
    [...rows, total],
  );
  if (!shared || shared.calls.requests === 0) return table;
  const { calls, repeated } = shared;
  return `${table}\n${calls.requests} requests (${formatUsd(calls.cost)} USD) have several tags and are in several rows, so the rows exceed the total by ${formatUsd(repeated.cost)} USD.`;
}

/** Change of an amount in whole percent; empty without an amount before. */
function formatChange(amount: bigint, before: bigint): string {
  if (before === 0n) return '';
  const percent = Number(((amount - before) * 100n) / before);
  return percent > 0 ? `+${percent}` : String(percent);
}

type Calls = Pick<Ledger, 'calls'>;

/** Search time of a page: no other work waits in this process. */
const MOST_MS = 5000;

/** Number of recent calls before followed ones. */
const DEFAULT_RECENT = 10;

/** `tollgate calls`: lists calls from the configured store. */
export function callsCommand(ledger: Calls, findBodies: FindBodies): Command {
  return {
    name: 'calls',
    summary: 'Recent calls, newest first',
    changesStore: false,
    options: [
      ...chooseOptions(FILTER_WORDS),
      { flags: '--outcome <how>', summary: 'ok, error, aborted, refused, expired or unknown' },
      { flags: '--request <id>', summary: 'calls of the HTTP request with this id (x-request-id)' },
      ...SEARCH_OPTIONS,
      { flags: '--sort <how>', summary: 'time, cost, duration, first_byte or tokens, highest first (default: time)' },
      { flags: '--count', summary: 'print the number of matching calls' },
      { flags: '--since <when>', summary: 'a duration until now, such as 1h, or a time as in --from' },
      { flags: '--limit <n>', summary: 'number of calls (default: 50, with --follow 10)' },
      { flags: '--after <cursor>', summary: 'continue after that page' },
      { flags: '--follow', summary: 'show new calls as they are settled, until Ctrl-C' },
    ],
    async run(input) {
      const words = readSince({
        ...wordsOfOptions(input.options),
        ...(input.options['count'] === true && { count: 'true' }),
      });
      if (input.options['follow'] === true) return follow(ledger, words, input);
      const found = await findCalls(ledger, readCallsQuery(words, Date.now()), MOST_MS);
      const { calls, next, counted, sortedOf } = found;
      const data = { object: 'list', data: calls.map(tellCall), has_more: next !== undefined, ...tellCovered(found) };
      input.io.result({ ...data, ...(next !== undefined && { next }) }, formatCalls(calls, input.io));
      if (counted) input.io.note(`${counted.calls}${counted.isComplete ? '' : ' or more'} calls match.`);
      if (sortedOf?.isComplete === false) input.io.note(`Sorted: the latest ${sortedOf.calls} of them.`);
      if (next !== undefined) input.io.note(`More: --after ${next}`);
    },
    subcommands: [showCommand(ledger, findBodies)],
  };
}

function showCommand(ledger: Calls, findBodies: FindBodies): Subcommand {
  return {
    name: 'show',
    summary: 'Show a call with all details, and its content if calls.bodies stored it',
    args: [{ name: '<id>', summary: 'id of the call, as in the list, or of its request (x-request-id)' }],
    async run({ args: [id = ''], io }) {
      const found = id.startsWith('call_') ? await findCall(ledger, id) : await findCallOfRequest(ledger, id, io.note);
      const call = { ...tellCall(found), bodies: (await findBodies(found.id)) ?? null };
      const { bodies, ...facts } = call;
      const rows = Object.entries(facts).map(([name, value]) => [name, tellValue(value)]);
      const said = bodies === null ? '' : `\n\n${JSON.stringify(bodies, null, 2)}`;
      io.result(call, io.table(['FIELD', 'VALUE'], rows) + said);
    },
  };
}

/** Finds the newest call of a request; agents make several. */
async function findCallOfRequest(ledger: Calls, request: string, note: (text: string) => void): Promise<CallRow> {
  const { calls } = await findCalls(ledger, readCallsQuery({ request }, Date.now()), MOST_MS);
  const [newest] = calls;
  if (!newest)
    throw new GatewayError(
      'not_found',
      'No call or request has this id. It is not settled yet, or its record has expired.',
      {
        param: 'id',
      },
    );
  if (calls.length > 1) note(`The request made ${calls.length} calls: tollgate calls --request ${request}`);
  return newest;
}

function tellValue(value: unknown): string {
  if (value === null) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** `--since 1h` is `--last 1h`, `--since 2026-11-01` is `--from 2026-11-01`. */
function readSince({ since, ...words }: Words): Words {
  if (since === undefined) return words;
  if (words['from'] !== undefined || words['last'] !== undefined || words['period'] !== undefined)
    throw wrongWord('since', 'cannot be combined with another range.');
  // Read here too, so that an error names the option `since`.
  if (!/^\d{4}-/.test(since)) {
    readLast(since, Date.now(), 'since');
    return { ...words, last: since };
  }
  readInstant(since, 'since', readZone(words['tz']));
  // Without an end, so that calls settled during the command count too.
  return { ...words, from: since, to: words['to'] ?? '2100-01-01' };
}

async function follow(ledger: Calls, words: Words, { io, signal }: CommandInput): Promise<void> {
  assertFollowed(words, 'cannot be combined with --follow. Use --limit for the number of earlier calls.');
  const { filter, limit } = readCallsQuery(words, Date.now());
  const recent = words['limit'] === undefined ? DEFAULT_RECENT : limit;
  const write = (call: CallRow): void =>
    io.write(`${io.json ? JSON.stringify(tellCall(call)) : formatCallLine(call)}\n`);
  if (!io.json) io.write(`${formatCallHead()}\n`);
  for await (const { calls, isCut } of followCalls(ledger, { filter, recent, signal })) {
    if (isCut) io.note('Some calls were skipped, since there were too many. The list has all of them.');
    for (const call of calls) write(call);
  }
}

/** Usage reports and lists of calls from the ledger. */
export default definePlugin({
  name: 'usage',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['ledger', 'records'],
  section: 'calls',
  commands: [
    { name: 'usage', summary: 'Report usage and cost' },
    { name: 'calls', summary: 'List recent calls, or follow them live' },
  ],
  configSchema: CALLS_CONFIG,
  check: checkCalls,
  setup(api, config) {
    const [problem] = checkCalls(config);
    if (problem) throw new TypeError(`calls${problem.path ?? ''} ${problem.message}. ${problem.hint ?? ''}`);
    const findBodies = (id: string): Promise<StoredBodies | undefined> => api.keyv<StoredBodies>(BODIES).get(id);
    for (const route of usageRoutes(api, config.permission)) api.route(route);
    for (const route of callsRoutes(api, config.permission, findBodies)) api.route(route);
    api.route(overviewRoute(api));
    registerTeamUsage(api);
    registerTeamCalls(api);
    api.command(usageCommand(api.books.ledger));
    api.command(callsCommand(api.books.ledger, findBodies));
    api.stores.personalData(personalBodies(api));
    const rules = bodyRules(config);
    if (rules) keepBodies(api, rules);
  },
});
