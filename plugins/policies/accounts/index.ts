import {
  type AccountRecord,
  definePlugin,
  formatUsd,
  type GatewaySettings,
  type Ledger,
  type Log,
  OptionError,
  type PluginApi,
  parseDuration,
  problemsOf,
  type Route,
} from '../../../contract/index.ts';
import { ACCOUNTS, createPlanFinder, LinkedList } from '../kit/index.ts';
import { createWriteQueue, isStoreFailure } from '../kit/write-queue.ts';
import { registerAccounts, showBalance } from './accounts.ts';
import type { ReadBudgets } from './budgets/balance.ts';
import { setUpBudgets } from './budgets/set-up.ts';
import { CALLER_BUDGET } from './budgets/view.ts';
import {
  type Books,
  type ChargeRules,
  RefusalCount,
  type RunningCall,
  reserve,
  settle,
  type WriteQueues,
} from './charges.ts';
import { registerCheaper } from './cheaper.ts';
import { registerPlans } from './plans.ts';

const MONEY = { type: 'string', description: 'US dollars as a decimal string.' };

const BALANCE = {
  type: 'object',
  required: ['user_id', 'plan', 'currency', 'balance', 'held', 'spent', 'credited', 'limits', 'budgets', 'updated_at'],
  properties: {
    user_id: { type: 'string' },
    plan: { type: ['string', 'null'] },
    currency: { const: 'USD' },
    balance: MONEY,
    held: MONEY,
    spent: MONEY,
    credited: MONEY,
    limits: { type: 'object' },
    budgets: { type: 'array', items: CALLER_BUDGET, description: 'All budgets that count the caller’s calls.' },
    updated_at: { type: ['string', 'null'] },
  },
} as const;

/** Routes for callers to read their own account, and no other. */
function accountRoutes(api: PluginApi, permission: string, readBudgets: ReadBudgets): readonly Route[] {
  return [balanceRoute(api, permission, readBudgets)];
}

function balanceRoute(api: PluginApi, permission: string, readBudgets: ReadBudgets): Route {
  const findPlan = createPlanFinder(api);
  return {
    method: 'GET',
    path: '/api/core/balance',
    summary: 'The balance, the plan and its limits',
    auth: ['key', 'token'],
    permission,
    // The account cannot be selected. A caller that tries gets an error instead of its own account.
    query: { type: 'object', additionalProperties: false, properties: {} },
    responses: {
      200: {
        description: 'The account of the caller.',
        schema: BALANCE,
      },
    },
    async handler(ctx) {
      const { principal } = ctx.state;
      const [balance, plan, budgets] = await Promise.all([
        api.books.ledger.balance(principal.account),
        findPlan(principal),
        readBudgets(principal),
      ]);
      const { budgets: _ofPlan, ...limits } = plan?.plan ?? {};
      const { updated_at, ...amounts } = showBalance(balance);
      ctx.set('cache-control', 'no-store');
      ctx.body = {
        user_id: principal.userId,
        plan: plan?.name ?? null,
        currency: 'USD',
        ...amounts,
        limits: {
          ...limits,
          ...(principal.rpm !== undefined && { key_rpm: principal.rpm }),
          ...(principal.tpm !== undefined && { key_tpm: principal.tpm }),
          ...(principal.budget !== undefined && { key_budget_usd: formatUsd(principal.budget) }),
        },
        budgets,
        updated_at,
      };
    },
  };
}

/** Maximum number of unconfirmed reservations that are released after the store recovers. */
const MAX_UNCERTAIN = 1000;

/**
 * Applies the ledger to every call: reserves before it is sent, settles its actual cost once, and releases unused
 * reservations.
 */
