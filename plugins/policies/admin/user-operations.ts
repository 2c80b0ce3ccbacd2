import type { AuditActor, PluginApi, Records, UserRecord } from '../../../core/index.ts';
import { GatewayError } from '../../../core/index.ts';

/** A user as the API shows it. Whoever a token or a key names is a user; nobody lists them. */
export interface ShownUser {
  readonly object: 'user';
  readonly id: string;
  readonly blocked_at: string | null;
  readonly blocked_reason: string | null;
}

export interface UserVersion {
  readonly version: number;
  readonly user: ShownUser;
}

/** What operators do with users, each change written down in the audit log. */
export interface UserOperations {
  find(id: string): Promise<UserVersion>;
  /** Blocked twice is blocked since the first time. */
  block(actor: AuditActor, id: string, reason: string | undefined, expected?: number): Promise<UserVersion>;
  unblock(actor: AuditActor, id: string, expected?: number): Promise<UserVersion>;
}

/** What the user ids of keys and tokens are held to. */
export const USER_ID = {
  type: 'string',
  minLength: 1,
  maxLength: 300,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
} as const;

export function createUserOperations(users: Records<UserRecord>, audit: PluginApi['audit']): UserOperations {
  const change = async (
    actor: AuditActor,
    action: string,
    id: string,
    make: (user: UserRecord) => UserRecord,
    expected: number | undefined,
  ): Promise<UserVersion> => {
    checkId(id);
    const { version, before, value } = await users.change(id, (user) => make(user ?? {}), expected);
    const user = showUser(id, value);
    await audit({ actor, action, subject: id, before: showUser(id, before), after: user });
    return { version, user };
  };
  return {
    async find(id) {
      checkId(id);
      const { version, value } = await users.find(id);
      return { version, user: showUser(id, value) };
    },
    block(actor, id, reason, expected) {
      const make = ({ blockedAt, ...user }: UserRecord): UserRecord => ({
        ...user,
        blockedAt: blockedAt ?? Date.now(),
        ...(reason !== undefined && { reason }),
      });
      return change(actor, 'user.block', id, make, expected);
    },
    unblock(actor, id, expected) {
      return change(actor, 'user.unblock', id, ({ blockedAt: _at, reason: _reason, ...user }) => user, expected);
    },
  };
}

function showUser(id: string, { blockedAt, reason }: UserRecord = {}): ShownUser {
  return {
    object: 'user',
    id,
    blocked_at: blockedAt === undefined ? null : new Date(blockedAt).toISOString(),
    blocked_reason: reason ?? null,
  };
}

function checkId(id: string): void {
  if (id.length >= USER_ID.minLength && id.length <= USER_ID.maxLength && new RegExp(USER_ID.pattern).test(id)) return;
  throw new GatewayError(
    'invalid_request',
    `A user id is a text of 1 to ${USER_ID.maxLength} characters without control characters, as in tokens and in "keys create --user".`,
    { param: 'id' },
  );
}
