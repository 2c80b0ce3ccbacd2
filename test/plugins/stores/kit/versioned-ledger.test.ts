import { expect } from 'chai';
import { createLedgerChanges, type LedgerKeys } from '../../../../plugins/stores/kit/ledger.ts';
import {
  createVersionedLedger,
  type LedgerCommit,
  type StoredRow,
} from '../../../../plugins/stores/kit/versioned-ledger.ts';
import { budget, NOW, rejectsUnavailable, reservation, settlement } from '../../../conformance/store.ts';

/** Rows of a server; counts its requests. */
class Server {
  readonly rows = new Map<string, StoredRow>();
  readonly commits: LedgerCommit[] = [];
  reads = 0;
  /** Reservations that the sweeper finds, once. */
  expired: LedgerKeys[] = [];
  /** Runs before a commit is checked, as a concurrent change by another process. */
  before: (changes: LedgerCommit) => unknown = () => undefined;
  /** Runs after a commit was written and before its response. */
  after: () => unknown = () => undefined;
  /** The ledger that asked for its turn. */
  turn: string | undefined;
  /** True if a broken connection is replaced. */
  doesReconnect = false;

  /** Opens the ledger of a separate process. */
  open(timeoutMs = 1000) {
    const transact = createVersionedLedger({
      ...{ kind: 'fake', timeoutMs, now: () => NOW },
      reconnected: async () => this.doesReconnect,
      read: async (ids) => {
        this.reads += 1;
        return this.find(ids);
      },
      commit: async (changes) => {
        await this.before(changes);
        const { expected, version, rows } = changes;
        const isSame = [...expected].every(([id, known]) => (this.rows.get(id)?.version ?? '') === known);
        if (!isSame) return this.find([...expected.keys()]);
        this.commits.push(changes);
        for (const { id, text } of rows) this.rows.set(id, { id, version, text });
        await this.after();
        return undefined;
      },
    });
    return createLedgerChanges({ transact, findExpired: async () => this.expired.splice(0) });
  }

  find(ids: readonly string[]): readonly StoredRow[] {
    return ids.flatMap((id) => this.rows.get(id) ?? []);
  }

  accountOf(name: string) {
    return JSON.parse(this.rows.get(`account:${name}`)?.text ?? '{}');
  }
}