export default definePlugin({
  name: 'accounts',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['ledger', 'records', 'operators'],
  commands: [
    { name: 'accounts', summary: 'List, show and credit accounts, and set plans' },
    { name: 'plans', summary: 'List, create and delete plans' },
    { name: 'budgets', summary: 'List, create, delete and raise budgets' },
    { name: 'teams', summary: 'List, create and delete teams' },
  ],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      permission: {
        type: 'string',
        minLength: 1,
        default: 'keys:write',
        description: 'The permission a token needs to read its balance; that of the key routes by default.',
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
      budgetWebhook: {
        type: 'object',
        additionalProperties: false,
        required: ['url', 'secret'],
        description: 'Where it is told that a budget came to its soft limit, or no longer covers calls.',
        properties: {
          url: { type: 'string', format: 'url', description: 'It gets a POST with JSON.' },
          secret: {
            type: 'string',
            minLength: 16,
            secret: true,
            description: 'Signs the body: `x-tollgate-signature` has the HMAC-SHA-256 under it.',
          },
        },
      },
      leastOutput: {
        type: 'integer',
        minimum: 1,
        maximum: 100000,
        default: 256,
        description:
          'Where a caller named no limit of output and what is left does not pay for all that the model may write, the limit is lowered to what it pays for; a call that would get fewer output tokens than these is refused.',
      },
      whenBudgetEnds: {
        type: 'object',
        default: {},
        additionalProperties: { type: 'string', minLength: 3, maxLength: 256 },
        description:
          'By an alias, `provider/model`, the beginning of one before a `*`, or `*` for all: `provider/model` of a cheaper one that chats go to which a balance or budget does not cover.',
      },
      keepCalls: {
        type: 'string',
        format: 'duration',
        default: '90d',
        description: 'How long the record of each call is kept, in whole hours. Sums for reports are kept for good.',
      },
    },
  },
  check: (config, { settings }) => problemsOf(() => assertClosed(config, settings)),
  setup(api, config) {
    const {
      books: { ledger },
    } = api;
    const { billing } = api.settings;
    const clock = createLedgerClock(ledger, api.log);
    // Budgets of all gateways use the store's clock if it has one. Otherwise they use the machine's clock, which may be
    // changed.
    const now = ledger.clock ? clock.now : () => Date.now();
    const budgets = setUpBudgets(api, now, config.budgetWebhook);
    for (const route of accountRoutes(api, config.permission, budgets.read)) api.route(route);
    // Former place of the plans of accounts. It is read until an account's plan is changed.
    api.stores.share<AccountRecord>(ACCOUNTS);
    registerAccounts(api, budgets.readOfAccount);
    api.operators.figure({
      name: 'kept_bytes',
      help: 'Bytes that the accounts keep in the store for which this process wrote something.',
      read: () => api.stores.kept.known.bytes,
    });
    api.operators.figure({
      name: 'kept_dropped',
      help: 'Documents that this process dropped because their account keeps too much.',
      read: () => api.stores.kept.known.dropped,
    });
    // Documents of an account that several users share cannot be separated by user.
    api.stores.personalData({
      name: 'kept_documents',
      count: ({ userId }) => api.stores.kept.count(userId),
      erase: ({ userId }) => api.stores.kept.count(userId, true),
    });
    registerPlans(api);
    if (billing === 'off') return;
    assertClosed(config, api.settings);
    const isOpen = config.onStoreFailure === 'open';
    const rules: ChargeRules = {
      isEnforced: billing === 'enforce',
      allowsUnknownPrice: config.unknownPrice === 'allow',
      longestCallMs: parseDuration(config.longestCall),
      marginMs: parseDuration(config.holdMargin),
      leastOutput: config.leastOutput,
    };
    const otherwise = 'the sweeper charges what was reserved';
    // Queued changes and running calls belong to the process, and survive a reload.
    const queues = api.keep(
      'queues',
      (): WriteQueues => ({
        certain: createWriteQueue({ log: api.log, otherwise }),
        uncertain: createWriteQueue({ log: api.log, otherwise, maxWaiting: MAX_UNCERTAIN }),
      }),
      ({ certain, uncertain }) => Promise.all([certain.close(), uncertain.close()]).then(() => undefined),
    );
    const running = api.keep('running', () => new LinkedList<RunningCall>());
    api.operators.figure({
      name: 'held_usd',
      help: 'US dollars that are reserved for the calls that run in this process.',
      read: () => Number(formatUsd(running.toArray().reduce((sum, { held }) => sum + held, 0))),
    });
    api.operators.figure({
      name: 'settlements_waiting',
      help: 'Changes of the ledger that wait for the store.',
      read: () => queues.certain.size + queues.uncertain.size,
    });
    const refusals = api.keep('refusals', () => new RefusalCount());
    const books: Books = { ledger, rules, queues, clock, now, running, budgets: budgets.calls, refusals };
    const sweep = () => sweepBooks(api, clock, running);
    const forget = createForgetting(api, parseDuration(config.keepCalls));

    registerCheaper(api, books, config.whenBudgetEnds);
    api.hook('reserve', {
      order: 'post',
      async handler(call) {
        try {
          await reserve(api, call, books);
        } catch (error) {
          if (!isOpen || !isStoreFailure(error)) throw error;
          api.log.warn({ request_id: call.requestId }, 'the store is down: this call is not metered');
        }
      },
    });
    api.hook('finish', (call, outcome) => settle(books, call, outcome));
    api.onReady(() => {
      const tidy = (): void => void sweep().then(forget);
      const sweeper = setInterval(tidy, parseDuration(config.sweepEvery));
      sweeper.unref();
      api.onClose(() => clearInterval(sweeper));
      tidy();
    });
  },
});

