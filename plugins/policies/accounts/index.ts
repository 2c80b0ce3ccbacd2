import { ACCOUNTS, type AccountRecord, definePlugin, type PluginApi, parseDuration } from '../../../core/index.ts';
import { createWriteQueue, isStoreFailure } from '../kit/write-queue.ts';
import { type Books, type ChargeRules, reserve, settle, type WriteQueues } from './charges.ts';
import { accountCommand } from './commands.ts';
import { createLedgerClock, type LedgerClock } from './ledger-clock.ts';
import { accountRoutes } from './routes.ts';

/** How many reservations without a response of the store are released once it is back. */
const MAX_UNCERTAIN = 1000;

/** The ledger on every call: reserve before it is sent, settle its true cost once, release what was never used. */
export default definePlugin({
  name: 'accounts',
  kind: 'policy',
  apiVersion: 1,
  commands: [{ name: 'accounts', summary: 'Credit and show accounts, and set their plans' }],
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
    api.command(accountCommand(api, api.share<AccountRecord>(ACCOUNTS)));
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
    // What waits for the store, and the calls that run, are those of this process: whichever configuration they began with.
    const queues = api.keep(
      'queues',
      (): WriteQueues => ({
        certain: createWriteQueue({ log: api.log, otherwise }),
        uncertain: createWriteQueue({ log: api.log, otherwise, maxWaiting: MAX_UNCERTAIN }),
      }),
      ({ certain, uncertain }) => Promise.all([certain.close(), uncertain.close()]).then(() => undefined),
    );
    const running = api.keep('running', () => new Map<string, number>());
    const held = api.keep('held', () => new Map<string, number>());
    api.figure({
      name: 'held_usd',
      help: 'US dollars that are reserved for the calls that run in this process.',
      read: () => [...held.values()].reduce((sum, amount) => sum + amount, 0) / 1_000_000,
    });
    api.figure({
      name: 'settlements_waiting',
      help: 'Changes of the ledger that wait for the store.',
      read: () => queues.certain.size + queues.uncertain.size,
    });
    const clock = createLedgerClock(api.ledger, api.log);
    const books: Books = { rules, queues, clock, running };
    const sweep = () => sweepBooks(api, clock, running);

    api.hook('reserve', {
      order: 'post',
      async handler(call) {
        try {
          await reserve(api, call, books);
          held.set(call.id, api.estimate(call).cost ?? 0);
        } catch (error) {
          if (!isOpen || !isStoreFailure(error)) throw error;
          api.log.warn({ req_id: call.requestId }, 'the store is down: this call is not metered');
        }
      },
    });
    api.hook('finish', (call, outcome) => {
      held.delete(call.id);
      return settle(api, books, call, outcome);
    });
    api.onReady(() => {
      const sweeper = setInterval(() => void sweep(), parseDuration(config.sweepEvery));
      sweeper.unref();
      api.onClose(() => clearInterval(sweeper));
      void sweep();
    });
  },
});

/**
 * Charges what a crash left behind. A call that this process runs is never among it, however long the process was stopped: of what
 * expires at its time or later, nothing is swept before it has ended.
 */
async function sweepBooks(api: PluginApi, clock: LedgerClock, running: ReadonlyMap<string, number>): Promise<void> {
  try {
    await clock.adjust();
    let before = clock.now();
    for (const expiresAt of running.values()) before = Math.min(before, expiresAt);
    const swept = await api.ledger.sweep(before);
    if (swept > 0) api.log.warn({ swept }, 'settled calls that a crash had left open');
  } catch (error) {
    api.log.warn({ err: error }, 'the sweep failed; the next one tries again');
  }
}
