import { useEffect, useState } from 'preact/hooks';
import { get, may } from './api.ts';
import { Outcome } from './calls-table.tsx';
import { percent, until, usd } from './format.ts';
import { useLiveCalls } from './live-calls.ts';
import { linkTo } from './routing.ts';
import type { Budget, KeyBudget } from './shapes.ts';
import { Bar, Problem, type Tone, Usd, useLoad } from './ui.tsx';

export function BudgetLine({
  budget,
  isShort = false,
}: {
  budget: Omit<KeyBudget, 'resets_at'> & Pick<Budget, 'raised_usd'>;
  isShort?: boolean;
}) {
  const share = Number(budget.spent_usd) / (Number(budget.amount_usd) + Number(budget.raised_usd ?? 0));
  const tone: Tone = share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : 'good';
  return (
    <>
      <div class="spread">
        {!isShort && <b>{budget.name}</b>}
        <span>
          <Usd of={budget.spent_usd} /> of <Usd of={budget.amount_usd} />
          {budget.raised_usd && ` and ${usd(budget.raised_usd)}`} {!isShort && `a ${budget.every}`}
        </span>
      </div>
      <Bar share={share} tone={tone} label={`${budget.name}: ${percent(share)} spent, ${usd(budget.left_usd)} left`} />
    </>
  );
}

/** Remaining budgets of a key, updated after each of its calls. */
export function KeySpending({ id, prefix }: { id: string; prefix: string }) {
  const [call] = useLiveCalls({ key: prefix }, may('calls:read')).calls;
  const [seen, setSeen] = useState('');
  const spent = useLoad(seen, () => get<{ budgets: readonly KeyBudget[] | null }>(`/keys/${id}`));
  useEffect(() => {
    // Only one request at a time, however fast calls arrive.
    if (!spent.isLoading && call !== undefined) setSeen(call.id);
  }, [spent.isLoading, call?.id]);
  return (
    <div role="status">
      <Problem error={spent.error} retry={spent.reload} />
      {spent.data?.budgets?.map((budget) => (
        <div key={budget.name}>
          <BudgetLine budget={budget} />
          <p class="muted">
            <Usd of={budget.left_usd} /> left; resets {until(budget.resets_at)}.
          </p>
        </div>
      ))}
      {call && (
        <p>
          Last call: <Outcome call={call} /> <a href={linkTo('calls', { key: prefix, id: call.id })}>Details</a>
        </p>
      )}
    </div>
  );
}
