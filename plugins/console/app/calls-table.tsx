import { count, milliseconds, unknownCost } from './format.ts';
import type { Call } from './shapes.ts';
import { Badge, type Column, Time, type Tone, Usd } from './ui.tsx';

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
      value: ({ at }) => at,
      cell: (call) => (
        <a href={link({ id: call.id })} class="row-link">
          <Time at={call.at} />
        </a>
      ),
    },
    {
      name: 'Outcome',
      value: ({ outcome, error_code }) => [outcome, error_code].filter(Boolean).join(' '),
      cell: (call) => <Outcome call={call} />,
    },
    {
      name: 'Model',
      value: targetOf,
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
      value: ({ user_id }) => user_id,
      cell: (call) => (
        <div class="wrap short">
          <a href={link({ user: call.user_id })}>{call.user_id}</a>
        </div>
      ),
    },
    { name: 'Key', isExtra: true, isWide: true, value: ({ key }) => key, cell: (call) => <code>{call.key}</code> },
    {
      name: 'Tokens in',
      isNumber: true,
      isExtra: true,
      sort: 'tokens',
      value: ({ units }) => units['prompt_tokens'],
      cell: ({ units }) => count(units['prompt_tokens']),
    },
    {
      name: 'Tokens out',
      isNumber: true,
      isExtra: true,
      value: ({ units }) => units['completion_tokens'],
      cell: ({ units }) => count(units['completion_tokens']),
    },
    {
      name: 'First byte',
      isNumber: true,
      isExtra: true,
      isWide: true,
      sort: 'first_byte',
      value: ({ first_byte_ms }) => first_byte_ms,
      cell: (call) => milliseconds(call.first_byte_ms),
    },
    {
      name: 'Duration',
      isNumber: true,
      sort: 'duration',
      value: ({ duration_ms }) => duration_ms,
      cell: (call) => milliseconds(call.duration_ms),
    },
    {
      name: 'Cost',
      isNumber: true,
      sort: 'cost',
      value: ({ priced, cost_usd }) => (priced ? cost_usd : null),
      cell: (call) => (call.priced ? <Usd of={call.cost_usd} /> : unknownCost(call)),
    },
  ];
}
