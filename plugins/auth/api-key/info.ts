import { formatUsd, type Ledger, type PluginConfig } from '../../../contract/index.ts';
import { CALLABLE_MODELS, formatCallable, keyBudgetId } from '../../policies/kit/index.ts';
import { printable } from '../../policies/kit/printable.ts';
import { prefixOf } from './format.ts';
import { KEY_BUDGETS_SHOWN, showBudget } from './key-budgets.ts';
import { type KeyRecords, limitsIdOf, type StoredKey, withStore } from './records.ts';

/** API form of a key. Absent limits are null. */
export type ApiKeyInfo = PluginConfig<typeof KEY_INFO>;

/** Reads the last use and spending of a key, and returns all in the API's form. */
export async function describeKey(
  key: StoredKey,
  records: Pick<KeyRecords, 'lastUsed'>,
  ledger: Pick<Ledger, 'budgets'>,
): Promise<ApiKeyInfo> {
  const { id } = key.record;
  const [lastUsedAt, [budget]] = await Promise.all([
    records.lastUsed(id),
    withStore(() => ledger.budgets([keyBudgetId(limitsIdOf(key.record))])),
  ]);
  return toInfo(key, lastUsedAt, budget?.spent ?? 0);
}

/** Describes a key just created without any look-up, so that nothing can fail after its creation. */
export function describeNewKey(key: StoredKey): ApiKeyInfo {
  return toInfo(key, undefined, 0);
}

function toInfo(
  { record, revokedAt, expiresAt, blockedAt, blockReason }: StoredKey,
  lastUsedAt: number | undefined,
  spent: number,
): ApiKeyInfo {
  return {
    id: record.id,
    user_id: record.userId,
    name: record.name,
    role: record.role ?? null,
    ...(record.scopes && { scopes: record.scopes }),
    hashed_key: record.hash,
    prefix: prefixOf(record.id),
    created_at: new Date(record.createdAt).toISOString(),
    revoked_at: formatTime(revokedAt),
    deleted: revokedAt !== undefined,
    blocked_at: formatTime(blockedAt),
    blocked_reason: blockReason ?? null,
    expires_at: formatTime(expiresAt),
    last_used_at: formatTime(lastUsedAt),
    plan: record.plan ?? null,
    models: record.models ?? null,
    providers: record.providers ?? null,
    server_tools: record.serverTools ?? null,
    rpm: record.rpm ?? null,
    tpm: record.tpm ?? null,
    budget_usd: record.budget === undefined ? null : formatUsd(record.budget),
    budgets: record.budgets?.map(showBudget) ?? null,
    addresses: record.addresses ?? null,
    tags: record.tags ?? null,
    spent_usd: formatUsd(spent),
  };
}

/** Fields of a key for the audit log: without its hash, and without values that no change affects. */
export function shownInAudit({
  hashed_key: _hash,
  last_used_at: _used,
  spent_usd: _spent,
  callable_models: _models,
  ...shown
}: ApiKeyInfo): object {
  return shown;
}

function formatTime(unixMs: number | undefined): string | null {
  return unixMs === undefined ? null : new Date(unixMs).toISOString();
}

/** Formats one key, a line per field. */
export function formatKey(key: ApiKeyInfo): string {
  return Object.entries(key)
    .filter(([field]) => field !== 'hashed_key')
    .map(([field, value]) => `${field.padEnd(15)} ${field in LINES ? LINES[field]?.(key) : shown(value)}`)
    .join('\n');
}

/** Fields with several lines, each aligned below the first. */
const LINES: Readonly<Record<string, (key: ApiKeyInfo) => string>> = Object.freeze({
  budgets: shownBudgets,
  callable_models: ({ callable_models: models }: ApiKeyInfo) =>
    models ? formatCallable(models).join(`\n${' '.repeat(16)}`) : '-',
});

/** Formats budgets one per line, aligned below the first. */
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

/** State of a key and, for an operator's, its rights. */
export function stateOf(key: ApiKeyInfo, now: number): string {
  if (key.revoked_at) return 'revoked';
  if (key.blocked_at) return 'blocked';
  const rights = [key.role ?? [], key.scopes ?? []].flat().join(' ');
  if (!key.expires_at) return rights || 'active';
  if (Date.parse(key.expires_at) <= now) return 'expired';
  return `${rights} until ${key.expires_at.slice(0, 10)}`.trim();
}

