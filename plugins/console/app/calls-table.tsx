import { count, milliseconds, unknownCost, usd } from './format.ts';
import type { Call } from './shapes.ts';
import { Badge, type Column, Time, type Tone } from './ui.tsx';

const TONES: Readonly<Record<string, Tone>> = Object.freeze({
  ok: 'good',
  error: 'bad',
  refused: 'warn',
  aborted: 'dim',
  expired: 'warn',
});

export function Outcome({ call }: { call: Pick<Call, 'outcome' | 'error_code'> }) {
  return (
    <>
      <Badge tone={TONES[call.outcome] ?? 'dim'}>{call.outcome}</Badge>
      {call.error_code && <code class="code-name">{call.error_code}</code>}
    </>
  );
}

/** Target of a call, actual or intended: a call rejected early has no provider. */
export function targetOf({ provider, model }: Pick<Call, 'provider' | 'model'>): string {
  return provider === '-' ? model : `${provider}/${model}`;
}

/** Columns, one line per call. `link` leads to the same list with another filter: one call, or those of a user. */
export function callColumns(
  link: (more: { readonly id?: string; readonly user?: string }) => string,
): readonly Column<Call>[] {
  return [
    {
      name: 'Time',
      cell: (call) => (
        <a href={link({ id: call.id })} class="row-link">
          <Time at={call.at} />
        </a>
      ),
    },
    { name: 'Outcome', cell: (call) => <Outcome call={call} /> },
    {
      name: 'Model',
      cell: (call) => (
        <div class="wrap">
          {targetOf(call)}
          {call.requested && call.requested !== targetOf(call) && <span class="muted"> for {call.requested}</span>}{' '}
          {call.attempts.length > 1 && <Badge tone="warn">{call.attempts.length} attempts</Badge>}
        </div>
      ),
    },
    {
      name: 'User',
      cell: (call) => (
        <div class="wrap short">
          <a href={link({ user: call.user_id })}>{call.user_id}</a>
        </div>
      ),
    },
    { name: 'Key', isExtra: true, isWide: true, cell: (call) => <code>{call.key}</code> },
    { name: 'In', isNumber: true, isExtra: true, cell: (call) => count(call.units['prompt_tokens']) },
    { name: 'Out', isNumber: true, isExtra: true, cell: (call) => count(call.units['completion_tokens']) },
    {
      name: 'First byte',
      isNumber: true,
      isExtra: true,
      isWide: true,
      cell: (call) => milliseconds(call.first_byte_ms),
    },
    { name: 'Took', isNumber: true, cell: (call) => milliseconds(call.duration_ms) },
    { name: 'Cost', isNumber: true, cell: (call) => (call.priced ? usd(call.cost_usd) : unknownCost(call)) },
  ];
}
