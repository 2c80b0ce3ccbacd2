import {
  type Call,
  type ChatRequest,
  type Counters,
  createLocalCounters,
  definePlugin,
  estimateInputTokens,
  GatewayError,
  isGatewayError,
  type Outcome,
  type PluginApi,
} from '../../../core/index.ts';
import { createPlanOf } from '../parts/plan-of.ts';
import { type Limit, limitsOf, type Place } from './limits-of.ts';

/** What a call took and gives back or corrects at its end. */
interface Taken {
  readonly counters: Counters;
  readonly tokens: readonly Limit[];
  readonly leases: readonly Place[];
  readonly estimate: number;
}

const TAKEN = Symbol('limits.taken');

/** A lease that nobody gave back (a crash) ends by itself after the longest call. */
const LEASE_MS = 900_000;

/** Requests and tokens a minute and calls at once, by key, by plan, and by provider within the plan. */
export default definePlugin({
  name: 'limits',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      onStoreFailure: {
        enum: ['degrade', 'closed', 'open'],
        default: 'degrade',
        description:
          'While the store is down: `degrade` counts in this process alone, `closed` answers 503, `open` does not limit.',
      },
    },
  },
  setup(api, config) {
    const planOf = createPlanOf(api);
    const local = createLocalCounters();
    api.hook('admit', {
      order: 'pre',
      async handler(call) {
        const plan = await orUndefined(planOf(call.principal), config.onStoreFailure !== 'closed');
        const limits = limitsOf(call, plan);
        if (limits.windows.length === 0 && limits.places.length === 0) return;
        try {
          await take(api.stores.counters, call, limits);
        } catch (error) {
          if (!isGatewayError(error) || error.code !== 'store_unavailable' || config.onStoreFailure === 'closed')
            throw error;
          if (config.onStoreFailure === 'degrade') await take(local, call, limits);
        }
      },
    });
    api.hook('finish', (call, outcome) => giveBack(call, outcome, api));
  },
});

async function orUndefined<T>(value: T | Promise<T>, tolerates: boolean): Promise<T | undefined> {
  try {
    return await value;
  } catch (error) {
    if (tolerates && isGatewayError(error) && error.code === 'store_unavailable') return undefined;
    throw error;
  }
}

async function take(counters: Counters, call: Call, { windows, places }: ReturnType<typeof limitsOf>): Promise<void> {
  const now = Date.now();
  const held: Place[] = [];
  try {
    for (const place of places) {
      if (!(await counters.lease(place.key, call.id, place.limit, LEASE_MS, now)))
        throw refusal(place.label, place.limit, 1000, {});
      held.push(place);
    }
    const estimate = estimateTokens(call);
    const taking = windows.map(({ key, limit, unit }) => ({
      key,
      limit,
      windowMs: MINUTE_MS,
      amount: unit === 'tokens' ? Math.min(estimate, limit) : 1,
    }));
    if (taking.length > 0) {
      const { refused, states } = await counters.take(taking, now);
      const limit = refused === undefined ? undefined : windows[refused];
      const state = refused === undefined ? undefined : states[refused];
      if (limit && state) throw refusal(limit.label, limit.limit, state.resetMs, rateHeaders(limit, state));
    }
    call.state.set(TAKEN, {
      counters,
      tokens: windows.filter(({ unit }) => unit === 'tokens'),
      leases: held,
      estimate,
    } satisfies Taken);
  } catch (error) {
    await Promise.allSettled(held.map(({ key }) => counters.release(key, call.id)));
    throw error;
  }
}

const MINUTE_MS = 60_000;

function estimateTokens(call: Call): number {
  if (call.operation === 'speech') return 0;
  const { request } = call as Call<'chat' | 'embeddings'>;
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  return estimateInputTokens(request) + (max_completion_tokens ?? max_tokens ?? 0);
}

function refusal(label: string, limit: number, retryAfterMs: number, headers: Record<string, string>): GatewayError {
  return new GatewayError(
    'rate_limited',
    `The limit of ${limit} ${label} is reached. Try again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s.`,
    { retryAfterMs, headers },
  );
}

function rateHeaders(
  { limit, unit }: Limit,
  state: { readonly remaining: number; readonly resetMs: number },
): Record<string, string> {
  return {
    [`x-ratelimit-limit-${unit}`]: String(limit),
    [`x-ratelimit-remaining-${unit}`]: String(Math.max(0, state.remaining)),
    [`x-ratelimit-reset-${unit}`]: `${Math.ceil(state.resetMs / 1000)}s`,
  };
}

/** Ends the leases, and corrects the token windows from the estimate to what was used. */
async function giveBack(call: Call, outcome: Outcome, api: Pick<PluginApi, 'log'>): Promise<void> {
  const taken = call.state.get(TAKEN) as Taken | undefined;
  if (!taken) return;
  const { counters, tokens, leases, estimate } = taken;
  const used = outcome.usage
    ? outcome.usage.prompt_tokens + outcome.usage.completion_tokens
    : outcome.sent
      ? undefined
      : 0;
  const now = Date.now();
  const work = leases.map(({ key }) => counters.release(key, call.id));
  if (used !== undefined) {
    for (const { key, limit } of tokens) {
      const delta = used - Math.min(estimate, limit);
      if (delta !== 0) work.push(counters.adjust(key, MINUTE_MS, delta, now));
    }
  }
  const failed = (await Promise.allSettled(work)).some(({ status }) => status === 'rejected');
  if (failed) api.log.warn({ req_id: call.requestId }, 'the store was away: limits of this call end by their time');
}
