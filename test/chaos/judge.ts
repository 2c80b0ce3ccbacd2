import type { LedgerEntry, Store } from '../../contract/index.ts';
import { chargesOf, findWrongCharges, type WrongCharge } from './charges.ts';
import type { Tried } from './client.ts';
import type { Done } from './deeds.ts';
import { CLOCK_MS, USER } from './installation.ts';
import type { ChaosCall } from './load.ts';
import type { ChaosNode } from './node.ts';
import { hadLiveTarget, isCutLately, type Plan } from './plan.ts';
import type { measureFamily } from './processes.ts';
import type { ChaosVendor, Served } from './vendor.ts';

export interface Left {
  readonly held: number;
  readonly toVendors: number;
  readonly fromClients: number;
}

export interface Sample {
  readonly atMs: number;
  /** Load of the machine, averaged over a minute. */
  readonly load: number;
  readonly nodes: readonly ReturnType<typeof measureFamily>[];
}

/** All data collected during a run. */
export interface Evidence {
  readonly plan: Plan;
  readonly calls: readonly ChaosCall[];
  readonly vendors: readonly ChaosVendor[];
  readonly store: Store;
  readonly nodes: readonly ChaosNode[];
  readonly done: Done;
  readonly left: Left;
  readonly samples: readonly Sample[];
}

/** Number of calls, and of those that completed. */
export interface Share {
  readonly of: number;
  readonly good: number;
}

export interface Verdict {
  readonly calls: number;
  readonly requests: number;
  readonly attempts: number;
  readonly withoutRetries: Share;
  readonly withRetries: Share;
  /** Streams that their vendor interrupted after the first delta; no gateway can repair them. */
  readonly broken: number;
  /**
   * Streams that began when a vendor had been interrupting its streams for ten seconds, and the share that it did not
   * interrupt.
   */
  readonly whileCut: Share;
  /** Interrupted streams without an error. No stream may end this way, and none may contain another call's text. */
  readonly quiet: readonly Tried[];
  readonly lost: number;
  /** Connections that were lost although no worker was killed. */
  readonly unexplained: readonly Tried[];
  readonly failures: readonly Tried[];
  readonly noLiveTarget: number;
  readonly ms: { readonly p50: number; readonly p99: number; readonly p999: number; readonly longest: number };
  readonly firstTokenMs: { readonly p50: number; readonly p99: number };
  /** Latency without the timeouts of hung vendors, divided by one timeout: at most 1 at the 99th percentile. */
  readonly overClocks: number;
  readonly charges: number;
  readonly wrong: readonly WrongCharge[];
  readonly isBalanced: boolean;
  readonly left: Left;
  readonly done: Done;
  readonly reloaded: number;
  readonly refused: number;
  readonly replaced: number;
  readonly samples: readonly Sample[];
  readonly errors: readonly string[];
}

/** Time after a kill in which connections may break. */
const KILL_MS = 3_000;
/** Time after its response in which the cost of a call may still be unwritten. */
const WRITE_MS = 200;

export async function judge(evidence: Evidence): Promise<Verdict> {
  const { plan, calls, vendors, store, nodes, done, left, samples } = evidence;
  const tried = calls.flatMap((call) => call.tried);
  const served = vendors.flatMap((vendor) => vendor.served);
  const live = calls.filter(({ tried: all }) => hadLiveTarget(plan, all[0]?.fromMs ?? 0, all[0]?.toMs ?? 0));
  const liveToEnd = calls.filter(({ tried: all }) => hadLiveTarget(plan, all[0]?.fromMs ?? 0, all.at(-1)?.toMs ?? 0));
  const isKilled = ({ node, fromMs, toMs }: Tried): boolean =>
    done.kills.some((kill) => kill.node === node && kill.atMs > fromMs - KILL_MS && kill.atMs < toMs + KILL_MS);
  const isCutOff = ({ node, toMs }: Tried): boolean =>
    done.kills.some((kill) => kill.node === node && kill.atMs > toMs - WRITE_MS && kill.atMs < toMs + WRITE_MS);
  const first = live.flatMap(({ tried: [one] }) => (one ? [one] : []));
  const last = liveToEnd.flatMap(({ tried: all }) => all.slice(-1));
  const good = tried.filter(({ came }) => came === 'whole');
  const ms = good.map(({ fromMs, toMs }) => toMs - fromMs);
  const firsts = calls.flatMap(({ form, tried: all }) =>
    form.stream ? all.flatMap(({ came, firstMs }) => (came === 'whole' && firstMs !== undefined ? [firstMs] : [])) : [],
  );
  const logged = (words: string): number => nodes.reduce((sum, node) => sum + node.countLogged(words), 0);
  return {
    ...{ calls: calls.length, requests: tried.length, attempts: served.length, left, done, samples },
    withoutRetries: shareOf(first),
    withRetries: shareOf(last),
    broken: last.filter(({ came }) => came === 'broken').length,
    whileCut: whileCut(plan, calls, served),
    quiet: tried.filter(({ came }) => came === 'quiet' || came === 'of another'),
    lost: tried.filter(({ came }) => came === 'lost').length,
    unexplained: tried.filter((each) => each.came === 'lost' && !isKilled(each)),
    failures: last.filter(({ came }) => came !== 'whole' && came !== 'broken'),
    noLiveTarget: calls.length - live.length,
    ms: { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), p999: quantile(ms, 0.999), longest: quantile(ms, 1) },
    firstTokenMs: { p50: quantile(firsts, 0.5), p99: quantile(firsts, 0.99) },
    overClocks: quantile(overClocks(calls, served), 0.99, 100),
    ...(await checkBooks(store, nodes, tried, served, isCutOff)),
    reloaded: logged('the configuration was reloaded'),
    refused: logged('was not reloaded'),
    replaced: logged('worker exited; starting a new one'),
    errors: nodes.flatMap((node) => node.logged('error')),
  };
}

