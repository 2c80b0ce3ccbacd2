import type { Call, Outcome, PluginApi, UsageFacts } from '../../../core/index.ts';
import type { WriteQueue } from '../kit/write-queue.ts';
import { userBudgetAccount } from './user-budget.ts';

/** How long the charge may wait for the store. */
const LONGEST_WAIT_MS = 3_600_000;
/** How long it is held between reserving and settling: should the gateway die there, the sweeper settles it. */
const HOLD_MS = 60_000;

/**
 * Charges what an `answer` hook says that its response costs. Such a call reserves nothing, and when it ends its response
 * is out: neither the balance nor the key's budget refuses the charge, both may go below zero for it.
 */
export function chargeAnswered(
  api: Pick<PluginApi, 'ledger'>,
  queue: WriteQueue,
  { id, principal }: Call,
  outcome: Outcome,
  usage: UsageFacts,
): Promise<void> | undefined {
  const amount = Math.ceil(outcome.cost ?? 0);
  if (outcome.sent || amount <= 0) return undefined;
  const { account, keyId, limitsId = keyId } = principal;
  const ofUser = userBudgetAccount(principal);
  const charge = async (of: string, budget?: { readonly id: string; readonly limit: number }): Promise<void> => {
    const now = Date.now();
    const floor = Number.NEGATIVE_INFINITY;
    // Said again after its reply was lost it is a duplicate, which is as well.
    await api.ledger.reserve({
      ...{ account: of, requestId: id, amount, floor, expiresAt: now + HOLD_MS, facts: usage, now },
      ...(budget && { budget }),
    });
    await api.ledger.settle({ account: of, requestId: id, amount, usage, now });
  };
  return queue.add({
    id,
    until: Date.now() + LONGEST_WAIT_MS,
    async write() {
      await charge(account, limitsId === undefined ? undefined : { id: limitsId, limit: Number.POSITIVE_INFINITY });
      if (ofUser !== undefined) await charge(ofUser);
    },
  });
}
