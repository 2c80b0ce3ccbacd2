import { setImmediate } from 'node:timers/promises';
import { type CommandOption, GatewayError, type PersonalData } from '../../../contract/index.ts';
import { cpuBudget, ROLES } from '../../policies/kit/index.ts';
import { textOf } from '../../policies/kit/resource.ts';
import type { KeyIndex, Page } from './key-index.ts';
import type { Keyring } from './manage-keys.ts';
import type { KeyRecord, KeyRecords, StoredKey } from './records.ts';

const STATES = ['active', 'blocked', 'expired', 'revoked'] as const;
const WORD = { type: 'string', minLength: 1, maxLength: 256 } as const;

/** Filters for a list of keys, in addition to the user. */
export const SEARCH_FILTERS = {
  name: { ...WORD, description: 'Keys whose name contains this text, case-insensitive.' },
  tag: { ...WORD, description: 'Keys with this tag, such as `team=search`.' },
  plan: { ...WORD, description: 'Keys with this own plan.' },
  state: { enum: STATES, description: 'Keys in this state.' },
  role: { enum: ROLES, description: 'Operator keys with this role.' },
} as const;

export const SEARCH_OPTIONS: readonly CommandOption[] = [
  { flags: '--name <text>', summary: 'keys whose name contains this text' },
  { flags: '--tag <name=value>', summary: 'keys with this tag' },
  { flags: '--plan <name>', summary: 'keys with this own plan' },
  { flags: '--state <state>', summary: STATES.join(', ') },
  { flags: '--role <name>', summary: `operator keys with this role: ${ROLES.join(', ')}` },
];

export const SEARCH_NOTE =
  'With a filter, one request checks a limited number of keys. A page that is not full may have a `next`.';

/** Limits of one request: keys scanned, CPU, and keys read concurrently. */
const MAX_SCANNED = 2000;
const MOST_CPU_MS = 25;
const AT_ONCE = 100;

type Filters = Readonly<Record<string, unknown>>;

/** Page of the keys that match the filters, oldest first; `next` is the key before the next page, which may not match. */
export async function searchKeys(
  keyring: Pick<Keyring, 'list'>,
  filters: Filters,
  { limit, after }: Page,
): Promise<{ readonly keys: readonly StoredKey[]; readonly next: KeyRecord | undefined }> {
  const user = textOf(filters, 'user');
  const state = textOf(filters, 'state');
  if (state !== undefined && !STATES.some((each) => each === state))
    throw new GatewayError('invalid_request', `--state must be one of ${STATES.join(', ')}.`, { param: 'state' });
  const isFiltered = Object.keys(SEARCH_FILTERS).some((name) => textOf(filters, name) !== undefined);
  const found: StoredKey[] = [];
  const now = Date.now();
  const isSpent = cpuBudget(MOST_CPU_MS);
  let last: KeyRecord | undefined;
  for (let scanned = 0; ; ) {
    const size = isFiltered ? Math.min(AT_ONCE, MAX_SCANNED - scanned) : limit;
    const start = last ?? after;
    const { keys, hasMore } = await keyring.list(user, { limit: size, ...(start && { after: start }) });
    for (const [at, key] of keys.entries()) {
      if (!matches(key, filters, now)) continue;
      found.push(key);
      const isLast = at === keys.length - 1 && !hasMore;
      if (found.length === limit) return { keys: found, next: isLast ? undefined : key.record };
    }
    last = keys.at(-1)?.record ?? last;
    scanned += size;
    if (!hasMore || keys.length === 0) return { keys: found, next: undefined };
    if (scanned >= MAX_SCANNED || isSpent()) return { keys: found, next: last };
    // A store may reply synchronously: let other work run first.
    await setImmediate();
  }
}

function matches(key: StoredKey, filters: Filters, now: number): boolean {
  const { name, tags = [], plan, role } = key.record;
  const wanted = (field: string, isSo: (word: string) => boolean): boolean => {
    const word = textOf(filters, field);
    return word === undefined || isSo(word);
  };
  return (
    wanted('name', (word) => name.toLowerCase().includes(word.toLowerCase())) &&
    wanted('tag', (word) => tags.includes(word)) &&
    wanted('plan', (word) => plan === word) &&
    wanted('role', (word) => role === word) &&
    wanted('state', (word) => stateOf(key, now) === word)
  );
}

function stateOf({ revokedAt, blockedAt, expiresAt }: StoredKey, now: number): (typeof STATES)[number] {
  if (revokedAt !== undefined) return 'revoked';
  if (blockedAt !== undefined) return 'blocked';
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'active';
}

interface Parts {
  readonly keyring: Pick<Keyring, 'list' | 'revoke'>;
  readonly index: Pick<KeyIndex, 'countUser' | 'forget' | 'forgetLook'>;
  readonly records: Pick<KeyRecords, 'erase'>;
}

/** Personal data of a user: keys, including revoked ones. */
export function personalKeys({ keyring, index, records }: Parts): readonly PersonalData[] {
  const walk = async (userId: string, look: (key: StoredKey) => Promise<boolean>): Promise<number> => {
    let count = 0;
    for (let last: KeyRecord | undefined; ; ) {
      const { keys, hasMore } = await keyring.list(undefined, { limit: AT_ONCE, ...(last && { after: last }) });
      for (const key of keys) if (key.record.userId === userId && (await look(key))) count += 1;
      last = keys.at(-1)?.record;
      if (!hasMore || !last) return count;
    }
  };
  const erase = async (key: StoredKey): Promise<void> => {
    // Revoke it first, so that this node drops it at once.
    await keyring.revoke(key, Date.now());
    await records.erase(key);
    await index.forget(key.record);
  };
  return [
    {
      name: 'keys',
      count: ({ userId }) => index.countUser(userId),
      async erase({ userId }) {
        await index.forgetLook(userId);
        return walk(userId, async (key) => {
          if (key.revokedAt !== undefined) return false;
          await erase(key);
          return true;
        });
      },
    },
    {
      name: 'revoked_keys',
      count: ({ userId }) => walk(userId, async ({ revokedAt }) => revokedAt !== undefined),
      erase: ({ userId }) => walk(userId, (key) => erase(key).then(() => true)),
    },
  ];
}
