/** Node that charges calls on a store, with a clock set by the test: ledger and budgets without a gateway. */

import type {
  BudgetRule,
  BudgetState,
  Call,
  Outcome,
  PluginApi,
  Principal,
  Store,
  Target,
} from '../../../../../contract/index.ts';
import { LinkedList } from '../../../../../contract/linked-list.ts';
import { createRecordBook } from '../../../../../core/plugins/instance-store.ts';
import { createAccountRaises } from '../../../../../plugins/policies/accounts/budgets/account-raises.ts';
import { SHARED } from '../../../../../plugins/policies/accounts/budgets/budget-table.ts';
import { createCounter, scopeOf } from '../../../../../plugins/policies/accounts/budgets/budget-window.ts';
import { createBudgetBook, createCallBudgets } from '../../../../../plugins/policies/accounts/budgets/find-budgets.ts';
import { createNotices, type Notice } from '../../../../../plugins/policies/accounts/budgets/notices.ts';
import { createOpenings } from '../../../../../plugins/policies/accounts/budgets/openings.ts';
import { type BudgetRecords, createBudgetRecords } from '../../../../../plugins/policies/accounts/budgets/records.ts';
import { BudgetShares } from '../../../../../plugins/policies/accounts/budgets/shares.ts';
import { CallMoney, type LedgerContext, RefusalCount } from '../../../../../plugins/policies/accounts/holds/money.ts';
import { createWriteQueue } from '../../../../../plugins/policies/kit/write-queue.ts';
import { createSilentLog } from '../../../../support/log.ts';

export interface BudgetNode {
  /**
   * Reserves the estimate of a call and returns a function that settles it at its cost. Rejects if the call is refused.
   */
  call(id: string, estimate: number, by?: Partial<CallBy>): Promise<(cost: number, target?: Target) => Promise<void>>;
  readonly notices: readonly Notice[];
  /** Budgets of the store. */
  readonly records: BudgetRecords;
  /** Reads the budgets of the store again. */
  refresh(): Promise<void>;
  /** Adds the opening amounts of budgets created inside their window. */
  updateOpenings(): Promise<void>;
  /** Returns leased shares of budgets. */
  close(): Promise<void>;
  /** Returns the spent and held amount of a shared budget. */
  spent(rule: BudgetRule): Promise<BudgetState>;
}

export interface CallBy {
  readonly principal: Principal;
  readonly tags: readonly string[];
  readonly targets: readonly Target[];
  /** Collects the headers for the caller. */
  readonly headers: Map<string, string>;
}

const TARGET: Target = { provider: 'p', model: 'm' };

export function createBudgetNode(store: Store, budgets: readonly BudgetRule[], now: () => number): BudgetNode {
  const log = createSilentLog();
  const reported: Notice[] = [];
  const settings = { billing: 'track', plans: {}, budgets, defaultPlan: undefined };
  const bookApi = {
    settings,
    books: { records: createRecordBook(store) },
    operators: { audit: async () => {} },
  } as unknown as PluginApi;
  const records = createBudgetRecords(bookApi);
  const raises = createAccountRaises(bookApi);
  const parts = { findPlan: () => undefined, firstKeyOf: async (key: string) => key };
  const openings = createOpenings({ ledger: store.ledger, now, log, ...parts });
  const book = createBudgetBook({ records, raises, ...parts, openings });
  const notices = createNotices({ sets: store.sets, log, send: (notice) => void reported.push(notice) });
  const queue = createWriteQueue({ log, otherwise: 'it is lost' });
  const shares = new BudgetShares(store.ledger, log);
  const books: LedgerContext = {
    rules: { isEnforced: false, allowsUnknownPrice: false, longestCallMs: 600_000, marginMs: 60_000, leastOutput: 256 },
    ledger: store.ledger,
    queues: { certain: queue, uncertain: queue },
    clock: { now: () => Date.now() },
    now,
    running: new LinkedList(),
    refusals: new RefusalCount(),
    shares,
    budgets: createCallBudgets({ book, notices, ledger: store.ledger, now }),
  };
  return {
    notices: reported,
    records,
    refresh: book.refresh,
    close: () => shares.close(),
    updateOpenings: () => book.updateOpenings(now()),
    async spent(rule) {
      const { id } = createCounter({ prefix: SHARED, rule, scope: scopeOf(rule) })(now());
      const [state] = await store.ledger.budgets([id]);
      return { spent: state?.spent ?? 0, held: state?.held ?? 0 };
    },
    async call(id, estimate, { principal, tags = [], targets = [TARGET], headers = new Map() } = {}) {
      const api = { books: { estimate: () => ({ units: {}, cost: estimate }) } } as unknown as PluginApi;
      const call = {
        ...{
          id,
          requestId: id,
          trace: { traceId: '0af7651916cd43dd8448eb211c80319c' },
          operation: 'chat',
          request: { model: 'm' },
          stream: false,
          startedAt: 1,
          skip: new Set(),
        },
        principal: principal ?? { credential: 'key', userId: 'u', account: 'a', keyId: 'k' },
        ...{ tags, targets, headers, state: new Map() },
      } as unknown as Call;
      const money = new CallMoney(api, books);
      await money.hold(call);
      return async (cost, target = targets[0]) => {
        const outcome = {
          status: 'ok',
          sent: true,
          cost,
          units: {},
          target,
          attempts: [],
          durationMs: 1,
          estimated: false,
        };
        await money.end(call, outcome as unknown as Outcome);
      };
    },
  };
}
