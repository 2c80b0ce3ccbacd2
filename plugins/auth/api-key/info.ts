import { formatUsd, type Ledger, type PluginConfig } from '../../../core/index.ts';
import { prefixOf } from './format.ts';
import { type KeyRecords, limitsIdOf, type StoredKey, withStore } from './records.ts';
import type { KEY_INFO } from './route-schemas.ts';

/** A key as the API shows it. Absent limits are null. */
export type ApiKeyInfo = PluginConfig<typeof KEY_INFO>;

/** Looks up when the key was last used and what it has spent, and writes everything as the API shows it. */
export async function describeKey(
  key: StoredKey,
  records: Pick<KeyRecords, 'lastUsed'>,
  ledger: Pick<Ledger, 'budget'>,
): Promise<ApiKeyInfo> {
  const { id, account } = key.record;
  const [lastUsedAt, budget] = await Promise.all([
    records.lastUsed(id),
    withStore(() => ledger.budget(account, limitsIdOf(key.record))),
  ]);
  return toInfo(key, lastUsedAt, budget.spent);
}

/** A key that was made this moment: nothing has to be looked up, so nothing can fail once it exists. */
export function describeNewKey(key: StoredKey): ApiKeyInfo {
  return toInfo(key, undefined, 0);
}

function toInfo(
  { record, revokedAt, expiresAt }: StoredKey,
  lastUsedAt: number | undefined,
  spent: number,
): ApiKeyInfo {
  return {
    id: record.id,
    user_id: record.userId,
    name: record.name,
    hashed_key: record.hash,
    prefix: prefixOf(record.id),
    created_at: new Date(record.createdAt).toISOString(),
    revoked_at: formatTime(revokedAt),
    deleted: revokedAt !== undefined,
    expires_at: formatTime(expiresAt),
    last_used_at: formatTime(lastUsedAt),
    plan: record.plan ?? null,
    models: record.models ?? null,
    providers: record.providers ?? null,
    server_tools: record.serverTools ?? null,
    rpm: record.rpm ?? null,
    tpm: record.tpm ?? null,
    budget_usd: record.budget === undefined ? null : formatUsd(record.budget),
    spent_usd: formatUsd(spent),
  };
}

function formatTime(unixMs: number | undefined): string | null {
  return unixMs === undefined ? null : new Date(unixMs).toISOString();
}
