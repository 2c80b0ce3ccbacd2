import { type Call, createLocalCounters, definePlugin, parseDuration } from '../../../core/index.ts';
import { createOutbox } from '../kit/outbox.ts';
import { createPlanOf, type NamedPlan } from '../kit/plan-of.ts';
import { isStoreFailure } from '../kit/store-failure.ts';
import { createLeases } from './leases.ts';
import { type Limits, limitsOf, limitsOfProvider } from './limits-of.ts';
import { giveBack, type Taken, take } from './take.ts';

/** What a call counts against, as it goes on. */
interface Counted {
  readonly plan: NamedPlan | undefined;
  /** Providers whose limits within the plan were counted. */
  readonly providers: string[];
  readonly taken: Taken[];
}

const COUNTED = Symbol('limits.counted');

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
      leaseFor: {
        type: 'string',
        format: 'duration',
        default: '1m',
        description:
          'How long a call of a gateway that died still counts as one at once. Living gateways renew theirs three times in it.',
      },
    },
  },
  setup(api, config) {
    const { onStoreFailure } = config;
    const leaseMs = parseDuration(config.leaseFor);
    const planOf = createPlanOf(api);
    const local = createLocalCounters();
    const leases = createLeases(leaseMs);
    const outbox = createOutbox({ log: api.log, otherwise: 'limits come right by their time' });

    /** Counts a call against limits where the store, or what stands in for it, says so. */
    const count = async (call: Call, counted: Counted, limits: Limits): Promise<void> => {
      let taken: Taken;
      try {
        taken = await take(api.stores.counters, call, limits, leaseMs);
      } catch (error) {
        if (!isStoreFailure(error) || onStoreFailure === 'closed') throw error;
        if (onStoreFailure === 'open') return;
        taken = await take(local, call, limits, leaseMs);
      }
      counted.taken.push(taken);
      leases.hold(call.id, taken);
    };
    const countAny = (call: Call, counted: Counted, limits: Limits): Promise<void> | undefined =>
      limits.windows.length > 0 || limits.places.length > 0 ? count(call, counted, limits) : undefined;

    const admit = (call: Call, plan: NamedPlan | undefined): Promise<void> | undefined => {
      const [target] = call.targets;
      const counted: Counted = { plan, providers: target ? [target.provider] : [], taken: [] };
      call.state.set(COUNTED, counted);
      return countAny(call, counted, limitsOf(call, plan));
    };

    /** Without a plan, when the store cannot say which one: then the limits of the key alone count. */
    const tolerate = async (found: Promise<NamedPlan | undefined>): Promise<NamedPlan | undefined> => {
      try {
        return await found;
      } catch (error) {
        if (!isStoreFailure(error) || onStoreFailure === 'closed') throw error;
        return undefined;
      }
    };

    api.hook('admit', {
      order: 'pre',
      handler(call) {
        const found = planOf(call.principal);
        return found instanceof Promise ? tolerate(found).then((plan) => admit(call, plan)) : admit(call, found);
      },
    });

    // A fallback, or a target that a hook chose, counts at its own provider when it is its turn.
    if (Object.values(api.settings.plans).some(({ providers }) => providers))
      api.hook('send', async (call, _request, { provider }) => {
        const counted = call.state.get(COUNTED) as Counted | undefined;
        if (!counted?.plan || counted.providers.includes(provider)) return undefined;
        counted.providers.push(provider);
        await countAny(call, counted, limitsOfProvider(call, counted.plan, provider));
        return undefined;
      });

    api.hook('finish', (call, outcome) => {
      const counted = call.state.get(COUNTED) as Counted | undefined;
      if (!counted || counted.taken.length === 0) return undefined;
      leases.drop(call.id);
      return giveBack(outbox, call.id, counted.taken, outcome, leaseMs);
    });
    api.onReady(() => api.onClose(leases.start()));
    api.onClose(() => outbox.close());
  },
});
