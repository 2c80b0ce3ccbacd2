import type { CommandIo } from '../../../core/index.ts';
import type { ApiKeyInfo } from './info.ts';

const HEAD = Object.freeze(['KEY', 'USER', 'NAME', 'CREATED UTC', 'USED UTC', 'SPENT USD', 'STATE']);

/** A line for each key. */
export function formatKeys(io: Pick<CommandIo, 'table'>, keys: readonly ApiKeyInfo[], now: number): string {
  const rows = keys.map((key) => [
    key.prefix,
    printable(key.user_id),
    printable(key.name || '-'),
    key.created_at.slice(0, 10),
    key.last_used_at?.slice(0, 10) ?? 'never',
    key.spent_usd,
    stateOf(key, now),
  ]);
  return io.table(HEAD, rows);
}

/** A line for each field of one key. */
export function formatKey(key: ApiKeyInfo): string {
  return Object.entries(key)
    .filter(([field]) => field !== 'hashed_key')
    .map(([field, value]) => `${field.padEnd(14)}  ${field === 'budgets' ? shownBudgets(key) : shown(value)}`)
    .join('\n');
}

/** A line for each budget, the following ones below the first. */
function shownBudgets({ budgets }: ApiKeyInfo): string {
  if (budgets === null || budgets.length === 0) return '-';
  const lines = budgets.map(({ name, amount_usd, every, timezone, spent_usd, left_usd, resets_at }) => {
    const period = every === 'total' ? 'in all' : `a ${every} in ${timezone}`;
    const state = spent_usd === undefined ? '' : `: ${spent_usd} spent, ${left_usd} left`;
    return `${name}: ${amount_usd} USD ${period}${state}${resets_at ? `, resets ${resets_at}` : ''}`;
  });
  return lines.join(`\n${' '.repeat(16)}`);
}

function shown(value: unknown): string {
  if (value === null || value === '') return '-';
  return Array.isArray(value) ? value.map((each) => printable(String(each))).join(', ') : printable(String(value));
}

/** Text of users on a terminal: without what moves its cursor, and not so long that nothing else fits. */
function printable(text: string): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}]/gu, '?');
  return clean.length > 40 ? `${clean.slice(0, 39)}…` : clean;
}

function stateOf(key: ApiKeyInfo, now: number): string {
  if (key.revoked_at) return 'revoked';
  if (key.blocked_at) return 'blocked';
  const role = key.role === 'admin' ? 'admin' : 'active';
  if (!key.expires_at) return role;
  return Date.parse(key.expires_at) <= now ? 'expired' : `until ${key.expires_at.slice(0, 10)}`;
}