/** Throws an {@link OptionError} if the balance is enforced but may be unknown. */
function assertClosed({ onStoreFailure }: { readonly onStoreFailure: string }, { billing }: GatewaySettings): void {
  if (onStoreFailure === 'open' && billing === 'enforce')
    throw new OptionError(
      '/onStoreFailure',
      'is open, which lets calls through whose balance was not checked, and "billing: enforce" forbids that',
      'Write closed, or billing: track.',
    );
}

/**
 * Charges reservations that a crash left open. Never charges a running call of this process, even if the process was
 * paused for long. Reservations that expire at the same time as a running call or later wait for its end.
 */
async function sweepBooks(api: PluginApi, clock: LedgerClock, running: LinkedList<RunningCall>): Promise<void> {
  try {
    await clock.adjust();
    let before = clock.now();
    for (const { expiresAt } of running.toArray()) before = Math.min(before, expiresAt);
    const swept = await api.books.ledger.sweep(before);
    if (swept > 0) api.log.warn({ swept }, 'settled calls that a crash had left open');
  } catch (error) {
    api.log.warn({ err: error }, 'the sweep failed; the next one tries again');
  }
}

const HOUR_MS = 3_600_000;

/** Creates a function that deletes call records older than `keepMs`, once an hour: the store deletes whole hours. */
function createForgetting({ books: { ledger }, log }: PluginApi, keepMs: number): () => Promise<void> {
  let next = 0;
  return async () => {
    const now = Date.now();
    if (now < next) return;
    try {
      await ledger.forgetCalls(now - keepMs);
      next = now + HOUR_MS;
    } catch (error) {
      log.warn({ err: error }, 'records of old calls could not be deleted; the next sweep tries again');
    }
  };
}

/** Clock for the expiry of reservations, in Unix milliseconds: that of the store if it has one. */
interface LedgerClock {
  now(): number;
  /** Synchronizes with the store's clock. Rejects if the store does not respond. */
  adjust(): Promise<void>;
}

/** Difference between the machine's and the store's clock that causes a warning. */
const TOLD_MS = 30_000;

/**
 * Creates a clock that ignores changes of the machine's clock: otherwise a running call might look abandoned. The
 * machine's clock counts only at the start, and for stores without a clock.
 */
export function createLedgerClock(ledger: Pick<Ledger, 'clock'>, log: Log): LedgerClock {
  let offsetMs = Date.now() - performance.now();
  let isTold = false;
  const now = (): number => Math.round(performance.now() + offsetMs);
  return {
    now,
    async adjust() {
      if (!ledger.clock) return;
      const startedMs = performance.now();
      const storeMs = await ledger.clock();
      // The store read its clock between the request and the response.
      offsetMs = storeMs - (startedMs + performance.now()) / 2;
      const aheadMs = Date.now() - now();
      if (!isTold && Math.abs(aheadMs) > TOLD_MS)
        log.warn(
          { ahead_s: Math.round(aheadMs / 1000) },
          'the clock of this machine differs from that of the store: set it right (NTP), or limits, expiries and days of usage are wrong by as much',
        );
      isTold = Math.abs(aheadMs) > TOLD_MS;
    },
  };
}
