/**
 * Process whose calls share one budget with those of other processes: `node --import tsx share-worker.ts <order as
 * JSON>`. It calls until the budget is used up, and then returns its shares.
 */

import { isGatewayError } from '../../../../../contract/index.ts';
import { openStore, type StoreAddress } from '../../../../support/stores/store-race.ts';
import { createBudgetNode } from './budget-node.ts';

export interface ShareOrder {
  readonly address: StoreAddress;
  readonly name: string;
  readonly limit: number;
  /** Calls change the row of the budget itself, for comparison. */
  readonly isExact: boolean;
  readonly concurrency: number;
  /** Number of calls after which the process waits to be killed. */
  readonly stopsAfter?: number;
}

export interface ShareReport {
  readonly calls: number;
  readonly failed: number;
  readonly ms: number;
}

const order = JSON.parse(process.argv[2] ?? '') as ShareOrder;
const opened = await openStore(order.address);
const { shareBudget, ...ledger } = opened.ledger;
const store = { ...opened, ledger: order.isExact || !shareBudget ? ledger : { ...ledger, shareBudget } };
const rule = { name: order.name, amount: order.limit, every: 'total', timezone: 'UTC' } as const;
const node = createBudgetNode(store, [rule], () => Date.now());
const startedMs = performance.now();
let calls = 0;
let failed = 0;
let isUsedUp = false;

async function callInSequence(by: number): Promise<void> {
  for (let n = 0; !isUsedUp; n += 1) {
    if (order.stopsAfter !== undefined && calls >= order.stopsAfter) {
      process.send?.('ready');
      // Keeps its holds and its share.
      await new Promise(() => undefined);
    }
    const estimate = 1 + (n % 7);
    const account = `${order.name}-${process.pid}-${by}`;
    const principal = { credential: 'key', userId: account, account, keyId: account } as const;
    try {
      const end = await node.call(`${account}-${n}`, estimate, { principal });
      await end(n % 3 === 0 ? estimate : estimate - 1);
      calls += 1;
    } catch (error) {
      if (!isGatewayError(error)) throw error;
      if (error.code === 'insufficient_balance') isUsedUp = true;
      else if (error.code !== 'rate_limited') failed += 1;
    }
  }
}

await Promise.all(Array.from({ length: order.concurrency }, (_, by) => callInSequence(by)));
const ms = performance.now() - startedMs;
await node.close();
await opened.close();
process.send?.({ calls, failed, ms } satisfies ShareReport);
