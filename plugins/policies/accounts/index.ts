import { LRUCache } from 'lru-cache';
import { definePlugin, type PluginApi, parseDuration } from '../../../core/index.ts';
import { isStoreFailure } from '../kit/store-failure.ts';
import { createWriteQueue } from '../kit/write-queue.ts';
import { beginReservation, type ChargeRules, isUnlimited, reserve, settle, type WriteQueues } from './charges.ts';
import { accountCommand } from './commands.ts';
import { accountRoutes } from './routes.ts';

/** How many reservations without a response of the store are released once it is back. */
const MAX_UNCERTAIN = 1000;

const MAX_REFUSED = 10_000;
const REFUSED_MS = 1000;

/** The ledger on every call: reserve before it is sent, settle its true cost once, release what was never used. */
export default definePlugin({
  name: 'accounts',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      permission: {
        type: 'string',
        minLength: 1,
        default: 'keys:write',
        description: 'The permission a token needs to read its balance and usage; that of the key routes by default.',
      },
      unknownPrice: {
        enum: ['refuse', 'allow'],
        default: 'refuse',
        description:
          'With `billing: enforce`, or for a key with a budget: whether models without a known price may be called. They are metered without a cost.',
      },
      onStoreFailure: {
        enum: ['closed', 'open'],
        default: 'closed',
        description:
          'While the store is down: `closed` answers 503, `open` lets calls through unmetered (`billing: enforce` forbids it).',
      },
      longestCall: {
        type: 'string',
        format: 'duration',
        default: '10m',
        description:
          'The longest that a call may take at one provider; no shorter than any `timeouts.total`. A reservation lives that long for each target of a call.',
      },
      holdMargin: {
        type: 'string',
        format: 'duration',
        default: '5m',
        description:
          'How much longer a reservation lives before the sweeper considers its gateway dead and charges it.',
      },
      sweepEvery: {
        type: 'string',
        format: 'duration',
        default: '30s',
        description: 'How often reservations that a crash left behind are looked for.',
      },
    },
  },
  setup(api, config) {
    const { billing } = api.settings;
    for (const route of accountRoutes(api, config.permission)) api.route(route);
    api.command(accountCommand(api));
    if (billing === 'off') return;
    const isOpen = config.onStoreFailure === 'open';
    if (isOpen && billing === 'enforce')
      throw new TypeError(
        'onStoreFailure: open lets calls through whose balance was not checked, which "billing: enforce" forbids; write closed, or billing: track',
      );
    const rules: ChargeRules = {
      isEnforced: billing === 'enforce',
      allowsUnknownPrice: config.unknownPrice === 'allow',
      longestCallMs: parseDuration(config.longestCall),
      marginMs: parseDuration(config.holdMargin),
    };
    const otherwise = 'the sweeper charges what was reserved';
    const queues: WriteQueues = {
      certain: createWriteQueue({ log: api.log, otherwise }),
      uncertain: createWriteQueue({ log: api.log, otherwise, maxWaiting: MAX_UNCERTAIN }),
    };

    /** Keys and accounts that a limit refused a moment ago, and will refuse again. */
    const refused = new LRUCache<string, true>({ max: MAX_REFUSED });
    // Beside the limits, so that both are one round trip; not for callers who are being refused, whose flood would be
    // written to the ledger.
    api.hook('admit', {
      order: 'pre',
      handler(call) {
        if (isUnlimited(call, rules) && !refused.has(call.principal.keyId ?? call.principal.account))
          beginReservation(api, call, rules);
      },
    });
    api.hook('admit', {
      order: 'post',
      handler(call) {
        const reserved = reserve(api, call, rules);
        if (!isOpen) return reserved;
        return reserved.catch((error: unknown) => {
          if (!isStoreFailure(error)) throw error;
          api.log.warn({ req_id: call.requestId }, 'the store is down: this call is not metered');
        });
      },
    });
    api.hook('finish', (call, outcome) => {
      const { error } = outcome;
      if (error?.code === 'rate_limited')
        refused.set(call.principal.keyId ?? call.principal.account, true, { ttl: error.retryAfterMs ?? REFUSED_MS });
      return settle(api, queues, call, outcome);
    });
    api.onReady(() => {
      const sweeper = setInterval(() => void sweep(api), parseDuration(config.sweepEvery));
      sweeper.unref();
      api.onClose(() => clearInterval(sweeper));
      void sweep(api);
    });
    api.onClose(() => Promise.all([queues.certain.close(), queues.uncertain.close()]).then(() => undefined));
  },
});

async function sweep(api: PluginApi): Promise<void> {
  try {
    const swept = await api.ledger.sweep(Date.now());
    if (swept > 0) api.log.warn({ swept }, 'settled calls that a crash had left open');
  } catch (error) {
    api.log.warn({ err: error }, 'the sweep failed; the next one tries again');
  }
}
