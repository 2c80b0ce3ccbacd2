import { type ChildProcess, fork } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Ledger, LedgerEntry, Store } from '../../../contract/index.ts';
import { openDatabase, openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { NOW, outcomeOf, reservation, settlement, sums } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';
import type { LedgerOrder, Reported } from './ledger-worker.ts';

const SCRIPT = fileURLToPath(new URL('./ledger-worker.ts', import.meta.url));
const CREDIT = 1_000_000;

/** Separate process that works on the store's ledger. */
class Neighbour {
  readonly reported = new Map<string, Reported['state']>();
  onMessage: () => void = () => undefined;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #ready: Promise<unknown>;
  #respond: (message: { readonly response?: unknown; readonly error?: string }) => void = () => undefined;

  constructor(folder: string) {
    this.#child = fork(SCRIPT, [JSON.stringify({ folder })], { execArgv: ['--import', 'tsx'] });
    this.#exited = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#ready = new Promise((resolve) => this.#child.once('message', resolve));
    this.#child.on('message', (message: { readonly reported?: Reported }) => {
      if (!message.reported) return this.#respond(message as object);
      this.reported.set(message.reported.id, message.reported.state);
      this.onMessage();
    });
  }

  async send(order: LedgerOrder): Promise<unknown> {
    await this.#ready;
    const reply = new Promise((resolve, reject) => {
      this.#respond = ({ response, error }) => (error === undefined ? resolve(response) : reject(new Error(error)));
      void this.#exited.then(() => resolve('it ended'));
    });
    this.#child.send(order);
    return reply;
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#child.kill(signal);
    if (signal === 'SIGKILL') await this.#exited;
  }

  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#exited;
  }
}

