import type { CallRow, Ledger } from '../../../contract/index.ts';
import { indexedBy } from '../kit/call-filter.ts';
import { type Dimensions, SUM_NAMES } from '../kit/call-rows.ts';
import { digest } from '../kit/check.ts';
import type { JournalMover } from '../kit/journal-mover.ts';
import { accountKeyOf, createRename, type RenamedCall, type Renaming } from '../kit/rename.ts';
import {
  accountRowId,
  nextVersion,
  pack,
  readAccountRow,
  type StoredRow,
  unpack,
  type VersionedRows,
} from '../kit/versioned-ledger.ts';
import { type Command, GROUP, type Keys, placeOf, readJson, scanHash } from './calls.ts';
import { type Connection, defineWrite, scanKeys } from './connection.ts';

/** Rows of the ledger in Redis. */
interface Rows extends Pick<VersionedRows, 'read'> {
  readonly keys: Keys;
  readonly journal: Pick<JournalMover, 'drain'>;
  /** Runs commands in one script if rows have the expected versions; otherwise returns the current rows. */
  run(expected: ReadonlyMap<string, string>, commands: readonly Command[]): Promise<readonly StoredRow[] | undefined>;
}

interface Parts extends Pick<Ledger, 'calls' | 'report'> {
  readonly connection: Connection;
  readonly ledgerRows: Rows;
}

/**
 * Adds the sums of a group to those of another one, and deletes the group. In a script, because calls of others with the same tags may
 * be counted at the same time.
 */
const MOVE_SUMS = defineWrite(`
local former, name = ARGV[2], ARGV[3]
for place = 0, tonumber(ARGV[5]) - 1 do
  local sum = redis.call('HGET', KEYS[1], former .. '.' .. place)
  if sum then
    redis.call('HINCRBY', KEYS[1], name .. '.' .. place, sum)
    redis.call('HDEL', KEYS[1], former .. '.' .. place)
  end
end
redis.call('HSET', KEYS[1], name, ARGV[4])
redis.call('HDEL', KEYS[1], former)
`);

/** Entries or requests that are read at once. */
const PAGE = 200;

/**
 * Creates the erasure of names. The account changes in one script, if its row is still that of the check for running calls: each
 * reservation changes it.
 */
