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
import { offerCallable } from '../kit/callable-models.ts';
import { ACCOUNTS, createPlanFinder, LinkedList } from '../kit/index.ts';
import { createWriteQueue, isStoreFailure } from '../kit/write-queue.ts';
import { registerAccounts, showBalance } from './accounts.ts';
import type { ReadBudgets } from './budgets/balance.ts';
import { setUpBudgets } from './budgets/set-up.ts';
import { BudgetShares } from './budgets/shares.ts';
import { CALLER_BUDGET } from './budgets/view.ts';
import { createFindCallable } from './callable.ts';
import { registerCheaper } from './cheaper.ts';
import type { CallHold } from './holds/call-hold.ts';
import { CallMoney, type ChargeRules, type LedgerContext, RefusalCount, type WriteQueues } from './holds/money.ts';
import { registerPersonalData } from './personal-data.ts';
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
    budgets: { type: 'array', items: CALLER_BUDGET, description: 'Budgets that count the caller’s calls.' },
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
    summary: 'Show your balance, plan and limits',
    auth: ['key', 'token'],
    permission,
    // The account cannot be selected. A caller that tries gets an error instead of its own account.
    query: { type: 'object', additionalProperties: false, properties: {} },
    responses: {
      200: {
        description: 'Account of the caller.',
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
        description: 'Permission that a token needs to read its balance. Default: the permission of the key routes.',
      },
      unknownPrice: {
        enum: ['refuse', 'allow'],
        default: 'refuse',
        description:
          'Calls to models without a known price, with `billing: enforce` or for a key with a budget. Allowed calls are metered without a cost.',
      },
      onStoreFailure: {
        enum: ['closed', 'open'],
        default: 'closed',
        description:
          'Behaviour while the store is unavailable: `closed` returns 503, `open` allows unmetered calls (not with `billing: enforce`).',
      },
      longestCall: {
        type: 'string',
        format: 'duration',
        default: '10m',
        description:
          'Maximum duration of a call at one provider; at least every `timeouts.total`. A reservation lasts this long per target of a call.',
      },
      holdMargin: {
        type: 'string',
        format: 'duration',
        default: '5m',
        description:
          'Additional lifetime of a reservation, after which the sweeper charges it because its gateway has crashed.',
      },
      sweepEvery: {
        type: 'string',
        format: 'duration',
        default: '30s',
        description: 'Interval of the search for reservations that a crash left behind.',
      },
      budgetWebhook: {
        type: 'object',
        additionalProperties: false,
        required: ['url', 'secret'],
        description: 'Webhook for budgets that reach their soft limit or no longer cover calls.',
        properties: {
          url: { type: 'string', format: 'url', description: 'URL that receives a POST with JSON.' },
          secret: {
            type: 'string',
            minLength: 16,
            secret: true,
            description: 'Key of the HMAC-SHA-256 of the body in `x-tollgate-signature`.',
          },
        },
      },
      leastOutput: {
        type: 'integer',
        minimum: 1,
        maximum: 100000,
        default: 256,
        description:
          'Minimum output tokens if the remaining money limits a call that sets no limit itself. Calls that would get fewer tokens are rejected.',
      },
      whenBudgetEnds: {
        type: 'object',
        default: {},
        additionalProperties: { type: 'string', minLength: 3, maxLength: 256 },
        description:
          'Cheaper models for chats that a balance or budget does not cover: `provider/model` by an alias, a `provider/model`, a prefix before a `*`, or `*` for all.',
      },
      keepCalls: {
        type: 'string',
        format: 'duration',
        default: '90d',
        description: 'Retention of call records, in whole hours. Sums for reports are never deleted.',
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
    const { book, findPlan } = budgets;
    const find = createFindCallable({ api, findPlan, book, now, billing });
    offerCallable(api, find);
    registerAccounts(api, budgets.readOfAccount, find);
    api.operators.gauge({
      name: 'kept_bytes',
      help: 'Bytes that the accounts keep in the store for which this process wrote something.',
      read: () => api.stores.stored.known.bytes,
    });
    api.operators.gauge({
      name: 'kept_dropped',
      help: 'Documents that this process dropped because their account keeps too much.',
      read: () => api.stores.stored.known.dropped,
    });
    registerPersonalData(api);
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
    const running = api.keep('running', () => new LinkedList<CallHold>());
    api.operators.gauge({
      name: 'held_usd',
      help: 'US dollars that are reserved for the calls that run in this process.',
      read: () => Number(formatUsd(running.toArray().reduce((sum, { held }) => sum + held, 0))),
    });
    api.operators.gauge({
      name: 'settlements_waiting',
      help: 'Changes of the ledger that wait for the store.',
      read: () => queues.certain.size + queues.uncertain.size,
    });
    const refusals = api.keep('refusals', () => new RefusalCount());
    const shares = api.keep(
      'budget-shares',
      () => new BudgetShares(ledger, api.log),
      (stored) => stored.close(),
    );
    const context: LedgerContext = {
      ledger,
      rules,
      queues,
      clock,
      now,
      running,
      budgets: budgets.calls,
      shares,
      refusals,
    };
    const sweep = () => sweepBooks(api, clock, running);
    const forget = createForgetting(api, parseDuration(config.keepCalls));

    registerCheaper(api, context, config.whenBudgetEnds);
    const money = new CallMoney(api, context);
    api.hook('reserve', {
      order: 'post',
      async handler(call) {
        try {
          await money.hold(call);
        } catch (error) {
          if (!isOpen || !isStoreFailure(error)) throw error;
          api.log.warn({ request_id: call.requestId }, 'the store is down: this call is not metered');
        }
      },
    });
    api.hook('finish', (call, outcome) => money.end(call, outcome));
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
      'is open, which allows calls with an unchecked balance. "billing: enforce" forbids that',
      'Write closed, or billing: track.',
    );
}

/**
 * Charges reservations that a crash left open. Never charges a running call of this process, even if the process was
 * paused for long. Reservations that expire at the same time as a running call or later wait for its end.
 */
async function sweepBooks(api: PluginApi, clock: LedgerClock, running: LinkedList<CallHold>): Promise<void> {
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
const REPORTED_MS = 30_000;

/**
 * Creates a clock that ignores changes of the machine's clock: otherwise a running call might look abandoned. The
 * machine's clock counts only at the start, and for stores without a clock.
 */
export function createLedgerClock(ledger: Pick<Ledger, 'clock'>, log: Log): LedgerClock {
  let offsetMs = Date.now() - performance.now();
  let isReported = false;
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
      if (!isReported && Math.abs(aheadMs) > REPORTED_MS)
        log.warn(
          { ahead_s: Math.round(aheadMs / 1000) },
          'the clocks of this machine and the store differ: synchronize them (NTP), or limits, expiries and usage days are wrong',
        );
      isReported = Math.abs(aheadMs) > REPORTED_MS;
    },
  };
}