const TEXT = { type: 'string' } as const;
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const NUMBER_OR_NULL = { type: ['integer', 'null'] } as const;
const LIST_OR_NULL = { type: ['array', 'null'], items: TEXT } as const;
const TIME = { type: 'string', description: 'ISO 8601 date-time.' } as const;
const TIME_OR_NULL = { type: ['string', 'null'], description: 'ISO 8601 date-time.' } as const;

/** Schema of a key reference in requests. */
export const KEY_ID = {
  type: 'string',
  minLength: 1,
  maxLength: 100,
  description: 'Id of the key, or its `tg_` prefix.',
} as const;

/** `api_key_info` of spec 2.5 with the fields of the contract. */
export const KEY_INFO = {
  type: 'object',
  properties: {
    id: TEXT,
    user_id: TEXT,
    name: TEXT,
    role: {
      type: ['string', 'null'],
      description: 'Operator role: `viewer`, `billing`, `operator`, `team`, `admin`.',
    },
    scopes: {
      type: 'array',
      items: TEXT,
      description: 'Operator scopes in addition to the role; absent if there are none.',
    },
    hashed_key: { type: 'string', description: 'HMAC-SHA-256 of the key; not usable as a key.' },
    prefix: { type: 'string', description: 'Prefix of the key: `tg_` and the id.' },
    created_at: TIME,
    revoked_at: TIME_OR_NULL,
    deleted: { type: 'boolean' },
    blocked_at: { ...TIME_OR_NULL, description: 'Time at which an operator blocked it; ISO 8601.' },
    blocked_reason: TEXT_OR_NULL,
    expires_at: TIME_OR_NULL,
    last_used_at: { ...TIME_OR_NULL, description: 'ISO 8601 date-time; up to one minute delayed.' },
    plan: TEXT_OR_NULL,
    models: LIST_OR_NULL,
    providers: LIST_OR_NULL,
    server_tools: LIST_OR_NULL,
    rpm: NUMBER_OR_NULL,
    tpm: NUMBER_OR_NULL,
    budget_usd: TEXT_OR_NULL,
    budgets: { ...KEY_BUDGETS_SHOWN, description: 'Budgets by calendar period.' },
    addresses: { ...LIST_OR_NULL, description: 'Allowed client addresses: IP addresses and networks.' },
    tags: { ...LIST_OR_NULL, description: 'Tags of its calls, such as `team=search`.' },
    spent_usd: TEXT,
    callable_models: {
      ...CALLABLE_MODELS,
      description: `${CALLABLE_MODELS.description} Only in responses with one key, for operators.`,
    },
  },
  required: [
    ...[
      'id',
      'user_id',
      'name',
      'role',
      'tags',
      'hashed_key',
      'prefix',
      'created_at',
      'revoked_at',
      'deleted',
      'blocked_at',
      'blocked_reason',
      'expires_at',
    ],
    ...[
      'last_used_at',
      'plan',
      'models',
      'providers',
      'server_tools',
      'rpm',
      'tpm',
      'budget_usd',
      'budgets',
      'addresses',
      'spent_usd',
    ],
  ],
} as const;

export const ISSUED = {
  type: 'object',
  properties: { message: TEXT, api_key: { type: 'string', description: 'Secret key.' }, api_key_info: KEY_INFO },
  required: ['message', 'api_key', 'api_key_info'],
} as const;

/** Response for a key created by an operator. */
export const MADE = {
  type: 'object',
  properties: {
    ...ISSUED.properties,
    similar: {
      type: 'array',
      items: TEXT,
      description: 'Existing user ids that look like this one, for example with letters of other alphabets.',
    },
  },
  required: [...ISSUED.required, 'similar'],
} as const;

export const REVOKED = {
  type: 'object',
  properties: { message: TEXT, api_key_info: KEY_INFO },
  required: ['message', 'api_key_info'],
} as const;

export const LIST = {
  type: 'object',
  properties: { object: { const: 'list' }, data: { type: 'array', items: KEY_INFO }, has_more: { type: 'boolean' } },
  required: ['object', 'data', 'has_more'],
} as const;
