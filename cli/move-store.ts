import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { VERSION } from '../config/package-root.ts';
import { readObject } from '../contract/json.ts';
import type { Store, Transfer, TransferRow } from '../contract/store.ts';
import { formatUsd } from '../contract/units.ts';
import { openFoundation, UNFINISHED_IMPORT } from '../core/plugins/foundation.ts';
import type { CommandContext } from './io.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { loadFor } from './load.ts';
import { createProgramLog } from './program-log.ts';

/** Format version of the file; others are refused. */
const FORM = 1;
/** Rows written at once. */
const BATCH = 500;
/** Documents and set of the policy `admin` in which running gateways register. */
const NODES = 'policies.admin.nodes';
/** State of running gateways, which is not moved. */
const PASSING: readonly unknown[] = [NODES, 'core.trial', UNFINISHED_IMPORT];
const MAX_NODES = 1000;

/** Unchecked fields of a row of any kind. */
type Fields = TransferRow & Readonly<Record<string, unknown>>;

/** Row counts by kind, and sums of money as texts in nano-dollars, since sums may exceed a JavaScript number. */
interface Tally {
  readonly counts: Readonly<Record<string, number>>;
  readonly sums: Readonly<Record<string, string>>;
}

/** `tollgate store export <file>`. */
export async function runExport(context: CommandContext): Promise<void> {
  const [file = ''] = context.args;
  const tally = await withIdleStore(context, async (store, transfer) => {
    const out = createWriteStream(file, { flags: 'wx', mode: 0o600 });
    await once(out, 'open').catch((cause: unknown) => Promise.reject(refusedFile(file, cause)));
    try {
      const written = await writeFile(out, store.kind, transfer);
      await refuseRunning(store, 'A gateway started on the store during the export, so the file was removed.');
      return written;
    } catch (error) {
      out.destroy();
      await rm(file, { force: true });
      throw error;
    }
  });
  const io = createIo(context.terminal, context.globals.json === true);
  io.result({ file, ...tally }, `${describe(tally)}\nare in ${file}`);
  io.note(
    'Back up the pepper too ("auth.api-key.pepper", or the file "pepper" of the data folder): keys work only with the same pepper.',
  );
}

/** `tollgate store import <file>`. */
export async function runImport(context: CommandContext): Promise<void> {
  const [file = ''] = context.args;
  const tally = await withIdleStore(context, async (store, transfer) => {
    for await (const row of transfer.read())
      if (!isPassing(row))
        throw new CliError(
          `the store is not empty: it contains a ${row.is}`,
          EXIT.config,
          'Use a new store, such as store: sqlite:./new or an empty database or prefix. A started gateway writes to its store.',
        );
    // Read the whole file first, so that damage is found before anything is written.
    const { tally: promised } = await readFile(file, async () => undefined);
    // From here on no gateway starts on the store until the import is complete.
    const mark = store.keyv<{ readonly since: string }>(UNFINISHED_IMPORT);
    await mark.set('unfinished', { since: new Date().toISOString() });
    const { kept } = await readFile(file, (rows) => transfer.write(rows));
    await refuseRunning(store, 'A gateway started on the store during the import. Delete the store and start again.');
    const found = createTally();
    for await (const row of transfer.read()) if (!isPassing(row)) found.add(row);
    compare(kept, found.result());
    await mark.delete('unfinished');
    return promised;
  });
  const io = createIo(context.terminal, context.globals.json === true);
  io.result({ file, ...tally }, `${describe(tally)}\nare in the store, and their sums match the file`);
}

/** Opens the store without the other plugins; fails if a gateway runs on it. */
async function withIdleStore<T>(
  context: CommandContext,
  work: (store: Store, transfer: Transfer) => Promise<T>,
): Promise<T> {
  const log = createProgramLog({ level: 'warn', format: 'auto', isTerminal: false, destination: process.stderr });
  const foundation = await openFoundation(await loadFor(context), log);
  const { store } = foundation;
  try {
    const transfer = store.endsWithProcess ? undefined : store.transfer?.();
    if (!transfer)
      throw new CliError(
        `a store of the kind "${store.kind}" cannot be moved: it cannot list all its data`,
        EXIT.config,
        'Only sqlite, postgres and redis can be moved; memory ends with its gateway.',
      );
    await refuseRunning(store, 'A gateway runs on the store, and its writes would be missing.');
    return await work(store, transfer);
  } finally {
    await foundation.close();
  }
}

