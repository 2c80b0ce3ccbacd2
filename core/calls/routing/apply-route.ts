import type { CallDeps } from '../call-deps.ts';
import type { LiveCall } from '../live-call.ts';
import { estimateAt } from '../meter.ts';
import { splitModel } from '../targets.ts';
import { chooseTargets } from './choose-targets.ts';
import { stickyKeyOf } from './sticky-targets.ts';

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