describe('a ledger of rows with versions', () => {
  const key = budget('key', 100);
  const requestOf = (requestId: string, amount = 10) =>
    reservation({ account: 'a', requestId, amount, budgets: [key] });

  it('keeps an unexpired reservation, although it was reported to the sweeper', async () => {
    const server = new Server();
    const ledger = server.open();
    await ledger.credit('a', 'c', 100, 'top-up', NOW);
    await ledger.reserve(requestOf('r'));
    for (const [now, swept] of [
      [NOW + 1000, 0],
      [NOW + 60_001, 1],
    ] as const) {
      server.expired = [{ account: 'a', name: 'a', kind: 'charge', ref: 'r' }];
      expect(await ledger.sweep(now)).to.equal(swept);
    }
    expect(server.accountOf('a')).to.include({ held: 0, spent: 10 });
  });

  it('combines waiting operations in one transaction, with one round trip if the rows are cached', async () => {
    const server = new Server();
    const ledger = server.open();
    await ledger.credit('a', 'c', 100, 'top-up', NOW);
    server.commits.length = 0;
    const all = await Promise.all(Array.from({ length: 32 }, (_, n) => ledger.reserve(requestOf(`r${n}`))));
    expect(all.filter(({ outcome }) => outcome === 'held')).to.have.length(10);
    expect(server.commits).to.have.length(1);
    server.reads = 0;
    await ledger.settle(settlement({ account: 'a', requestId: 'r0', amount: 4 }));
    await ledger.reserve(requestOf('next', 6));
    expect([server.commits.length, server.reads]).to.deep.equal([3, 0]);
    expect(server.accountOf('a')).to.include({ balance: 96, held: 96, spent: 4 });
  });

  it('decides again by the current rows when another process was faster', async () => {
    const server = new Server();
    const [one, other] = [server.open(), server.open()];
    await one.credit('a', 'c', 10, 'top-up', NOW);
    await one.reserve(requestOf('r1', 5));
    await other.reserve(requestOf('r2', 5));
    // Its cache shows an empty balance, which is outdated after the next credit.
    expect(await one.reserve(requestOf('r3'))).to.deep.equal({ outcome: 'insufficient' });
    await other.credit('a', 'd', 10, 'top-up', NOW);
    expect(await one.reserve(requestOf('r3'))).to.deep.equal({ outcome: 'held', used: [20] });
    expect((await other.reserve(requestOf('r3'))).outcome).to.equal('duplicate');
    expect(await other.settle(settlement({ account: 'a', requestId: 'r3' }))).to.equal(true);
    expect(await one.settle(settlement({ account: 'a', requestId: 'r3' }))).to.equal(false);
    expect(server.accountOf('a')).to.include({ balance: 10, held: 10, spent: 10, last_entry: 3 });
  });

  it('refuses a change after repeated conflicts, and writes nothing of it', async () => {
    const server = new Server();
    // The limit applies to each change, so a busy machine must not delay the others by as much.
    const [one, other] = [server.open(300), server.open(60_000)];
    await other.credit('a', 'first', 10, 'top-up', NOW);
    let n = 0;
    let isOther = false;
    server.before = async () => {
      if (isOther) return;
      isOther = true;
      await other.credit('a', `c${n++}`, 1, 'top-up', NOW);
      isOther = false;
    };
    await rejectsUnavailable(one.reserve(requestOf('r')));
    expect(n).to.be.greaterThan(1);
    expect(server.accountOf('a')).to.include({ balance: 10 + n, held: 0 });
  });

  it('comes next when others came before it often', async () => {
    const server = new Server();
    const ledger = server.open(60_000);
    await ledger.credit('a', 'first', 10, 'top-up', NOW);
    let attempts = 0;
    server.before = ({ turn }: LedgerCommit) => {
      attempts += 1;
      // Keeps FIFO order.
      if (attempts > 1 && turn !== undefined && turn === server.turn) return;
      server.turn = turn;
      const row = server.rows.get('account:a') as StoredRow;
      server.rows.set('account:a', { ...row, version: `another ${attempts}` });
    };
    expect(await ledger.reserve(requestOf('r'))).to.deep.equal({ outcome: 'held', used: [10] });
    expect(attempts).to.equal(5);
  });

  it('reads the rows again when it does not know whether a change was written', async () => {
    const server = new Server();
    const ledger = server.open();
    server.after = () => {
      throw new Error('the connection was lost');
    };
    const error = await ledger.credit('a', 'c', 10, 'top-up', NOW).catch((reason) => reason);
    expect(error.message).to.equal('the connection was lost');
    server.after = () => undefined;
    expect(await ledger.credit('a', 'c', 10, 'top-up', NOW)).to.equal(false);
    expect(await ledger.reserve(requestOf('r'))).to.deep.equal({ outcome: 'held', used: [10] });
  });

  for (const [when, place] of [
    ['before a change is written', 'before'],
    ['after a change is written', 'after'],
  ] as const)
    it(`makes a change once when the connection breaks ${when} and is replaced in time`, async () => {
      const server = new Server();
      const ledger = server.open();
      await ledger.credit('a', 'c', 100, 'top-up', NOW);
      await ledger.reserve(requestOf('held'));
      server.doesReconnect = true;
      server.commits.length = 0;
      const breakOnce = (): void => {
        server[place] = () => {
          server[place] = () => undefined;
          throw new Error('the connection was lost');
        };
      };
      breakOnce();
      const [held, settled, credited] = await Promise.all([
        ledger.reserve(requestOf('r')),
        ledger.settle(settlement({ account: 'a', requestId: 'held', amount: 4 })),
        ledger.credit('a', 'd', 10, 'top-up', NOW),
      ]);
      expect([held.outcome, settled, credited]).to.deep.equal(['held', true, true]);
      expect(server.commits).to.have.length(1);
      breakOnce();
      expect(await ledger.settle(settlement({ account: 'a', requestId: 'r', amount: 10 }))).to.equal(true);
      expect(server.commits).to.have.length(2);
      expect(server.accountOf('a')).to.include({ balance: 96, held: 0, spent: 14, last_entry: 4 });
      expect((await ledger.reserve(requestOf('held'))).outcome).to.equal('duplicate');
    });

  it('makes a change once if it is written during its retry', async () => {
    const server = new Server();
    const ledger = server.open();
    await ledger.credit('a', 'c', 100, 'top-up', NOW);
    server.doesReconnect = true;
    const sent: LedgerCommit[] = [];
    server.before = (changes: LedgerCommit) => {
      sent.push(changes);
      if (sent.length === 1) throw new Error('the connection was lost');
      // The delayed commit arrives now.
      if (sent.length === 2)
        for (const { id, text } of sent[0]?.rows ?? [])
          server.rows.set(id, { id, version: sent[0]?.version ?? '', text });
    };
    expect(await ledger.reserve(requestOf('r'))).to.deep.equal({ outcome: 'held', used: [10] });
    expect(sent).to.have.length(2);
    expect(server.accountOf('a')).to.include({ balance: 100, held: 10 });
  });

  it('refuses a change by the current rows, not by cached ones', async () => {
    const server = new Server();
    const [one, other] = [server.open(), server.open()];
    await one.credit('a', 'all', 9_000_000_000_000_000, 'top-up', NOW);
    expect(await one.credit('a', 'all', 9_000_000_000_000_000, 'top-up', NOW)).to.equal(false);
    await other.credit('a', 'back', -50, 'refund', NOW);
    const [fits, rejected] = await Promise.allSettled([
      one.credit('a', 'again', 50, 'top-up', NOW),
      one.credit('a', 'more', 1, 'top-up', NOW),
    ]);
    expect(fits).to.have.property('value', true);
    expect(rejected).to.have.nested.property('reason.code', 'invalid_request');
    expect(server.accountOf('a')).to.include({ credited: 9_000_000_000_000_000, last_entry: 3 });
  });

  it('refuses only the changes that are wrong, or need a row that cannot be read', async () => {
    const server = new Server();
    const ledger = server.open();
    server.rows.set('account:spoiled', { id: 'account:spoiled', version: 'v', text: '{"balance":1e300}' });
    await ledger.credit('a', 'c', 100, 'top-up', NOW);
    const [wrong, unreadable, held] = await Promise.allSettled([
      ledger.reserve(requestOf('wrong', 0.5)),
      ledger.credit('spoiled', 'c', 10, 'top-up', NOW),
      ledger.reserve(requestOf('right')),
    ]);
    expect(wrong).to.have.nested.property('reason.code', 'internal_error');
    expect(unreadable).to.have.nested.property('reason.code', 'store_unavailable');
    expect(held).to.have.nested.property('value.outcome', 'held');
    expect(server.rows.get('account:spoiled')?.version).to.equal('v');
  });
});