async function refuseRunning(store: Store, sentence: string): Promise<void> {
  const ids = await store.sets.list(NODES, { limit: MAX_NODES });
  const nodes = await Promise.all(ids.map((id) => store.keyv<{ pid: number; host: string }>(NODES).get(id)));
  const node = nodes.find((each) => each !== undefined);
  if (!node) return;
  throw new CliError(
    `${sentence} It is process ${node.pid} on ${node.host}`,
    EXIT.config,
    'Stop all gateways of this store first. A killed gateway counts as running for 30 seconds.',
  );
}

function isPassing(row: TransferRow): boolean {
  const { is, namespace, set }: Fields = { ...row };
  return (is === 'document' && PASSING.includes(namespace)) || (is === 'member' && PASSING.includes(set));
}

/** Writes a header, one line per row, and a footer with the tally and the SHA-256 of all lines before it. */
async function writeFile(out: NodeJS.WritableStream, kind: string, transfer: Transfer): Promise<Tally> {
  const hash = createHash('sha256');
  const write = async (value: object): Promise<void> => {
    const line = `${JSON.stringify(value)}\n`;
    hash.update(line);
    if (!out.write(line)) await once(out, 'drain');
  };
  const before = createTally();
  for await (const row of transfer.read()) if (row.is === 'account') before.add(row);
  await write({
    tollgate_export: FORM,
    version: VERSION,
    made_at: new Date().toISOString(),
    store: kind,
    ...before.result(),
  });
  const tally = createTally();
  for await (const row of transfer.read()) {
    if (isPassing(row)) continue;
    tally.add(row);
    await write(row);
  }
  const result = tally.result();
  const foot = `${JSON.stringify({ end: true, ...result, sha256: hash.digest('hex') })}\n`;
  await new Promise<void>((resolve, reject) => {
    out.once('error', reject);
    out.end(foot, () => resolve());
  });
  return result;
}

interface ReadFile {
  /** Tally of all rows, as in the footer. */
  readonly tally: Tally;
  /** Tally of the rows passed on: those that have not expired. */
  readonly kept: Tally;
}

/** Reads a file and passes its rows on. Throws if it is incomplete or was changed. */
async function readFile(file: string, pass: (rows: readonly TransferRow[]) => Promise<void>): Promise<ReadFile> {
  const hash = createHash('sha256');
  const [tally, kept] = [createTally(), createTally()];
  const input = createReadStream(file, 'utf8');
  await once(input, 'open').catch((cause: unknown) => Promise.reject(refusedFile(file, cause)));
  let last: string | undefined;
  let count = 0;
  let batch: Fields[] = [];
  let head: Fields | undefined;
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (last !== undefined) {
      hash.update(`${last}\n`);
      const row = parse(last, count);
      if (count === 1) head = checkHead(row);
      else {
        tally.add(row);
        if (!isOver(row)) {
          kept.add(row);
          batch.push(row);
        }
      }
    }
    last = line;
    count += 1;
    if (batch.length < BATCH) continue;
    await pass(batch);
    batch = [];
  }
  const foot = parse(last ?? '', count);
  const result = tally.result();
  const isWhole = foot['end'] === true && foot['sha256'] === hash.digest('hex');
  if (!head || !isWhole || !isSame(foot, result))
    throw damaged('its checksum is missing or wrong, so it was truncated or changed');
  if (['balance', 'spent', 'credited'].some((name) => readObject(head['sums'])[name] !== result.sums[name]))
    throw damaged('its sums do not match its accounts; a gateway wrote to the store during the export');
  await pass(batch);
  return { tally: result, kept: kept.result() };
}

