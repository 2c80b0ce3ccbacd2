import { percent, usd } from './format.ts';
import type { Budget } from './shapes.ts';
import { Bar, type Tone } from './ui.tsx';

export function BudgetLine({ budget, isShort = false }: { budget: Budget; isShort?: boolean }) {
  const share = Number(budget.spent_usd) / (Number(budget.amount_usd) + Number(budget.raised_usd ?? 0));
  const tone: Tone = share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : 'good';
  return (
    <>
      <div class="spread">
        {!isShort && <b>{budget.name}</b>}
        <span>
          {usd(budget.spent_usd)} of {usd(budget.amount_usd)}
          {budget.raised_usd && ` and ${usd(budget.raised_usd)}`} {!isShort && `a ${budget.every}`}
        </span>
      </div>
      <Bar share={share} tone={tone} label={`${budget.name}: ${percent(share)} spent, ${usd(budget.left_usd)} left`} />
    </>
  );
}
