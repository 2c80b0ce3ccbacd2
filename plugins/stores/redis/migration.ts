import { randomUUID } from 'node:crypto';
import type { BudgetHold } from '../../../core/index.ts';
import { type Dimensions, SUM_NAMES } from '../kit/call-rows.ts';
import { digest } from '../kit/check.ts';
import { factText } from '../kit/facts.ts';
import { within } from '../kit/guard.ts';
import { type Connection, defineScript, nodesOf, type RedisClient, runScript } from './client.ts';
import { createKeys, type Keys } from './keys.ts';
import { readJson } from './ledger-reads.ts';
import { ADD_USAGE, MOVE_BUDGETS, MOVE_REQUEST } from './migration-scripts.ts';

/*
 * From version 2 to 3. There the keys of accounts were spread over hash tags, a budget was a part of its account, a user's
 * budget an account whose name began with a control character and `user:`, usage was counted by account and day, and no
 * account's name was written anywhere. First all keys move to the one hash tag as they are, then each is taken over by a
 * script of its own that does nothing the second time: a migration that breaks off goes on at the next start. Names are
 * learned when accounts are used; so is which account was a user's budget.
 */

/** How long the lock is held without a sign of life. */
const LOCK_MS = 30_000;
const WAIT_MS = 200;
/** How long one step may take; the whole takes as long as there are keys. */
const STEP_MS = 10_000;
/** How many keys the server looks at before it serves others again. */
const SCAN_COUNT = 1000;
/** What the protocol calls a string of bytes; what DUMP gives is no text. */
const BLOB = 36;
/** What PTTL says of a key that is not there. */
const GONE = -2;
/** How many fields one script takes over. */
const BATCH = 500;

