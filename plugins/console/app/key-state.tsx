import { day, usd } from './format.ts';
import type { Key } from './shapes.ts';
import { Badge, type Tone } from './ui.tsx';

function stateOf(item: Key): readonly [tone: Tone, text: string] {
  if (item.revoked_at) return ['dim', `revoked ${day(item.revoked_at)}`];
  if (item.blocked_at) return ['bad', 'blocked'];
  if (item.expires_at && Date.parse(item.expires_at) <= Date.now()) return ['dim', `expired ${day(item.expires_at)}`];
  return ['good', item.expires_at ? `until ${day(item.expires_at)}` : 'active'];
}

/** State of a key in one word. */
export function KeyState({ item }: { item: Key }) {
  const [tone, text] = stateOf(item);
  return <Badge tone={tone}>{text}</Badge>;
}

export function describeState(item: Key): string {
  return stateOf(item)[1];
}

/** Limits of a key in one line. */
export function describeLimits({ plan, rpm, tpm, budgets, models }: Key): string {
  const parts = [
    plan && `plan ${plan}`,
    rpm && `${rpm} requests a minute`,
    tpm && `${tpm} tokens a minute`,
    ...(budgets ?? []).map(({ amount_usd, every }) => `${usd(amount_usd)} a ${every}`),
    models?.join(', '),
  ];
  return parts.filter(Boolean).join(' · ') || '–';
}
