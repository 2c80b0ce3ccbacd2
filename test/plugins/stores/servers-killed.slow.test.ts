import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { CallRow, LedgerEntry, Store } from '../../../contract/index.ts';
import { NOW } from '../../conformance/store.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../support/stores/redis-server.ts';
import { openStore, type StoreAddress } from '../../support/stores/store-race.ts';
import { eventually } from '../../support/wait.ts';

/** `npm run test:nightly` makes 20. */
const ROUNDS = Number(process.env['TOLLGATE_SOAK'] ?? 5);
const ACCOUNT = 'account';

/** Processes that are killed at any moment: between a commit and the move of its journal row, too. */
function testKills(kind: 'redis' | 'postgres', startServer: () => Promise<TestServer>): void {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server?.close());
  const address = (): StoreAddress => ({ kind, url: server.url });

  /** Runs a process until it has charged so many calls, or the server is killed; returns what was acknowledged. */
  const chargeUntilKilled = async (by: string, enough: number, killsServer: boolean): Promise<readonly string[]> => {
    const script = fileURLToPath(new URL('./charge-writer.ts', import.meta.url));
    const argument = JSON.stringify({ address: address(), by, account: ACCOUNT });
    const child = fork(script, [argument], { execArgv: ['--import', 'tsx'] });
    const gone = new Promise((resolve) => child.once('exit', resolve));
    const acknowledged: string[] = [];
    let restarted: Promise<void> | undefined;
    child.on('message', ({ id }: { id: string }) => {
      acknowledged.push(id);
      if (acknowledged.length < enough) return;
      if (killsServer && acknowledged.length < enough * 2) restarted ??= server.kill().then(() => server.start());
      else child.kill('SIGKILL');
    });
    await gone;
    await restarted;
    return acknowledged;
  };

  const readBooks = async ({ ledger }: Store): Promise<[readonly LedgerEntry[], readonly CallRow[]]> => {
    const entries: LedgerEntry[] = [];
    for (let more = true; more; ) {
      const last = entries.at(-1)?.id;
      const page = await ledger.entries(ACCOUNT, { limit: 500, ...(last !== undefined && { after: last }) });
      entries.push(...page);
      more = page.length === 500;
    }
    const calls: CallRow[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page = await ledger.calls({ account: ACCOUNT, limit: 500, ...(after !== '' && { after }) });
      calls.push(...page.calls);
      after = page.next;
    }
    return [entries, calls];
  };

  it(`lose nothing that was acknowledged and double nothing, ${ROUNDS} times, while another process reads`, async () => {
    const acknowledged: string[] = [];
    const reader = await openStore(address());
    let isOver = false;
    const reads = (async () => {
      while (!isOver) {
        // Refused while the server is away.
        await reader.ledger.calls({ account: ACCOUNT, limit: 10 }).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 50 * Math.random()));
      }
    })();
    for (let round = 0; round < ROUNDS; round++) {
      const enough = 20 + Math.floor(Math.random() * 100);
      const charged = await Promise.all(
        [0, 1].map((n) => chargeUntilKilled(`r${round}-${n}`, enough * (n + 1), n === 1 && round % 4 === 3)),
      );
      acknowledged.push(...charged.flat());
    }
    isOver = true;
    await reads;
    await eventually(() => reader.health());
    // Holds of calls that were on their way.
    await reader.ledger.sweep(NOW + 10_000);
    const { balance, held, spent } = await reader.ledger.balance(ACCOUNT);
    const [entries, calls] = await readBooks(reader);
    expect(held).to.equal(0);
    expect(balance).to.equal(0 - spent);
    expect(entries.map(({ id }) => Number(id))).to.deep.equal(entries.map((_, n) => entries.length - n));
    expect(entries.reduce((sum, { amount }) => sum + amount, 0)).to.equal(balance);
    expect(new Set(entries.map(({ ref }) => ref)).size).to.equal(entries.length);
    expect(new Set(calls.map(({ id }) => id)).size).to.equal(calls.length);
    expect(calls).to.have.length(entries.length);
    expect(calls.reduce((sum, { cost }) => sum + cost, 0)).to.equal(spent);
    const costs = new Map(calls.map(({ id, cost }) => [id, cost]));
    for (const id of acknowledged) expect(costs.get(id), id).to.equal(10);
    const [row] = await reader.ledger.report({ edges: [NOW - 1, NOW + 3_600_000 * 3], by: [] });
    expect([row?.requests, row?.cost]).to.deep.equal([calls.length, BigInt(spent)]);
    await reader.health();
    await reader.close();
  });
}

describeWith('processes on a redis store that are killed', { 'redis-server': REDIS_SERVER }, () =>
  testKills('redis', () => startRedisServer()),
);
describeWith('processes on a postgres store that are killed', { postgres: POSTGRES, initdb: INITDB }, () =>
  testKills('postgres', startPostgresServer),
);