export function createRedisRename({ connection, ledgerRows, ...reads }: Parts): NonNullable<Ledger['rename']> {
  const { keys } = ledgerRows;
  const run = (commands: readonly Command[], expected: ReadonlyMap<string, string> = new Map()) =>
    ledgerRows.run(expected, commands);

  const isRunning = async (renaming: Renaming): Promise<boolean> => {
    const held = await connection.read((client) => client.zRange(keys.due, 0, -1));
    for (let at = 0; at < held.length; at += PAGE)
      if ((await ledgerRows.read(held.slice(at, at + PAGE))).some((row) => isOf(renaming, row))) return true;
    return false;
  };

  const renameEntries = async ({ id, account, text }: Renaming): Promise<void> => {
    const [former, list] = [keys.entries(account), keys.entries(id)];
    for (;;) {
      const lines = await connection.read((client) => client.lRange(former, 0, PAGE - 1));
      if (lines.length === 0) return;
      const renamed = lines.map((line) => {
        const [n, kind, amount, reason, ref, ...rest] = readJson<readonly unknown[]>(line);
        return JSON.stringify([n, kind, amount, text(String(reason)), text(String(ref)), ...rest]);
      });
      await run([
        ['RPUSH', list, ...renamed],
        ['LTRIM', former, String(lines.length), '-1'],
      ]);
    }
  };

  const renameSums = async (renaming: Renaming): Promise<void> => {
    for (const hour of await connection.read((client) => client.zRangeByScore(keys.hours, '-inf', '+inf'))) {
      const rollup = keys.rollup(Number(hour));
      const found = await scanHash(connection, rollup);
      for (const [group, packed] of found) {
        const renamed = group.length === GROUP && renaming.dimensions(readJson<Dimensions>(packed));
        if (!renamed) continue;
        const text = JSON.stringify(renamed);
        const name = digest(text).slice(0, GROUP);
        await connection.write(MOVE_SUMS, [rollup], [group, name, text, String(SUM_NAMES.length)]);
      }
    }
  };

  const renameRow = async (renaming: Renaming): Promise<boolean> => {
    const { id, name, account } = renaming;
    const [former, renamed] = [accountRowId(account), accountRowId(id)];
    const [row] = await ledgerRows.read([former]);
    if (await isRunning(renaming)) return false;
    if (!row) return true;
    const before = readAccountRow(row);
    const { text } = pack(renamed, { ...before, name: id });
    const newer = await run(
      [
        ['SET', keys.row(renamed), `${nextVersion()} ${text}`],
        ['DEL', keys.row(former)],
        ['ZREM', keys.accounts, JSON.stringify(name)],
        ...(before.lastEntry > 0 ? [['ZADD', keys.accounts, '0', JSON.stringify(id)]] : []),
      ],
      new Map([[former, row.version]]),
    );
    return newer === undefined;
  };

  /** Deletes rows with a beginning that pass a test. */
  const dropRows = async (beginning: string, isDropped: (row: { id: string; text: string }) => boolean) => {
    for await (const found of scanKeys(connection, keys.row(beginning))) {
      const ids = found.map((key) => key.slice(keys.row('').length));
      const dropped = (await ledgerRows.read(ids)).filter(isDropped).map(({ id }) => keys.row(id));
      if (dropped.length > 0) await run([['DEL', ...dropped]]);
    }
  };

  return createRename({
    ...reads,
    isRunning,
    async replaceCalls(changes) {
      await run(changes.flatMap((change) => replaceCommands(keys, change)));
    },
    async renameAccount(renaming) {
      await ledgerRows.journal.drain();
      await renameEntries(renaming);
      await renameSums(renaming);
      if (!(await renameRow(renaming))) return false;
      // Ends of calls that were in the journal.
      await ledgerRows.journal.drain();
      await renameEntries(renaming);
      await renameSums(renaming);
      await dropRows('budget:', ({ id }) => renaming.isBudget(id.slice('budget:'.length)));
      await dropRows('request:', (row) => !isHeld(row) && isOf(renaming, row));
      const { shown } = renaming;
      const lists = [keys.callsBy('userId', shown), keys.callsBy('account', shown)];
      return (await connection.read((client) => Promise.all(lists.map((list) => client.zCard(list))))).every(
        (count) => count === 0,
      );
    },
  });
}

/** Reports if a request is of the person's account, or is open and of the person. */
function isOf(renaming: Renaming, { id, text }: { readonly id: string; readonly text: string }): boolean {
  const [, account] = JSON.parse(id.slice('request:'.length)) as readonly string[];
  if (account === renaming.account) return true;
  const row = unpack(id, text);
  return 'state' in row && row.state !== 'ended' && renaming.isOf(row.facts);
}

function isHeld({ id, text }: { readonly id: string; readonly text: string }): boolean {
  const row = unpack(id, text);
  return 'state' in row && row.state === 'held';
}

/** Commands that replace a record and its places in the lists. */
function replaceCommands(keys: Keys, { before, after }: RenamedCall): readonly Command[] {
  const [former, id] = [idOf(before), idOf(after)];
  const { cost, at, ...facts } = after;
  const [calls, records] = [keys.calls(at), keys.records(at)];
  return [
    ...listsOf(keys, before).map((list): Command => ['ZREM', list, former]),
    ['ZREM', calls, former],
    ['HDEL', records, former],
    ...listsOf(keys, after).map((list): Command => ['ZADD', list, '0', id]),
    ['ZADD', calls, '0', id],
    ['HSET', records, id, `${cost} ${JSON.stringify(facts)}`],
  ];
}

function listsOf(keys: Keys, call: CallRow): readonly string[] {
  return indexedBy(call).map(([name, value]) => keys.callsBy(name, value));
}

function idOf({ at, account, id }: CallRow): string {
  return `${placeOf(at)}:${JSON.stringify([accountKeyOf(account), id])}`;
}
