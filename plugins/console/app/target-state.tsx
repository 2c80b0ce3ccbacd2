import type { Target } from './shapes.ts';
import { Badge, type Tone } from './ui.tsx';

const STATES: Readonly<Record<Target['state'], readonly [Tone, string]>> = Object.freeze({
  closed: ['good', 'healthy'],
  'half-open': ['warn', 'retrying'],
  open: ['bad', 'unhealthy'],
  drained: ['dim', 'drained'],
});

export function TargetState({ target }: { target: Target }) {
  return <StateBadge state={target.state} ratio={target.error_ratio} />;
}

/** State; `ratio` is the share of failed attempts. */
export function StateBadge({ state, ratio }: { state: Target['state']; ratio: number }) {
  const [tone, word] = STATES[state];
  return <Badge tone={state === 'closed' && ratio >= 0.5 ? 'warn' : tone}>{word}</Badge>;
}

/** Urgency of a target, which sorts the list. */
export function urgencyOf({ state, error_ratio: failed }: Target): number {
  return { open: 4, 'half-open': 2, drained: 1, closed: 0 }[state] + failed;
}
