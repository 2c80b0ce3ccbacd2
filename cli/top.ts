import { setTimeout as wait } from 'node:timers/promises';
import { isObject } from '../contract/json.ts';
import type { CallRow, Ledger } from '../contract/store.ts';
import { mergeStates, type TargetRow, targetRows } from '../contract/target-rows.ts';
import { formatUsd } from '../contract/units.ts';
import type { Generation } from '../core/calls/generation.ts';
import { callGateways } from './cluster/control.ts';
import { noGatewayError } from './inspect.ts';
import type { CommandContext } from './io.ts';
import { createIo, formatTable, plainText, systemUser } from './io.ts';
import { withGeneration } from './load.ts';

/**
 * Line that `tollgate calls top --json` prints each second. Times are ISO 8601, amounts decimal strings of US dollars.
 */
export interface TopReport {
  readonly at: string;
  readonly gateways: readonly { readonly pid: number; readonly processes: number; readonly store: string }[];
  /** Calls that have started and not ended. */
  readonly in_flight: number;
  /** Calls of all gateways on the store; null for a store within the gateway's process. */
  readonly calls: CallFigures | null;
  readonly today: { readonly spent_usd: string; readonly calls: number } | null;
  /** Budgets closest to exhaustion. */
  readonly budgets: readonly BudgetRow[];
  readonly targets: readonly TargetRow[];
  readonly failures: readonly FailureRow[];
  /** Problem that prevented a read this time. */
  readonly problem?: string;
}

interface CallFigures {
  readonly per_second: number;
  /** Calls that ended within the last minute, at most the latest {@link MAX_CALLS}. */
  readonly count: number;
  readonly failed: number;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
}

interface BudgetRow {
  readonly budget: string;
  readonly of: string;
  readonly whose: string;
  /** Share that is spent or held. */
  readonly used: number;
  readonly amount_usd: string;
  readonly spent_usd: string;
  readonly resets_at: string | null;
}

interface FailureRow {
  readonly at: string;
  readonly user: string;
  readonly target: string;
  readonly outcome: string;
  readonly code: string;
  readonly message: string;
  readonly request_id: string;
}

/**
 * `tollgate calls top`: on a terminal, redraws a frame each second until q or Ctrl-C. Elsewhere, and with `--once`, it
 * prints one report.
 */
export async function runTop(context: CommandContext): Promise<void> {
  const { globals, options, terminal } = context;
  const isOnce = options['once'] === true;
  await withGeneration(context, async (generation) => {
    const read = createReader(generation);
    const first = await read();
    if (first.gateways.length === 0) throw noGatewayError(generation.settings.dataDir);
    if (globals.json === true && !isOnce)
      await repeat(first, read, (report) => terminal.out.write(`${JSON.stringify(report)}\n`));
    else if (isOnce || globals.json === true || process.stdout.isTTY !== true)
      createIo(terminal, globals.json === true).result(first, renderTop(first).join('\n'));
    else await showLive(first, read);
  });
}

const EVERY_MS = 1000;

/** Shows a report each second until a signal ends the process, or `stop` fires. */
async function repeat(
  first: TopReport,
  read: () => Promise<TopReport>,
  show: (report: TopReport) => void,
  stop = new AbortController(),
): Promise<void> {
  const end = (): void => stop.abort();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.once(signal, end);
  try {
    let due = performance.now();
    for (let report = first; ; ) {
      show(report);
      due = Math.max(due + EVERY_MS, performance.now());
      await wait(due - performance.now(), undefined, { signal: stop.signal }).catch(() => undefined);
      const next = await Promise.race([untilAborted(stop.signal), read()]);
      if (next === undefined) return;
      report = next;
    }
  } finally {
    for (const signal of signals) process.off(signal, end);
  }
}

function untilAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

/** Switches to an alternate screen without a cursor or line wrap, and back. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const CTRL_C = '\u0003';

/** Draws frames in place. Always restores the terminal. */
async function showLive(first: TopReport, read: () => Promise<TopReport>): Promise<void> {
  const { stdin, stdout } = process;
  const stop = new AbortController();
  let last = first;
  const draw = (): void => {
    const lines = renderTop(last, { columns: stdout.columns, rows: stdout.rows - 1 });
    stdout.write(`\x1b[H${[...lines, 'q ends this'].map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`);
  };
  const onKey = (bytes: Buffer): void => {
    if (['q', 'Q', CTRL_C].includes(bytes.toString())) stop.abort();
  };
  const restore = (): void => {
    stdout.write(LEAVE);
    if (stdin.isTTY) stdin.setRawMode(false);
  };
  process.once('exit', restore);
  stdout.on('resize', draw).write(ENTER);
  if (stdin.isTTY) stdin.setRawMode(true).on('data', onKey);
  try {
    await repeat(
      first,
      read,
      (report) => {
        last = report;
        draw();
      },
      stop,
    );
  } finally {
    stdout.off('resize', draw);
    stdin.off('data', onKey).pause();
    process.off('exit', restore);
    restore();
  }
}