describe('a process that shares its sqlite store with others', () => {
  const root = useTempFolder('sqlite-alone');
  let count = 0;
  let folder: string;
  const neighbours: Neighbour[] = [];
  const stores: Store[] = [];
  const startNeighbour = (): Neighbour => {
    const neighbour = new Neighbour(folder);
    neighbours.push(neighbour);
    return neighbour;
  };
  const openStore = async (): Promise<Store> => {
    const store = await openSqlite({ folder });
    stores.push(store);
    return store;
  };
  beforeEach(async () => {
    folder = path.join(root, `store-${count++}`);
    const store = await openSqlite({ folder });
    await store.ledger.credit('a', 'first', CREDIT, 'top-up', NOW);
    await store.close();
  });
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await Promise.all(neighbours.splice(0).map((neighbour) => neighbour.kill()));
  });

  /**
   * Returns all entries of the account after these checks: one entry per charge, their sum equals the balance, and the
   * credit is used up.
   */
  const readBooks = async (ledger: Ledger): Promise<readonly LedgerEntry[]> => {
    const all: LedgerEntry[] = [];
    for (let page: readonly LedgerEntry[] = []; all.length === 0 || page.length > 0; all.push(...page)) {
      const after = all.at(-1)?.id;
      page = await ledger.entries('a', { limit: 1000, ...(after !== undefined && { after }) });
    }
    expect(new Set(all.map(({ ref }) => ref)).size, 'no charge twice').to.equal(all.length);
    const { balance, spent } = await ledger.balance('a');
    expect(all.reduce((sum, { amount }) => sum + amount, 0)).to.equal(balance);
    expect(balance).to.equal(CREDIT - spent);
    const usage = await ledger.report({ edges: [0, NOW + 86_400_000], by: ['model'], account: 'a' });
    expect(usage.reduce((sum, { cost }) => sum + cost, 0n)).to.equal(BigInt(spent));
    return all;
  };

  it('keeps, when it is killed, every reservation, charge and release that it acknowledged', async () => {
    const reported = new Map<string, Reported['state']>();
    for (let round = 0; round < 6; round++) {
      const neighbour = startNeighbour();
      const enough = 20 + Math.floor(Math.random() * 600);
      neighbour.onMessage = () => {
        if (neighbour.reported.size >= enough) void neighbour.kill();
      };
      await neighbour.send({ do: 'calls', account: 'a', by: `r${round}`, count: 100_000 });
      for (const [id, state] of neighbour.reported) reported.set(id, state);
    }
    const { ledger } = await openStore();
    const charged = new Set((await readBooks(ledger)).map(({ ref }) => ref));
    for (const [id, state] of reported) {
      expect(await outcomeOf(ledger.reserve(reservation({ account: 'a', requestId: id }))), id).to.equal('duplicate');
      if (state === 'settled') expect(charged.has(id), `${id} is charged`).to.equal(true);
      if (state === 'released')
        expect(await ledger.settle(settlement({ account: 'a', requestId: id }))).to.equal(false);
    }
    await ledger.sweep(Number.MAX_SAFE_INTEGER / 2 ** 10);
    expect((await ledger.balance('a')).held).to.equal(0);
    const database = await openDatabase({ folder });
    expect(database.prepare('PRAGMA integrity_check').get()?.['integrity_check']).to.equal('ok');
    database.close();
  });

  it('is joined by another one in the middle of its work, and both are exact', async () => {
    const neighbour = startNeighbour();
    const working = neighbour.send({ do: 'calls', account: 'a', by: 'theirs', count: 3000 });
    await new Promise<void>((resolve) => {
      neighbour.onMessage = resolve;
    });
    const { ledger } = await openStore();
    for (let n = 0; n < 300; n++) {
      expect(
        await outcomeOf(ledger.reserve(reservation({ account: 'a', requestId: `ours-${n}`, amount: 10 }))),
      ).to.equal('held');
      await ledger.settle(settlement({ account: 'a', requestId: `ours-${n}`, amount: 3 }));
    }
    expect(await working).to.equal(3000);
    const { held, spent } = await ledger.balance('a');
    // Three of five calls are settled at 7, one is released and one stays held at 10.
    expect({ held, spent }).to.deep.equal({ held: 6000, spent: 1800 * 7 + 300 * 3 });
    expect((await readBooks(ledger)).length).to.equal(1 + 1800 + 300);
  });

  it('sees credits of another process, which sees its reservations', async () => {
    const neighbour = startNeighbour();
    const reserve = (requestId: string, amount: number) =>
      neighbour.send({ do: 'reserve', account: 'b', requestId, amount });
    expect(await reserve('r1', 10)).to.equal('insufficient');
    const { ledger } = await openStore();
    expect(await ledger.credit('b', 'c1', 100, 'top-up', NOW)).to.equal(true);
    expect(await reserve('r2', 60)).to.equal('held');
    expect(await outcomeOf(ledger.reserve(reservation({ account: 'b', requestId: 'r3', amount: 60 })))).to.equal(
      'insufficient',
    );
    expect(await outcomeOf(ledger.reserve(reservation({ account: 'b', requestId: 'r2', amount: 1 })))).to.equal(
      'duplicate',
    );
    expect(await ledger.settle(settlement({ account: 'b', requestId: 'r2', amount: 20 }))).to.equal(true);
    expect(await neighbour.send({ do: 'settle', account: 'b', requestId: 'r2', amount: 20 })).to.equal(false);
    expect(sums(await ledger.balance('b'))).to.deep.equal({ balance: 80, held: 0, spent: 20 });
  });

  it('delays no other process while it is stopped, and its reservations stay', async () => {
    const neighbour = startNeighbour();
    expect(await neighbour.send({ do: 'reserve', account: 'a', requestId: 'r1', amount: CREDIT - 10 })).to.equal(
      'held',
    );
    await neighbour.kill('SIGSTOP');
    const { ledger } = await openStore();
    expect(await outcomeOf(ledger.reserve(reservation({ account: 'a', requestId: 'r2', amount: 11 })))).to.equal(
      'insufficient',
    );
    expect(await outcomeOf(ledger.reserve(reservation({ account: 'a', requestId: 'r3', amount: 10 })))).to.equal(
      'held',
    );
    await neighbour.kill('SIGCONT');
    expect(await neighbour.send({ do: 'settle', account: 'a', requestId: 'r3', amount: 10 })).to.equal(true);
  });

  it('is followed by another one without loss, again and again', async () => {
    for (let round = 0; round < 4; round++) {
      const neighbour = startNeighbour();
      expect(await neighbour.send({ do: 'calls', account: 'a', by: `r${round}`, count: 100 })).to.equal(100);
      await neighbour.stop();
    }
    const { ledger } = await openStore();
    expect(sums(await ledger.balance('a'))).to.deep.equal({ balance: CREDIT - 240 * 7, held: 800, spent: 240 * 7 });
    expect((await readBooks(ledger)).length).to.equal(241);
  });
});
