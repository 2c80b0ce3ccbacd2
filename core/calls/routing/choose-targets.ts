import { createHash } from 'node:crypto';
import type { ModelRoute, RouteTarget } from '../../config/model-routes.ts';
import type { Target } from '../../contract/call.ts';
import { splitModel } from '../targets.ts';
import type { HealthBook } from './health-book.ts';
import type { StickyTargets } from './sticky-targets.ts';

/** What the choice of targets depends on beside the alias itself. */
export interface ChoiceFacts {
  readonly stream: boolean;
  /** What calls of one conversation have in common; undefined for none. */
  readonly stickyKey: string | undefined;
  readonly health: Pick<HealthBook, 'mayTry' | 'latencyMs'>;
  readonly sticky: Pick<StickyTargets, 'get'>;
  /** The most that the request costs at a target, in micro-dollars; undefined without a known price. */
  costAt(target: Target): number | undefined;
  random(): number;
}

/** The targets of an alias in the order to try: group by group, each as the strategy says; the one for long prompts is not among them. */
export function chooseTargets(route: ModelRoute, facts: ChoiceFacts): readonly Target[] {
  const rows = withoutDearer(route.targets, facts);
  const orders = [...new Set(rows.map(({ order }) => order))].sort((a, b) => a - b);
  return orders.flatMap((order) =>
    orderGroup(
      route,
      rows.filter((row) => row.order === order),
      facts,
    ),
  );
}

export function targetOf({ to }: RouteTarget): Target {
  return splitModel(to);
}

/** Leaves targets out that are only for what they do cheaper than all the others. */
function withoutDearer(rows: readonly RouteTarget[], { costAt }: ChoiceFacts): readonly RouteTarget[] {
  if (!rows.some(({ onlyWhenCheaper }) => onlyWhenCheaper)) return rows;
  const others = rows.filter(({ onlyWhenCheaper }) => !onlyWhenCheaper).map((row) => costAt(targetOf(row)));
  const least = Math.min(...others.map((cost) => cost ?? Number.POSITIVE_INFINITY));
  return rows.filter((row) => {
    if (!row.onlyWhenCheaper) return true;
    const cost = costAt(targetOf(row));
    return cost !== undefined && cost < least;
  });
}

function orderGroup(route: ModelRoute, rows: readonly RouteTarget[], facts: ChoiceFacts): readonly Target[] {
  if (rows.length < 2 || route.strategy === 'fallback') return rows.map(targetOf);
  return route.strategy === 'weighted' ? byWeight(rows, facts) : byLatency(rows.map(targetOf), facts);
}

/**
 * Weighted rendezvous: each target has its own draw, the best one wins. Of one conversation the draws are always the same, on every
 * worker and node, so that it stays where its prompt is cached.
 */
function byWeight(rows: readonly RouteTarget[], { stickyKey, random }: ChoiceFacts): readonly Target[] {
  const drawn = rows
    .filter(({ weight }) => weight > 0)
    .map((row) => {
      const draw = stickyKey === undefined ? random() : hashToUnit(`${stickyKey}\n${row.to}`);
      return { row, score: row.weight / -Math.log(Math.min(Math.max(draw, 1e-12), 1 - 1e-12)) };
    });
  const reserves = rows.filter(({ weight }) => weight === 0);
  return [...drawn.sort((a, b) => b.score - a.score).map(({ row }) => row), ...reserves].map(targetOf);
}

/** Power of two choices: of two at random the faster one, then the others by what they take. An unknown one counts as fast. */
function byLatency(targets: readonly Target[], facts: ChoiceFacts): readonly Target[] {
  const { health, stream, sticky, stickyKey, random } = facts;
  const latency = (target: Target): number => health.latencyMs(target, stream) ?? 0;
  const sorted = [...targets].sort((a, b) => latency(a) - latency(b));
  const remembered = stickyKey === undefined ? undefined : sticky.get(stickyKey);
  const stays = sorted.find(({ provider, model }) => remembered === `${provider}/${model}`);
  if (stays && health.mayTry(stays)) return [stays, ...sorted.filter((target) => target !== stays)];
  const able = sorted.filter((target) => health.mayTry(target));
  const one = able[Math.floor(random() * able.length)];
  const rest = able.filter((target) => target !== one);
  const two = rest[Math.floor(random() * rest.length)];
  const first = one && two && latency(two) < latency(one) ? two : one;
  return first ? [first, ...sorted.filter((target) => target !== first)] : sorted;
}

/** A number between 0 and 1 that a text always gives. */
function hashToUnit(text: string): number {
  return createHash('sha256').update(text).digest().readUIntBE(0, 6) / 2 ** 48;
}
