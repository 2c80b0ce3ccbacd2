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

/** The version of the file's form; another one is refused. */
const FORM = 1;
/** How many rows are written at once. */
const BATCH = 500;
/** Where gateways say that they run: documents and set of the policy `admin`. */
const NODES = 'policies.admin.nodes';
/** What says how gateways are now, and is gone when they are. */
const PASSING: readonly unknown[] = [NODES, 'core.trial', UNFINISHED_IMPORT];
const MAX_NODES = 1000;

/** What is known of a row of any kind. */
type Fields = TransferRow & Readonly<Record<string, unknown>>;

/** What rows come to: how many of each kind, and money in nano-dollars as texts, since sums may be more than a number counts. */
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
      await refuseRunning(store, 'While this wrote, a gateway began to run on the store: the file is removed.');
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
    'Keep the pepper with it: keys that are not under the same pepper ("auth.api-key.pepper", or the file "pepper" of the data folder) stop working.',
  );
}

/** `tollgate store import <file>`. */
export async function runImport(context: CommandContext): Promise<void> {
  const [file = ''] = context.args;
  const tally = await withIdleStore(context, async (store, transfer) => {
    for await (const row of transfer.read())
      if (!isPassing(row))
        throw new CliError(
          `the store is not empty: it has a ${row.is}`,
          EXIT.config,
          'Name a new one, such as store: sqlite:./new or an empty database or prefix. A started gateway writes to its store.',
        );
    // The whole file first: what is damaged is found before anything is written.
    const { tally: promised } = await readFile(file, async () => undefined);
    // From here on no gateway starts on the store, until all of it is there.
    const mark = store.keyv<{ readonly since: string }>(UNFINISHED_IMPORT);
    await mark.set('unfinished', { since: new Date().toISOString() });
    const { kept } = await readFile(file, (rows) => transfer.write(rows));
    await refuseRunning(
      store,
      'While this wrote, a gateway began to run on the store: throw the store away and begin anew.',
    );
    const found = createTally();
    for await (const row of transfer.read()) if (!isPassing(row)) found.add(row);
    compare(kept, found.result());
    await mark.delete('unfinished');
    return promised;
  });
  const io = createIo(context.terminal, context.globals.json === true);
  io.result({ file, ...tally }, `${describe(tally)}\nare in the store, and their sums are those of the file`);
}

/** Opens the store without the other plugins, where no gateway runs on it. */
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
        `a store of the kind "${store.kind}" cannot be moved: it does not tell all that it keeps`,
        EXIT.config,
        'sqlite, postgres and redis can; one in memory ends with its gateway.',
      );
    await refuseRunning(store, 'A gateway runs on the store, and would write what is then missing.');
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
    'Stop all gateways of this store first. One that was killed counts as running for 30 seconds.',
  );
}

function isPassing(row: TransferRow): boolean {
  const { is, namespace, set }: Fields = { ...row };
  return (is === 'document' && PASSING.includes(namespace)) || (is === 'member' && PASSING.includes(set));
}

/** Writes a head, a line for each row, and a foot with what they come to and the SHA-256 of all lines before it. */
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
  /** Of all rows, as the foot has it. */
  readonly tally: Tally;
  /** Of those that are not over yet: the others were not passed on. */
  readonly kept: Tally;
}

/** Reads a file, and passes its rows on. Throws where it is not whole, or not as it was written. */
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
    throw damaged('it does not end with a foot that fits its lines: it was cut off or changed');
  if (['balance', 'spent', 'credited'].some((name) => readObject(head['sums'])[name] !== result.sums[name]))
    throw damaged('the sums of its head are not those of its accounts: a gateway wrote to the store while it was made');
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
      : 'it is no export';
  throw damaged(`its form is not ${FORM}: ${made}`);
}

function damaged(why: string): CliError {
  return new CliError(
    `the file cannot be read: ${why}`,
    EXIT.checkFailed,
    'Nothing was written. Make it anew with "tollgate store export".',
  );
}

function refusedFile(file: string, cause: unknown): CliError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
  const why =
    code === 'EEXIST' ? 'is there already' : code === 'ENOENT' ? 'is not there' : `cannot be opened (${code})`;
  return new CliError(`the file ${file} ${why}`, EXIT.usage, 'Name another one.');
}

/** What has an end that is past: a store would drop it. */
function isOver(row: Fields): boolean {
  const until = row['expires'] ?? (row.is === 'request' ? readObject(row['request'])['until'] : undefined);
  const isHeld = row.is === 'request' && readObject(row['request'])['state'] === 'held';
  return !isHeld && typeof until === 'number' && until <= Date.now();
}

/** The money in rows of each kind. */
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

/** What every store keeps as it was: some end meanwhile, and redis makes one line of the oldest entries. */
const COUNTED = ['account', 'call', 'hour', 'member', 'number'];
const SUMMED = ['balance', 'held', 'spent', 'credited', 'entry_amount', 'call_cost'];

/** Throws where the store has not what was written into it. */
function compare(written: Tally, found: Tally): void {
  const wrong = [
    ...COUNTED.filter((name) => (written.counts[name] ?? 0) !== (found.counts[name] ?? 0)),
    ...SUMMED.filter((name) => (written.sums[name] ?? '0') !== (found.sums[name] ?? '0')),
  ];
  if (wrong.length === 0) return;
  throw new CliError(
    `the store has not what the file has: ${wrong.join(', ')} differ`,
    EXIT.checkFailed,
    'Throw this store away, and import into a new one. If it happens again, tell us.',
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
