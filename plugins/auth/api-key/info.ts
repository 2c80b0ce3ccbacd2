import { formatUsd, type Ledger } from '../../../core/index.ts';
import { prefixOf } from './format.ts';
import { asking, type KeyRecords, type StoredKey } from './records.ts';

/** A key as the API shows it: spec 2.5 and what the contract adds. Absent limits are null. */
export interface ApiKeyInfo {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly hashed_key: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly revoked_at: string | null;
  readonly deleted: boolean;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly plan: string | null;
  readonly models: readonly string[] | null;
  readonly providers: readonly string[] | null;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly budget_usd: string | null;
  readonly spent_usd: string;
}

/** Looks up when the key was last used and what it has spent, and writes everything as the API shows it. */
export async function describeKey(
  key: StoredKey,
  records: Pick<KeyRecords, 'lastUsed'>,
  ledger: Pick<Ledger, 'purse'>,
): Promise<ApiKeyInfo> {
  const { id, account } = key.record;
  const [lastUsedAt, purse] = await Promise.all([records.lastUsed(id), asking(() => ledger.purse(account, id))]);
  return toInfo(key, { lastUsedAt, spent: purse.spent });
}

/** A key that was made this moment: nothing has to be looked up, so nothing can fail once it exists. */
export function describeNewKey(key: StoredKey): ApiKeyInfo {
  return toInfo(key, { lastUsedAt: undefined, spent: 0 });
}

function toInfo(
  { record, revokedAt, expiresAt }: StoredKey,
  use: { readonly lastUsedAt: number | undefined; readonly spent: number },
): ApiKeyInfo {
  return {
    id: record.id,
    user_id: record.userId,
    name: record.name,
    hashed_key: record.hash,
    prefix: prefixOf(record.id),
    created_at: formatTime(record.createdAt),
    revoked_at: revokedAt === undefined ? null : formatTime(revokedAt),
    deleted: revokedAt !== undefined,
    expires_at: expiresAt === undefined ? null : formatTime(expiresAt),
    last_used_at: use.lastUsedAt === undefined ? null : formatTime(use.lastUsedAt),
    plan: record.plan ?? null,
    models: record.models ?? null,
    providers: record.providers ?? null,
    rpm: record.rpm ?? null,
    tpm: record.tpm ?? null,
    budget_usd: record.budget === undefined ? null : formatUsd(record.budget),
    spent_usd: formatUsd(use.spent),
  };
}

function formatTime(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
