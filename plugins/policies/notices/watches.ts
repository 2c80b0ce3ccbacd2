import { randomUUID } from 'node:crypto';
import { formatUsd, type Ledger, type PluginApi, parseUsd, type TargetReport } from '../../../contract/index.ts';
import { endingTargets } from '../kit/ending-targets.ts';
import { windowAt } from '../kit/index.ts';
import { daysBefore, type NoticeType, type OperatorNotice } from '../kit/notices.ts';

interface WatchOptions {
  readonly timezone: string;
  readonly unusualTimes: number;
  readonly unusualUsd: number;
  /** Notice types that some receiver wants. */
  readonly wanted: ReadonlySet<NoticeType>;
  /** True if a cause occurs first here, over all processes of the store. */
  isFirst(cause: string, rememberMs: number): Promise<boolean>;
  tell(notice: OperatorNotice): Promise<void>;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Checks this process's state at intervals until the configuration is replaced, and once at the start. */
export function startWatches(api: PluginApi, options: WatchOptions): void {
  const { wanted } = options;
  const every = (ms: number, look: () => void | Promise<void>): void => {
    let isRunning = false;
    // If the store is unavailable, the next check follows.
    const run = async (): Promise<void> => {
      if (isRunning) return;
      isRunning = true;
      try {
        await look();
      } catch (error) {
        api.log.debug({ err: error }, 'data for notices could not be read');
      } finally {
        isRunning = false;
      }
    };
    const timer = setInterval(() => void run(), ms);
    timer.unref();
    api.onClose(() => clearInterval(timer));
    void run();
  };
  if (wanted.has('target.opened') || wanted.has('target.closed')) every(SECOND_MS, watchTargets(api, options));
  if (wanted.has('reload.refused')) every(SECOND_MS, watchReloads(api, options));
  if (wanted.has('model.ends')) every(HOUR_MS, () => tellEndings(api, options));
  if (wanted.has('spend.unusual')) every(MINUTE_MS, () => tellSpend(api, options));
}

/** Shorter rate limits are normal pacing by vendors. */
const SHORT_LIMIT_MS = MINUTE_MS;
/** Time for which the process that reported a target keeps its lease after its last report. */
const HELD_MS = MINUTE_MS;
const RENEW_MS = 20 * SECOND_MS;

/** Target that this process found failing. */
interface OpenTarget {
  readonly since: number;
  /** True if this process reported it, and so reports its recovery. */
  isOurs: boolean;
  renewAt: number;
}

/**
 * Reports targets that were opened or closed since the last check. Several processes may find the same; the one with
 * the target's lease reports it. Findings of other processes are not reported.
 */
function watchTargets(api: PluginApi, { tell }: WatchOptions): () => Promise<void> {
  const { id, open } = api.keep('targets', () => ({
    id: randomUUID(),
    open: new Map<string, OpenTarget>(),
  }));
  const { counters } = api.stores;
  const hold = (name: string): Promise<boolean> =>
    // Without the store each process reports its own findings.
    counters.lease(`open.${name}`, id, 1, HELD_MS, Date.now()).catch(() => true);

  return async () => {
    const now = Date.now();
    const reports = api.models.routing().targets;
    const opened: TargetReport[] = [];
    const gone = new Set(open.keys());
    for (const report of reports) {
      const name = nameOf(report);
      gone.delete(name);
      const known = open.get(name);
      if (!known && isFailing(report, now)) {
        const found = { since: now, isOurs: false, renewAt: now + RENEW_MS };
        open.set(name, found);
        found.isOurs = await hold(name);
        if (found.isOurs) opened.push(report);
      } else if (known && report.state === 'closed') {
        open.delete(name);
        if (!known.isOurs) continue;
        await counters.release(`open.${name}`, id).catch(() => undefined);
        await tell(closedNotice(report, known, now));
      } else if (known?.isOurs && now >= known.renewAt) {
        known.renewAt = now + RENEW_MS;
        await hold(name);
      }
    }
    for (const name of gone) open.delete(name);
    // If a provider's key or host fails, all its models fail at once.
    for (const provider of new Set(opened.map((report) => report.provider)))
      await tell(
        openedNotice(
          opened.filter((report) => report.provider === provider),
          now,
        ),
      );
  };
}

function nameOf({ provider, model, key }: TargetReport): string {
  return `${provider}/${model}${key === undefined ? '' : ` by the key ${key}`}`;
}

function isFailing({ state, cause, openUntil = 0 }: TargetReport, now: number): boolean {
  if (state === 'closed' || state === 'drained' || cause === 'shared') return false;
  return cause !== 'rate_limit' || openUntil - now >= SHORT_LIMIT_MS;
}

const WHY: Readonly<Record<string, string>> = Object.freeze({
  failures: 'its recent calls failed',
  rate_limit: 'its rate limit is reached',
  credential: 'its API key was rejected',
});

/** Maximum targets named per provider. */
const MAX_NAMED = 5;

function openedNotice(reports: readonly TargetReport[], now: number): OperatorNotice {
  const names = reports.map(nameOf);
  const [first] = reports as [TargetReport];
  const { provider, cause = 'failures', openUntil, lastError } = first;
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  // Without the vendor's message, which may quote the request.
  const error = lastError?.status ?? lastError?.errno ?? lastError?.class;
  const subject = names.length === 1 ? `Target ${names[0]} is` : `${names.length} targets of ${provider} are`;
  return {
    type: 'target.opened',
    text: `${subject} unhealthy: ${WHY[cause] ?? cause}${error === undefined ? '' : ` (${error})`}`,
    facts: {
      provider,
      targets: names.slice(0, MAX_NAMED).join(', ') + more,
      cause,
      error: error === undefined ? null : String(error),
      request_id: lastError?.requestId ?? null,
      until: openUntil === undefined ? null : new Date(openUntil).toISOString(),
    },
    cause: `target.opened ${provider} ${names.join(' ')} ${now}`,
    rememberMs: MINUTE_MS,
  };
}

function closedNotice(report: TargetReport, { since }: OpenTarget, now: number): OperatorNotice {
  const name = nameOf(report);
  const minutes = Math.max(1, Math.round((now - since) / MINUTE_MS));
  return {
    type: 'target.closed',
    text: `Target ${name} is healthy again after ${minutes === 1 ? 'a minute or less' : `${minutes} minutes`}`,
    facts: { provider: report.provider, targets: name, since: new Date(since).toISOString() },
    cause: `target.closed ${name} ${now}`,
    rememberMs: MINUTE_MS,
  };
}

/** All workers, and nodes with the same file, see a refused reload at about the same time. */
const RELOAD_MS = MINUTE_MS;

function watchReloads({ operators: { gateway }, keep }: PluginApi, { tell }: WatchOptions): () => Promise<void> {
  const last = keep('reload', (): { problem?: string | undefined } => ({}));
  return async () => {
    const problem = gateway.reloadProblem();
    if (problem === last.problem) return;
    last.problem = problem;
    if (problem === undefined) return;
    await tell({
      type: 'reload.refused',
      text: 'The configuration was not reloaded; the previous one stays active',
      facts: { problem },
      cause: `reload.refused ${problem}`,
      rememberMs: RELOAD_MS,
    });
  };
}

/** Days before its shutdown on which a model is reported. */
const MODEL_DAYS: readonly number[] = Object.freeze([30, 7, 1, 0]);
/** Longer than between the first and the last of these. */
const MODEL_REMEMBER_MS = 400 * DAY_MS;

async function tellEndings(api: PluginApi, { tell }: WatchOptions): Promise<void> {
  const now = Date.now();
  for (const [{ provider, model }, end] of endingTargets(api)) {
    const days = daysBefore(end, MODEL_DAYS, now);
    if (days === undefined) continue;
    const name = `${provider}/${model}`;
    const day = new Date(end).toISOString().slice(0, 10);
    const what = end <= now ? 'has shut down' : 'shuts down';
    await tell({
      type: 'model.ends',
      text: `The vendor of ${name} ${what} this model on ${day}. Use another model`,
      facts: { target: name, shutdown: day },
      cause: `model.ends ${name} ${day} ${days}`,
      rememberMs: MODEL_REMEMBER_MS,
    });
  }
}

/** Number of past weeks compared, and minimum number of them with calls. */
const WEEKS = 4;
const LEAST_WEEKS = 3;

/** Rule for comparing today's spend. */
export interface SpendRule {
  readonly timezone: string;
  /** Multiple of the highest past week. */
  readonly times: number;
  /** Minimum excess, in nano-dollars. */
  readonly leastMore: number;
}

/** Unusual spend of today's full hours. Amounts in nano-dollars. */
interface UnusualSpend {
  /** Start of today, and end of the last full hour. */
  readonly from: number;
  readonly to: number;
  readonly spent: bigint;
  /** Highest spend, and number of past weeks with calls. */
  readonly most: bigint;
  readonly weeks: number;
}

/**
 * Compares the cost of calls since midnight, up to the last full hour, with the past. The past is the same hours of the
 * same weekday in the four weeks before. At least three of the weeks must have calls. Spend is unusual if it exceeds
 * the highest of them by the given factor and amount.
 */
export async function findUnusualSpend(
  ledger: Pick<Ledger, 'report'>,
  { timezone, times, leastMore }: SpendRule,
  now: number,
): Promise<UnusualSpend | undefined> {
  const rule = { every: 'day', timezone } as const;
  const { start, end } = windowAt(rule, now);
  const span = Math.floor((now - start) / HOUR_MS) * HOUR_MS;
  if (span === 0) return undefined;
  // Counted from noon, so that clock changes do not lead to the day before.
  const noon = (start + end) / 2;
  const starts = Array.from({ length: WEEKS }, (_, at) => windowAt(rule, noon - (WEEKS - at) * 7 * DAY_MS).start);
  const edges = [...starts, start].flatMap((from) => [from, from + span]);
  const rows = await ledger.report({ edges, by: [] });
  const before = rows.filter(({ interval, requests }) => interval % 2 === 0 && interval < 2 * WEEKS && requests > 0);
  const spent = rows.find(({ interval }) => interval === 2 * WEEKS)?.cost ?? 0n;
  if (before.length < LEAST_WEEKS) return undefined;
  let most = 0n;
  for (const { cost } of before) if (cost > most) most = cost;
  const isUnusual = Number(spent) > Number(most) * times && spent - most >= BigInt(leastMore);
  return isUnusual ? { from: start, to: start + span, spent, most, weeks: before.length } : undefined;
}

/** Calls that ended this long before a full hour are settled by then. */
const BOOKED_MS = 2 * MINUTE_MS;

async function tellSpend({ books: { ledger } }: PluginApi, options: WatchOptions): Promise<void> {
  const { timezone, unusualTimes: times, unusualUsd, isFirst, tell } = options;
  const now = Date.now() - BOOKED_MS;
  // One process checks, once per hour.
  if (!(await isFirst(`spend ${Math.floor(now / HOUR_MS)}`, 2 * HOUR_MS))) return;
  const found = await findUnusualSpend(ledger, { timezone, times, leastMore: parseUsd(unusualUsd) }, now);
  if (!found) return;
  const { from, to, spent, most, weeks } = found;
  const usd = (amount: bigint): string => formatUsd(Number(amount));
  await tell({
    type: 'spend.unusual',
    text: `Spend today is ${usd(spent)} USD so far; the maximum in the same hours of this weekday was ${usd(most)} USD`,
    facts: {
      spent_usd: usd(spent),
      most_before_usd: usd(most),
      weeks_compared: String(weeks),
      timezone,
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
    },
    cause: `spend.unusual ${from}`,
    rememberMs: 2 * DAY_MS,
  });
}