function parse(line: string, at: number): Fields {
  try {
    return JSON.parse(line) as Fields;
  } catch {
    throw damaged(`line ${at} is not JSON`);
  }
}

function checkHead(head: Fields): Fields {
  if (head['tollgate_export'] === FORM) return head;
  const made =
    typeof head['tollgate_export'] === 'number'
      ? `it was written by Tollgate ${String(head['version'])}`
      : 'it is not an export';
  throw damaged(`its format is not ${FORM}: ${made}`);
}

function damaged(why: string): CliError {
  return new CliError(
    `the file cannot be read: ${why}`,
    EXIT.checkFailed,
    'Nothing was written. Create it again with "tollgate store export".',
  );
}

function refusedFile(file: string, cause: unknown): CliError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
  const why =
    code === 'EEXIST' ? 'already exists' : code === 'ENOENT' ? 'does not exist' : `cannot be opened (${code})`;
  return new CliError(`the file ${file} ${why}`, EXIT.usage, 'Use another file.');
}

/** True for expired rows, which a store would drop. */
function isOver(row: Fields): boolean {
  const until = row['expires'] ?? (row.is === 'request' ? readObject(row['request'])['until'] : undefined);
  const isHeld = row.is === 'request' && readObject(row['request'])['state'] === 'held';
  return !isHeld && typeof until === 'number' && until <= Date.now();
}

/** Fields with money, by kind of row. */
const MONEY: Readonly<Record<string, readonly string[]>> = Object.freeze({
  account: ['balance', 'held', 'spent', 'credited'],
  entry: ['amount'],
  budget: ['spent', 'held'],
  call: ['cost'],
});

function createTally() {
  const counts: Record<string, number> = {};
  const sums: Record<string, bigint> = { balance: 0n, spent: 0n, credited: 0n };
  return {
    add(row: TransferRow): void {
      const fields: Fields = { ...row };
      counts[row.is] = (counts[row.is] ?? 0) + 1;
      for (const field of MONEY[row.is] ?? []) {
        const name = row.is === 'account' ? field : `${row.is}_${field}`;
        sums[name] = (sums[name] ?? 0n) + BigInt(Number(fields[field] ?? 0));
      }
    },
    result: (): Tally => ({
      counts: { ...counts },
      sums: Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, String(sum)])),
    }),
  };
}

function isSame(foot: Fields, { counts, sums }: Tally): boolean {
  const same = (one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): boolean =>
    [...new Set([...Object.keys(one), ...Object.keys(other)])].every((name) => one[name] === other[name]);
  return same(readObject(foot['counts']), counts) && same(readObject(foot['sums']), sums);
}

/**
 * Kinds that every store keeps unchanged. Rows of other kinds may expire meanwhile, and redis merges the oldest
 * entries.
 */
const COUNTED = ['account', 'call', 'hour', 'member', 'number'];
const SUMMED = ['balance', 'held', 'spent', 'credited', 'entry_amount', 'call_cost'];

/** Throws if the store does not hold what was written. */
function compare(written: Tally, found: Tally): void {
  const wrong = [
    ...COUNTED.filter((name) => (written.counts[name] ?? 0) !== (found.counts[name] ?? 0)),
    ...SUMMED.filter((name) => (written.sums[name] ?? '0') !== (found.sums[name] ?? '0')),
  ];
  if (wrong.length === 0) return;
  throw new CliError(
    `the store differs from the file: ${wrong.join(', ')}`,
    EXIT.checkFailed,
    'Delete this store and import into a new one. If it happens again, report an issue.',
  );
}

function describe({ counts, sums }: Tally): string {
  const kinds = Object.entries(counts).map(
    ([name, count]) => `${String(count).padStart(9)}  ${name.replaceAll('_', ' ')}`,
  );
  const usd = (name: string): string => formatUsd(BigInt(sums[name] ?? 0));
  return [
    ...kinds,
    `balances of ${usd('balance')} USD, ${usd('spent')} spent of ${usd('credited')} credited; entries of ${usd('entry_amount')} USD`,
  ].join('\n');
}