/** A vendor that interrupts its streams must become unhealthy: in the meantime its streams reach few callers. */
function whileCut(plan: Plan, calls: readonly ChaosCall[], served: readonly Served[]): Share {
  const cut = new Set(served.filter(({ mood, kind }) => mood === 'cuts' && kind === 'broken').map(({ id }) => id));
  const streams = calls.flatMap(({ form, tried: [first] }) => (form.stream && first ? [first] : []));
  const late = streams.filter(({ fromMs }) => isCutLately(plan, fromMs));
  return { of: late.length, good: late.filter(({ id, came }) => came !== 'broken' || !cut.has(id)).length };
}

/** Counts calls that a gateway can influence. */
function shareOf(tried: readonly Tried[]): Share {
  const countable = tried.filter(({ came }) => came !== 'broken');
  return { of: countable.length, good: countable.filter(({ came }) => came === 'whole').length };
}

async function checkBooks(
  store: Store,
  nodes: readonly ChaosNode[],
  tried: readonly Tried[],
  served: readonly Served[],
  isCutOff: (tried: Tried) => boolean,
): Promise<Pick<Verdict, 'charges' | 'wrong' | 'isBalanced'>> {
  const entries = await allEntries(store);
  const calls = new Map((await Promise.all(nodes.map((node) => node.calls()))).flatMap((some) => [...some]));
  const { byRequest, strange } = chargesOf(entries, (call) => calls.get(call));
  const byId = new Map<string, Served[]>();
  for (const each of served) byId.set(each.id, [...(byId.get(each.id) ?? []), each]);
  const { balance, held, credited, spent } = await store.ledger.balance(USER);
  const sum = entries.reduce((total, { amount }) => total + amount, 0);
  return {
    charges: byRequest.size,
    wrong: [
      ...findWrongCharges(tried, byId, byRequest, isCutOff),
      ...strange.map(({ ref, amount }) => ({ id: ref, came: 'unknown' as const, charged: -amount, why: 'no call' })),
    ],
    isBalanced: sum === balance && balance === credited - spent && held === 0,
  };
}

async function allEntries(store: Store): Promise<readonly LedgerEntry[]> {
  const all: LedgerEntry[] = [];
  for (;;) {
    const after = all.at(-1)?.id;
    const page = await store.ledger.entries(USER, { limit: 1000, ...(after !== undefined && { after }) });
    if (page.length === 0) return all;
    all.push(...page);
  }
}

/** Latency of each response without the timeouts of hung vendors, as a share of one timeout. */
function overClocks(calls: readonly ChaosCall[], served: readonly Served[]): readonly number[] {
  const hung = new Map<string, number>();
  for (const { id, mood } of served) if (mood === 'hangs') hung.set(id, (hung.get(id) ?? 0) + 1);
  return calls.flatMap(({ form, tried }) => {
    const clockMs = CLOCK_MS[form.stream ? 'stream' : 'whole'];
    return tried
      .filter(({ came }) => came === 'whole')
      .map(({ id, fromMs, toMs }) => (toMs - fromMs - clockMs * (hung.get(id) ?? 0)) / clockMs);
  });
}

function quantile(values: readonly number[], share: number, parts = 1): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * parts) / parts;
}
