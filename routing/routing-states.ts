import type { RoutingState } from '../contract/call.ts';
import { mergeStates } from '../contract/target-rows.ts';

/** Topic under which the processes of one gateway share target states. */
export const ROUTING_TOPIC = 'core.routing';

/** Combined state of all processes of this gateway. */
export async function gatherStates(gatherer: {
  gather(topic: string): Promise<readonly unknown[]>;
}): Promise<RoutingState> {
  return mergeStates((await gatherer.gather(ROUTING_TOPIC)) as readonly RoutingState[]);
}
