import type { AuditEntry } from '../../../contract/index.ts';

/** Converts an entry of the audit log to the API's form. */
export function showEntry({ id, at, actor, action, subject, before, after }: AuditEntry) {
  const { via, userId = null, keyId = null, address = null } = actor;
  const who = { via, user_id: userId, key_id: keyId, address };
  return {
    id,
    at: new Date(at).toISOString(),
    actor: who,
    action,
    subject,
    before: before ?? null,
    after: after ?? null,
  };
}