/** ARGV: id, how long. Whether the lock is this gateway's. */
const LOCK = defineScript(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`);

/** How to see that the version is not 2 any more, and how to say so. */
export interface Marks {
  isDone(): Promise<boolean>;
  finish(): Promise<unknown>;
}

/** Takes the keys of version 2 over; of several gateways one does it, and the others wait for it. */
export async function migrate(client: RedisClient, prefix: string, { isDone, finish }: Marks): Promise<void> {
  const lock = `${prefix}:migrating`;
  const id = randomUUID();
  const hold = async (): Promise<boolean> =>
    (await within(STEP_MS, runScript(client, LOCK, [lock], [id, String(LOCK_MS)]))) === 1;
  for (let isHeld = await hold(); !isHeld; isHeld = await hold()) {
    if (await isDone()) return;
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  }
  if (!(await isDone())) {
    await takeAll(client, createKeys(prefix), hold);
    await finish();
  }
  await client.del(lock);
}

async function takeAll(client: RedisClient, keys: Keys, hold: () => Promise<boolean>): Promise<void> {
  await client.set(keys.migrated, '1');
  const old = new RegExp(`^${keys.prefix}:\\{\\d+\\}:`);
  await forEachKey(client, `${keys.prefix}:{*}:*`, hold, async (key) => {
    if (old.test(key)) await moveKey(client, keys, key, key.replace(old, `${keys.ledger}:`));
  });
  for (const kind of ['account', 'usage', 'request'] as const)
    await forEachKey(client, `${keys.ledger}:${kind}:*`, hold, (key) =>
      takeOver(client, keys, key, kind, key.slice(`${keys.ledger}:${kind}:`.length)),
    );
}

/** Does something for each key of all nodes, some at once, while the lock is held. */
async function forEachKey(
  client: RedisClient,
  pattern: string,
  hold: () => Promise<boolean>,
  work: (key: string) => Promise<unknown>,
): Promise<void> {
  for (const node of await nodesOf(client)) {
    let cursor = '0';
    do {
      if (!(await hold())) throw new Error('another gateway goes on with the migration');
      const found = await within(STEP_MS, node.scan(cursor, { MATCH: pattern, COUNT: SCAN_COUNT }));
      await within(STEP_MS, Promise.all(found.keys.map(work)));
      cursor = found.cursor;
    } while (cursor !== '0');
  }
}

/** Gives a key its new name. On a cluster it is copied, with how long it lives, and deleted: no command moves one between nodes. */
async function moveKey(client: RedisClient, keys: Keys, from: string, to: string): Promise<void> {
  if (to === keys.due) {
    const members = await client.zRangeWithScores(from, 0, -1);
    if (members.length > 0) await client.zAdd(to, members);
  } else if ('masters' in client) {
    const [value, left] = await Promise.all([dump(client, from), client.pTTL(from)]);
    if (left !== GONE) await client.restore(to, Math.max(0, left), value, { REPLACE: true });
  } else {
    await client.rename(from, to).catch(async (error: unknown) => {
      // Its time may have come in between.
      if ((await client.exists(from)) > 0) throw error;
    });
    return;
  }
  await client.unlink(from);
}

function dump(client: RedisClient, key: string) {
  return client.withTypeMapping({ [BLOB]: Buffer }).dump(key);
}

async function takeOver(client: RedisClient, keys: Keys, key: string, kind: string, rest: string): Promise<void> {
  if (kind === 'account') await takeAccount(client, keys, key, rest);
  if (kind === 'usage') await takeUsage(client, keys, key, rest);
  if (kind === 'request') await takeRequest(client, key, rest);
}

/** The budgets of keys leave the account, and the account is listed. */
async function takeAccount(client: RedisClient, keys: Keys, key: string, id: string): Promise<void> {
  const purses = (await client.hKeys(key)).flatMap((field) => /^(?:spent|held):\+(.*)$/s.exec(field)?.[1] ?? []);
  const pairs = [...new Set(purses)].flatMap((purse) => [purse, digest(`key:${purse}`)]);
  for (let place = 0; place === 0 || place < pairs.length; place += BATCH)
    await runScript(
      client,
      MOVE_BUDGETS,
      [key, keys.accounts],
      [keys.ledger, id, ...pairs.slice(place, place + BATCH)],
    );
}

/** A day of usage becomes the first hour of that day. */
async function takeUsage(client: RedisClient, keys: Keys, key: string, rest: string): Promise<void> {
  const id = rest.slice(0, rest.indexOf(':'));
  const hour = String(Date.parse(`${rest.slice(-10)}T00:00:00Z`));
  const fields = (await client.hKeys(key)).flatMap((field) => {
    const [operation = '', provider = '', model = '', keyId = ''] = readJson<readonly string[]>(field);
    return [field, groupOf(id, { operation, provider, model, keyId })];
  });
  for (let place = 0; place < fields.length; place += BATCH)
    await runScript(client, ADD_USAGE, [key], ['', keys.ledger, hour, ...fields.slice(place, place + BATCH)]);
}

/** What is held, or was swept and may still be corrected, names its budgets by digest. */
async function takeRequest(client: RedisClient, key: string, member: string): Promise<void> {
  const [purse, amount, usage, field] = await client.hmGet(key, ['purse', 'amount', 'usage', 'field']);
  if (purse == null) return;
  const budget = purse === '' ? '' : digest(`key:${purse.slice(1)}`);
  const swept = ['', '', ''];
  if (usage != null && field != null) {
    const [operation = '', provider = '', model = '', keyId = ''] = readJson<readonly string[]>(field);
    swept[0] = String(Date.parse(`${usage.slice(-10)}T00:00:00Z`));
    swept[1] = groupOf(member.slice(0, member.indexOf(':')), { operation, provider, model, keyId });
    swept[2] = SUM_NAMES.map((name) => ({ requests: '1', cost: amount ?? '0' })[name as string] ?? '0').join(' ');
  }
  await runScript(client, MOVE_REQUEST, [key], [budget, ...swept]);
}

interface Before {
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  readonly keyId: string;
}

/** The group of the rollup that a row of usage becomes. */
function groupOf(accountDigest: string, { operation, provider, model, keyId }: Before): string {
  const of = [operation, provider, model].map(factText);
  const dimensions: Dimensions = [`~${accountDigest}`, `~${accountDigest}`, factText(keyId), '[]', ...of];
  return JSON.stringify(dimensions);
}

/** Finds what budgets were in version 2. */
export interface Legacy {
  /** For each budget the key of the account that it was, or ''. */
  accountsOf(budgets: readonly BudgetHold[]): Promise<readonly string[]>;
}

const NONE: readonly string[] = Object.freeze([]);
const USER = 'user:';

export function createLegacy(connection: Connection, keys: Keys): Legacy {
  let isMigrated: boolean | undefined;
  return {
    async accountsOf(budgets) {
      if (isMigrated === false || !budgets.some(({ id }) => id.startsWith(USER))) return NONE;
      isMigrated ??= (await connection.read((client) => client.get(keys.migrated))) !== null;
      if (!isMigrated) return NONE;
      return budgets.map(({ id }) => (id.startsWith(USER) ? keys.ofAccount(`\u0001${id}`).account : ''));
    },
  };
}
