import { randomUUID } from 'node:crypto';
import { formatUsd, type Ledger, type PluginApi, parseUsd, type TargetReport } from '../../../contract/index.ts';
import { endingTargets } from '../kit/ending-targets.ts';
import { windowAt } from '../kit/index.ts';
import { daysBefore, type NoticeType, type OperatorNotice } from '../kit/notices.ts';

interface WatchOptions {
  readonly timezone: string;
  readonly unusualTimes: number;
  readonly unusualUsd: number;
  /** What some receiver wants. */
  readonly wanted: ReadonlySet<NoticeType>;
  /** Whether a cause comes here first, over all processes of the store. */
  isFirst(cause: string, rememberMs: number): Promise<boolean>;
  tell(notice: OperatorNotice): Promise<void>;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Looks every now and then at what this process knows anyway, until the configuration is replaced; the first time at once. */
export function startWatches(api: PluginApi, options: WatchOptions): void {
  const { wanted } = options;
  const every = (ms: number, look: () => void | Promise<void>): void => {
    let isRunning = false;
    // A store that is away is asked again the next time.
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

/** Shorter ones are how vendors pace their callers. */
const SHORT_LIMIT_MS = MINUTE_MS;
/** For so long after its last word the process that told of a target has it for itself. */
const HELD_MS = MINUTE_MS;
const RENEW_MS = 20 * SECOND_MS;

/** A target that this process found to fail. */
interface OpenTarget {
  readonly since: number;
  /** Whether this process told of it, and so tells when it works again. */
  isOurs: boolean;
  renewAt: number;
}

/**
 * Targets that were opened or closed since the last look. Several processes may find the same: the one that has the target's lease tells
 * it. What a process learns of others it does not tell.
 */
function watchTargets(api: PluginApi, { tell }: WatchOptions): () => Promise<void> {
  const { id, open } = api.keep('targets', () => ({
    id: randomUUID(),
    open: new Map<string, OpenTarget>(),
  }));
  const { counters } = api.stores;
  const hold = (name: string): Promise<boolean> =>
    // Without the store each process tells what it finds.
    counters.lease(`open.${name}`, id, 1, HELD_MS, Date.now()).catch(() => true);

  return async () => {
    const now = Date.now();
    const reports = api.routing().targets;
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
    // All models of a provider fail at once where its key or its host does.
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
  credential: 'it rejects the gateway’s key',
});

/** How many targets of one provider are named. */
const MAX_NAMED = 5;

function openedNotice(reports: readonly TargetReport[], now: number): OperatorNotice {
  const names = reports.map(nameOf);
  const [first] = reports as [TargetReport];
  const { provider, cause = 'failures', openUntil, lastError } = first;
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  // Not the vendor's words: they may quote what was sent to it.
  const error = lastError?.status ?? lastError?.errno ?? lastError?.class;
  const subject = names.length === 1 ? `Target ${names[0]} is` : `${names.length} targets of ${provider} are`;
  return {
    type: 'target.opened',
    text: `${subject} unhealthy: ${WHY[cause] ?? cause}${error === undefined ? '' : ` (${error})`}`,
    facts: {
      ...{ provider, targets: names.slice(0, MAX_NAMED).join(', ') + more, cause },
      error: error === undefined ? null : String(error),
      request_id: lastError?.requestId ?? null,
      until: openUntil === undefined ? null : new Date(openUntil).toISOString(),
    },
    ...{ cause: `target.opened ${provider} ${names.join(' ')} ${now}`, rememberMs: MINUTE_MS },
  };
}

function closedNotice(report: TargetReport, { since }: OpenTarget, now: number): OperatorNotice {
  const name = nameOf(report);
  const minutes = Math.max(1, Math.round((now - since) / MINUTE_MS));
  return {
    type: 'target.closed',
    text: `Target ${name} is healthy again after ${minutes === 1 ? 'a minute or less' : `${minutes} minutes`}`,
    facts: { provider: report.provider, targets: name, since: new Date(since).toISOString() },
    ...{ cause: `target.closed ${name} ${now}`, rememberMs: MINUTE_MS },
  };
}

/** All workers hear of a refused reload at about the same time; nodes with the same file, too. */
const RELOAD_MS = MINUTE_MS;

function watchReloads({ gateway, keep }: PluginApi, { tell }: WatchOptions): () => Promise<void> {
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
      ...{ cause: `reload.refused ${problem}`, rememberMs: RELOAD_MS },
    });
  };
}

/** How many days before its end a model is told of. */
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
      ...{ cause: `model.ends ${name} ${day} ${days}`, rememberMs: MODEL_REMEMBER_MS },
    });
  }
}

/** How many weeks back are looked at, and in how many of them something must have been called. */
const WEEKS = 4;
const LEAST_WEEKS = 3;

/** What today's spend is compared by. */
export interface SpendRule {
  readonly timezone: string;
  /** How many times the most of the weeks before. */
  readonly times: number;
  /** How much more than that, in nano-dollars. */
  readonly leastMore: number;
}

/** Spend of the full hours of today that is unusual. Amounts in nano-dollars. */
interface UnusualSpend {
  /** The first instant of today, and the end of the last full hour. */
  readonly from: number;
  readonly to: number;
  readonly spent: bigint;
  /** The most, and how many of the weeks before there is something of. */
  readonly most: bigint;
  readonly weeks: number;
}

/**
 * Compares what calls cost since midnight, up to the last full hour, with the same hours of the same weekday in each of the four weeks
 * before. Of three or more of them there must be calls: else nothing is known. Unusual is more than so many times the most of them, and
 * so much more.
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
  // From the middle of the day: clocks that change do not lead to the day before.
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

/** What ended within this time before a full hour is booked by then. */
const BOOKED_MS = 2 * MINUTE_MS;

async function tellSpend({ ledger }: PluginApi, options: WatchOptions): Promise<void> {
  const { timezone, unusualTimes: times, unusualUsd, isFirst, tell } = options;
  const now = Date.now() - BOOKED_MS;
  // One process looks, once an hour.
  if (!(await isFirst(`spend ${Math.floor(now / HOUR_MS)}`, 2 * HOUR_MS))) return;
  const found = await findUnusualSpend(ledger, { timezone, times, leastMore: parseUsd(unusualUsd) }, now);
  if (!found) return;
  const { from, to, spent, most, weeks } = found;
  const usd = (amount: bigint): string => formatUsd(Number(amount));
  await tell({
    type: 'spend.unusual',
    text: `Spend today is ${usd(spent)} USD so far; the maximum in the same hours of this weekday was ${usd(most)} USD`,
    facts: {
      ...{ spent_usd: usd(spent), most_before_usd: usd(most), weeks_compared: String(weeks), timezone },
      ...{ from: new Date(from).toISOString(), to: new Date(to).toISOString() },
    },
    ...{ cause: `spend.unusual ${from}`, rememberMs: 2 * DAY_MS },
  });
}
