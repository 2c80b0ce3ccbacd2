import type { GatewayView, PluginApi, Principal } from '../../../contract/index.ts';

/** Models that a caller may call, and those that something stops. */
export interface CallableModels {
  /** Ids and aliases, at most {@link MAX_SHOWN}. */
  readonly callable: readonly string[];
  /** Total number of callable ids and aliases. */
  readonly count: number;
  readonly stopped: readonly { readonly id: string; readonly problem: string }[];
}

/** Finds the callable models of a caller, by the checks that its calls take. */
export type FindCallable = (principal: Principal) => Promise<CallableModels>;

/** Maximum number of models in a response. */
export const MAX_SHOWN = 100;

/** Finders by the gateway that instances share. */
const FINDERS = new WeakMap<GatewayView, FindCallable>();

interface CallableApi {
  readonly operators: Pick<PluginApi['operators'], 'gateway'>;
}

/** Offers the finder to other instances of the gateway: budgets and plans belong to one of them. */
export function offerCallable({ operators: { gateway } }: CallableApi, find: FindCallable): void {
  FINDERS.set(gateway, find);
}

/** Returns the callable models of a caller; undefined if no instance knows plans and budgets. */
export async function findCallable(
  { operators: { gateway } }: CallableApi,
  principal: Principal,
): Promise<CallableModels | undefined> {
  return FINDERS.get(gateway)?.(principal);
}

/** Response schema of callable models. */
export const CALLABLE_MODELS = {
  type: 'object',
  description: `Callable models and those that something stops, at most ${MAX_SHOWN} of each.`,
  required: ['callable', 'count', 'stopped'],
  properties: {
    callable: { type: 'array', items: { type: 'string' } },
    count: { type: 'integer' },
    stopped: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'problem'],
        properties: { id: { type: 'string' }, problem: { type: 'string', description: 'What stops it, and the fix.' } },
      },
    },
  },
} as const;

/** Formats callable models for a terminal, one per line. */
export function formatCallable({ callable, count, stopped }: CallableModels): readonly string[] {
  const more = count - callable.length;
  return [
    `${callable.join(', ') || 'none'}${more > 0 ? ` and ${more} more` : ''}`,
    ...stopped.map(({ id, problem }) => `not ${id}: ${problem}`),
  ];
}
