import { definePlugin, type NamedPlan, parseDuration } from '../../../core/index.ts';
import { createPlanFinder } from '../kit/index.ts';
import { isStoreFailure } from '../kit/write-queue.ts';
import { createLimiter } from './limiter.ts';

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
    const findPlan = createPlanFinder(api);
    const limiter = createLimiter(api, { onStoreFailure, leaseMs: parseDuration(config.leaseFor) });

    /** Without a plan, when the store cannot say which one: then the limits of the key alone count. */
    const planOrNone = async (found: Promise<NamedPlan | undefined>): Promise<NamedPlan | undefined> => {
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
        const found = findPlan(call.principal);
        if (!(found instanceof Promise)) return limiter.admit(call, found);
        return planOrNone(found).then((plan) => limiter.admit(call, plan));
      },
    });
    api.hook('reserve', { order: 'pre', handler: limiter.reserve });
    // A fallback, or a target that a hook chose, counts at its own provider when it is its turn.
    // Plans may come at run time, so this is not left out where those of the file limit no provider.
    api.hook('send', (call, _request, { provider }) => limiter.admitAt(call, provider)?.then(() => undefined));
    api.hook('finish', limiter.settle);
    api.onReady(() => api.onClose(limiter.start()));
    api.onClose(limiter.close);
  },
});
