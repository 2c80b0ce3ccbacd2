import { createHash } from 'node:crypto';
import type { ModelRoute, RouteTarget } from '../../config/model-routes.ts';
import type { Target } from '../../contract/call.ts';
import type { CallDeps } from '../call-deps.ts';
import type { LiveCall } from '../live-call.ts';
import { estimateAt } from '../meter.ts';
import { splitModel } from '../targets.ts';
import type { HealthBook } from './health-book.ts';
import { type StickyTargets, stickyKeyOf } from './sticky-targets.ts';

/** Puts the targets of a call in the order that its alias says; calls without an alias have one target. */
export function applyRoute(deps: CallDeps, call: LiveCall): void {
  const route = call.alias === undefined ? undefined : deps.routes.get(call.alias);
  if (!route) return;
  const { health, sticky } = deps.routing;
  const { principal, session, request, stream } = call;
  // The order of a list is the same for everybody: nothing has to be remembered.
  const stickyKey =
    route.strategy === 'fallback' ? undefined : stickyKeyOf(route.sticky, { ...principal, session, request });
  call.routeBy(stickyKey, route.timeouts);
  if (call.targets.length < 2) return;
  const ordered = chooseTargets(route, {
    ...{ stream, stickyKey, health, sticky, random: Math.random },
    costAt: (target) => estimateAt(deps, call, target).cost,
  });
  // What a response was made of is cached where it was made, whatever the strategy says of new conversations.
  const { follows } = call;
  const maker = follows && route.sticky !== 'none' ? ordered.find((each) => isSame(each, follows)) : undefined;
  const chosen = maker && health.mayTry(maker) ? [maker, ...ordered.filter((target) => target !== maker)] : ordered;
  const overflow = route.onOverflow === undefined ? undefined : splitModel(route.onOverflow);
  // Chats are safe to ask twice, but for what a vendor does beside: its tools act on the world.
  if (call.operation === 'chat' && chosen.length > 1 && !usesServerTools(call)) call.hedgeBy(route.hedge);
  const isExtra = overflow && !chosen.some((each) => isSame(each, overflow));
  call.replaceTargets(isExtra ? [...chosen, overflow] : chosen, isExtra ? overflow : undefined);
}

function usesServerTools({ ingress }: LiveCall): boolean {
  return ingress?.needs.some(({ kind }) => kind === 'server tool') ?? false;
}

function isSame(one: LiveCall['targets'][number], other: LiveCall['targets'][number]): boolean {
  return one.provider === other.provider && one.model === other.model;
}

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
