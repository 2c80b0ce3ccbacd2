import { count } from './format.ts';

/** Calls of one hour. */
export interface Hour {
  readonly calls: number;
  readonly failed: number;
}

const HEIGHT = 22;
const STEP = 5;

/** One bar per hour, the latest last; failures are at the bottom in another colour. Its label has the sums. */
export function Sparkline({ hours }: { hours: readonly Hour[] | undefined }) {
  if (!hours) return <span class="muted">no calls</span>;
  const most = Math.max(...hours.map(({ calls }) => calls), 1);
  const last = hours.at(-1);
  const label = `The busiest hour had ${count(most)} calls; the latest ${count(last?.calls)}, ${count(last?.failed)} of them failed.`;
  return (
    <svg class="sparkline" role="img" aria-label={label} width={hours.length * STEP} height={HEIGHT}>
      <title>{label}</title>
      {hours.map(({ calls, failed }, at) => {
        const whole = (calls / most) * HEIGHT;
        const bad = (failed / most) * HEIGHT;
        return (
          <g key={at}>
            <rect x={at * STEP} y={HEIGHT - 1} width={STEP - 1} height={1} class="floor" />
            <rect x={at * STEP} y={HEIGHT - whole} width={STEP - 1} height={whole} />
            <rect x={at * STEP} y={HEIGHT - bad} width={STEP - 1} height={bad} class="bad" />
          </g>
        );
      })}
    </svg>
  );
}
