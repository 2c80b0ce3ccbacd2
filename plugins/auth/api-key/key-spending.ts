import { formatUsd, type Ledger, type PluginConfig } from '../../../core/index.ts';
import { keyWindowPrefix, windowAt, windowId } from '../../../core/operators.ts';
import { type KEY_BUDGETS_SHOWN, showBudget } from './key-budgets.ts';
import { limitsIdOf, type StoredKey } from './records.ts';
import { withStore } from './with-store.ts';

type ShownBudget = PluginConfig<(typeof KEY_BUDGETS_SHOWN)['items']>;

/** The budgets of a key with what is spent and left of each in the window of now; null for a key without any. */
export async function readKeySpending(
  { record }: StoredKey,
  ledger: Pick<Ledger, 'budgets' | 'clock'>,
): Promise<readonly ShownBudget[] | null> {
  const { budgets } = record;
  if (!budgets) return null;
  // Windows go by the clock that all gateways of the store share, where it has one.
  const now = (await withStore(async () => ledger.clock?.())) ?? Date.now();
  const prefix = keyWindowPrefix(limitsIdOf(record));
  const counted = budgets.map((rule) => {
    const window = windowAt(rule, now);
    return { rule, window, id: windowId(prefix, rule, window) };
  });
  const states = await withStore(() => ledger.budgets(counted.map(({ id }) => id)));
  return counted.map(({ rule, window }, at) => {
    const { spent, held } = states[at] ?? { spent: 0, held: 0 };
    return {
      ...showBudget(rule),
      spent_usd: formatUsd(spent),
      held_usd: formatUsd(held),
      left_usd: formatUsd(Math.max(rule.amount - spent - held, 0)),
      starts_at: formatEnd(window.start),
      resets_at: formatEnd(window.end),
    };
  });
}

/** Null for an end of time. */
function formatEnd(instant: number): string | null {
  return Number.isFinite(instant) ? new Date(instant).toISOString().replace('.000Z', 'Z') : null;
}
