/** Node that charges calls on a store, with a clock set by the test: ledger and budgets without a gateway. */

import type { BudgetRule, Call, Outcome, PluginApi, Principal, Store, Target } from '../../../../../contract/index.ts';
import { LinkedList } from '../../../../../contract/linked-list.ts';
import { createRecordBook } from '../../../../../core/plugins/instance-store.ts';
import { createAccountRaises } from '../../../../../plugins/policies/accounts/budgets/account-raises.ts';
import { createBudgetBook, createCallBudgets } from '../../../../../plugins/policies/accounts/budgets/find-budgets.ts';
import { createNotices, type Notice } from '../../../../../plugins/policies/accounts/budgets/notices.ts';
import { createBudgetRecords } from '../../../../../plugins/policies/accounts/budgets/records.ts';
import { type Books, RefusalCount, reserve, settle } from '../../../../../plugins/policies/accounts/charges.ts';
import { createWriteQueue } from '../../../../../plugins/policies/kit/write-queue.ts';
import { createSilentLog } from '../../../../support/log.ts';

export interface BudgetNode {
  /**
   * Reserves the estimate of a call and returns a function that settles it at its cost. Rejects if the call is refused.
   */
  call(id: string, estimate: number, by?: Partial<CallBy>): Promise<(cost: number, target?: Target) => Promise<void>>;
  readonly notices: readonly Notice[];
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
  const told: Notice[] = [];
  const settings = { billing: 'track', plans: {}, budgets, defaultPlan: undefined };
  const bookApi = {
    settings,
    books: { records: createRecordBook(store) },
    operators: { audit: async () => {} },
  } as unknown as PluginApi;
  const records = createBudgetRecords(bookApi);
  const raises = createAccountRaises(bookApi);
  const book = createBudgetBook({ records, raises, findPlan: () => undefined, firstKeyOf: async (key) => key });
  const notices = createNotices({ sets: store.sets, log, send: (notice) => void told.push(notice) });
  const queue = createWriteQueue({ log, otherwise: 'it is lost' });
  const books: Books = {
    rules: { isEnforced: false, allowsUnknownPrice: false, longestCallMs: 600_000, marginMs: 60_000, leastOutput: 256 },
    ledger: store.ledger,
    queues: { certain: queue, uncertain: queue },
    clock: { now: () => Date.now() },
    now,
    running: new LinkedList(),
    refusals: new RefusalCount(),
    budgets: createCallBudgets({ book, notices, ledger: store.ledger, now }),
  };
  return {
    notices: told,
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
      await reserve(api, call, books);
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
        await settle(books, call, outcome as unknown as Outcome);
      };
    },
  };
}
