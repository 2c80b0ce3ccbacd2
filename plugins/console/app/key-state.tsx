import { day, usd } from './format.ts';
import type { Key } from './shapes.ts';
import { Badge } from './ui.tsx';

/** State of a key in one word. */
export function KeyState({ item }: { item: Key }) {
  if (item.revoked_at) return <Badge tone="dim">revoked {day(item.revoked_at)}</Badge>;
  if (item.blocked_at) return <Badge tone="bad">blocked</Badge>;
  if (item.expires_at && Date.parse(item.expires_at) <= Date.now())
    return <Badge tone="dim">ended {day(item.expires_at)}</Badge>;
  return <Badge tone="good">{item.expires_at ? `until ${day(item.expires_at)}` : 'active'}</Badge>;
}

/** Limits of a key in one line. */
export function describeLimits({ plan, rpm, tpm, budgets, models }: Key): string {
  const parts = [
    plan && `plan ${plan}`,
    rpm && `${rpm} calls a minute`,
    tpm && `${tpm} tokens a minute`,
    ...(budgets ?? []).map(({ amount_usd, every }) => `${usd(amount_usd)} a ${every}`),
    models?.join(', '),
  ];
  return parts.filter(Boolean).join(' · ') || '–';
}
