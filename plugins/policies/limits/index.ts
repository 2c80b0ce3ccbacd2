import { definePlugin, parseDuration, problemsOf } from '../../../contract/index.ts';
import { CallLimits } from '../accounts/holds/limits.ts';
import { assertKnownProviders, checkProviderLimits, PROVIDER_LIMITS } from '../accounts/holds/provider-limits.ts';

/** Limits requests and tokens per minute and concurrent calls: by key, by plan, and by provider within the plan. */
export default definePlugin({
  name: 'limits',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['records', 'operators'],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      onStoreFailure: {
        enum: ['degrade', 'closed', 'open'],
        default: 'degrade',
        description:
          'Behaviour while the store is unavailable: `degrade` counts in each process, `closed` returns 503, `open` applies no limits.',
      },
      leaseFor: {
        type: 'string',
        format: 'duration',
        default: '1m',
        description:
          'Time for which a call of a crashed gateway still counts as concurrent. Running gateways renew it three times within this time.',
      },
      providers: PROVIDER_LIMITS,
    },
  },
  check: ({ providers }) => problemsOf(() => checkProviderLimits(providers)),
  setup(api, { onStoreFailure, leaseFor, providers = {} }) {
    const limits = new CallLimits(api, { onStoreFailure, leaseMs: parseDuration(leaseFor), providers });
    api.hook('arrive', (principal) => limits.arrive(principal));
    api.hook('admit', { order: 'pre', handler: (call) => limits.hold(call, 'requests') });
    api.hook('reserve', { order: 'pre', handler: (call) => limits.hold(call, 'tokens') });
    // Fallbacks, and targets that a hook chose, count at their own provider when they are tried. Always registered, because
    // plans may be added at run time.
    api.hook('send', { order: 'post', handler: (call, _request, target) => limits.holdAt(call, target.provider) });
    api.hook('finish', (call, outcome) => limits.end(call, outcome));
    api.onReady(() => api.onClose(limits.start()));
    api.onClose(() => limits.close());
    if (Object.keys(providers).length === 0) return;
    // The next attempt uses another target or key.
    api.hook('attempt', (call, { target, failure }) => (failure ? limits.endAt(call, target.provider) : undefined));
    api.onRegistered(() => assertKnownProviders(api, Object.keys(providers)));
    api.operators.gauge({
      name: 'provider_limits_waiting',
      help: 'Calls that wait for their turn at a provider whose limit over all callers is reached.',
      read: () => limits.waiting,
    });
  },
});