const WINDOW_MS = 60_000;
const RATE_MS = 10_000;
/** Most calls read per second. */
const MAX_CALLS = 2000;
const PAGE = 500;
/** Seconds between reads of slowly changing data. */
const SLOW_EVERY = 5;
const MAX_FAILURES = 8;
const MAX_BUDGETS = 10;
const DAY_MS = 86_400_000;

/** Reads the state of this machine's gateways, and the store's data about all that run on it. */
function createReader(generation: Generation): () => Promise<TopReport> {
  const { dataDir } = generation.settings;
  const { ledger, endsWithProcess = false } = generation.foundation.store;
  let slow: Pick<TopReport, 'today' | 'budgets' | 'failures'> = { today: null, budgets: [], failures: [] };
  let count = 0;
  return async () => {
    const now = Date.now();
    let calls: CallFigures | null = null;
    let problem: string | undefined;
    const [statuses, states] = await Promise.all([callGateways(dataDir, 'status'), callGateways(dataDir, 'targets')]);
    try {
      if (!endsWithProcess) {
        if (count % SLOW_EVERY === 0) slow = await readSlowly(generation, ledger, now);
        calls = figuresOf(await readCalls(ledger, now), now);
      }
      count += 1;
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
    const state = mergeStates(states);
    return {
      at: new Date(now).toISOString(),
      gateways: statuses.map(({ pid, stores }) => ({
        pid,
        processes: stores.length,
        store: stores.find((each) => each !== 'ok') ?? 'ok',
      })),
      in_flight: state.retries.live,
      calls,
      ...slow,
      targets: targetRows(state),
      ...(problem !== undefined && { problem }),
    };
  };
}

/** Reads the calls that ended within the last minute, latest first. */
async function readCalls(ledger: Ledger, now: number): Promise<readonly CallRow[]> {
  const calls: CallRow[] = [];
  let after: string | undefined;
  do {
    const page = await ledger.calls({ from: now - WINDOW_MS, limit: PAGE, ...(after !== undefined && { after }) });
    calls.push(...page.calls);
    after = page.next;
  } while (after !== undefined && calls.length < MAX_CALLS);
  return calls;
}

function figuresOf(calls: readonly CallRow[], now: number): CallFigures {
  const took = calls.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  const oldest = calls.length < MAX_CALLS ? now - RATE_MS : Math.max(now - RATE_MS, calls.at(-1)?.at ?? 0);
  const recent = calls.filter(({ at }) => at > oldest).length;
  return {
    per_second: Math.round((recent / Math.max(1, (now - oldest) / 1000)) * 10) / 10,
    count: calls.length,
    failed: calls.filter(({ outcome }) => outcome === 'error').length,
    p50_ms: quantileOf(took, 0.5),
    p95_ms: quantileOf(took, 0.95),
  };
}

function quantileOf(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

async function readSlowly(
  generation: Generation,
  ledger: Ledger,
  now: number,
): Promise<Pick<TopReport, 'today' | 'budgets' | 'failures'>> {
  const midnight = Math.floor(now / DAY_MS) * DAY_MS;
  const [rows, budgets, ...failed] = await Promise.all([
    ledger.report({ edges: [midnight, now + 1], by: [] }),
    readBudgets(generation),
    ...(['error', 'refused'] as const).map((outcome) =>
      ledger.calls({ outcome, from: now - DAY_MS, limit: MAX_FAILURES }),
    ),
  ]);
  const [sums] = rows;
  const latest = failed.flatMap(({ calls }) => calls).sort((a, b) => b.at - a.at);
  return {
    today: { spent_usd: formatUsd(Number(sums?.cost ?? 0n)), calls: sums?.requests ?? 0 },
    budgets,
    failures: latest.slice(0, MAX_FAILURES).map(describeFailure),
  };
}

function describeFailure(call: CallRow): FailureRow {
  const { at, userId, provider, model, requested, outcome, errorCode, errorMessage, requestId } = call;
  return {
    at: new Date(at).toISOString(),
    user: userId,
    outcome,
    target: outcome === 'refused' ? (requested ?? model) : `${provider}/${model}`,
    code: errorCode ?? '',
    message: errorMessage ?? '',
    request_id: requestId,
  };
}

/** Reads the result of `tollgate budgets near`; empty if its plugin is disabled. */
async function readBudgets({ registry }: Generation): Promise<readonly BudgetRow[]> {
  const near = registry.commands.get('budgets')?.value.subcommands?.find(({ name }) => name === 'near');
  let found: unknown;
  const io = {
    json: true,
    isTerminal: false,
    table: () => '',
    note: () => undefined,
    write: () => undefined,
    read: () => Promise.resolve(''),
    result: (value: unknown) => {
      found = value;
    },
  };
  const actor = { via: 'cli', userId: systemUser() } as const;
  await near?.run({ args: [], options: {}, io, signal: new AbortController().signal, actor });
  const rows = isObject(found) && Array.isArray(found['data']) ? (found['data'] as readonly BudgetRow[]) : [];
  return rows.slice(0, MAX_BUDGETS).map(({ budget, of, whose, used, amount_usd, spent_usd, resets_at }) => ({
    budget,
    of,
    whose,
    used,
    amount_usd,
    spent_usd,
    resets_at,
  }));
}

/** Size of the terminal. */
interface TopScreen {
  readonly columns: number;
  readonly rows: number;
}

const NO_SCREEN: TopScreen = Object.freeze({ columns: 200, rows: Number.POSITIVE_INFINITY });

/**
 * Renders a report as lines. Removes control characters from texts of callers and vendors, and cuts lines to the
 * columns.
 */
export function renderTop(report: TopReport, { columns, rows }: TopScreen = NO_SCREEN): readonly string[] {
  const { budgets, targets, failures } = report;
  const heading = headingOf(report);
  // Failing targets come first.
  const sorted = targets.toSorted((a, b) => Number(b.state !== 'closed') - Number(a.state !== 'closed'));
  const sections = [
    ...(budgets.length === 0 ? [] : [['', ...tableOf(BUDGET_HEAD, budgets.map(budgetCells))]]),
    [
      '',
      ...(targets.length === 0
        ? ['No targets used yet.']
        : tableOf(
            TARGET_HEAD,
            sorted.map((row) => targetCells(row, report.at)),
          )),
    ],
    ...(failures.length === 0 ? [] : [['', ...tableOf(FAILURE_HEAD, failures.map(failureCells))]]),
  ];
  // Divide the screen between the sections.
  const most = Math.max(3, Math.floor((rows - heading.length) / Math.max(1, sections.length)));
  return [...heading, ...sections.flatMap((lines) => lines.slice(0, most))]
    .slice(0, rows)
    .map((line) => cut(line, columns));
}

function headingOf({ at, gateways, in_flight: inFlight, calls, today, problem }: TopReport): readonly string[] {
  const running = gateways.map(({ pid, processes, store }) => `process ${pid} (${processes} serving, store ${store})`);
  const known = [
    ...(calls === null
      ? []
      : [
          `calls     ${calls.per_second}/s   p50 ${ms(calls.p50_ms)}   p95 ${ms(calls.p95_ms)}   ${calls.failed} of ${calls.count} failed in the last minute`,
        ]),
    ...(today === null ? [] : [`today     ${today.spent_usd} USD   ${today.calls} calls   (UTC)`]),
    ...(calls === null && problem === undefined
      ? ['calls     unknown: the store is in the gateway’s own process']
      : []),
  ];
  return [
    `${at.slice(0, 19).replace('T', ' ')} UTC   ${running.length === 0 ? 'no running gateway' : running.join(', ')}`,
    `in flight ${inFlight}`,
    ...known,
    ...(problem === undefined ? [] : [`problem   ${plainText(problem)}`]),
  ];
}

function ms(value: number | null): string {
  if (value === null) return '-';
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}

const BUDGET_HEAD = Object.freeze(['BUDGET', 'OF', 'USED %', 'SPENT', 'OF USD', 'RESETS UTC']);

function budgetCells({ budget, of, whose, used, spent_usd, amount_usd, resets_at }: BudgetRow): readonly string[] {
  const owner = of === 'all' ? 'all' : `${of} ${whose}`;
  const resets = resets_at === null ? 'never' : resets_at.slice(0, 16).replace('T', ' ');
  return [short(budget, 24), short(owner, 20), String(Math.floor(used * 100)), spent_usd, amount_usd, resets];
}

const TARGET_HEAD = Object.freeze(['TARGET', 'STATE', 'WHY', 'ERR %', 'MS', 'LAST ERROR']);

function targetCells(row: TargetRow, at: string): readonly string[] {
  const { target, state, cause = '', open_until: until, error_ratio: ratio, last_error: error } = row;
  const left = until === undefined ? 0 : Math.max(0, Math.ceil((Date.parse(until) - Date.parse(at)) / 1000));
  return [
    ...[short(target, 28), left === 0 ? state : `${state} ${left} s`, cause, (ratio * 100).toFixed(0)],
    (row.whole_ms ?? row.first_token_ms)?.toFixed(0) ?? '',
    error && state !== 'closed'
      ? `${error.status ?? error.errno ?? error.class ?? ''} ${plainText(error.message)}`
      : '',
  ];
}

const FAILURE_HEAD = Object.freeze(['FAILED', 'TARGET', 'USER', 'CODE', 'MESSAGE']);

function failureCells({ at, target, user, code, message }: FailureRow): readonly string[] {
  return [at.slice(11, 19), short(target, 24), short(user, 14), code, plainText(message)];
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  return formatTable(head, rows).split('\n');
}

function short(text: string, most: number): string {
  return cut(plainText(text), most);
}

function cut(text: string, most: number): string {
  const points = [...text];
  return points.length > most ? `${points.slice(0, most - 1).join('')}…` : text;
}
