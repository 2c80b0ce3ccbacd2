import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { type BatchRecord, createRecords, hash } from '../../../../plugins/operations/batches/records.ts';
import { Settler } from '../../../../plugins/operations/batches/settle.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';

const LINES = 1200;
const RECORD: BatchRecord = {
  ...{ id: 'batch_1', owner: 'o', account: 'a', key: 'k', createdAt: 1, provider: 'acme', vendor: 'v' },
  checked: { provider: 'acme', model: 'm', requested: 'acme/m', dialect: 'chat', requests: LINES, cost: LINES },
  ...{ batch: {}, callId: 'call_1', budgets: [], heldUntil: Date.now() + 1e6 },
  facts: { startedAt: 1 } as never,
  held: Object.fromEntries(Array.from({ length: LINES }, (_, at) => [hash(`line-${at}`), 1])),
};

describe('the end of a batch of 1,200 requests', () => {
  it('charges each of them once, 500 at a time (G62)', async () => {
    const results = Array.from({ length: LINES }, (_, at) =>
      JSON.stringify({ custom_id: `line-${at}`, response: { status_code: 200, body: { usage: {} } } }),
    ).join('\n');
    const body = (text: string) => ({
      ...{ status: 200, headers: {}, readAll: async () => Buffer.from(text), destroy() {} },
      body: (async function* () {
        yield Buffer.from(text);
      })(),
    });
    /** Changes of each transaction: those that wait at the same time. */
    const transactions: number[] = [];
    let waiting = 0;
    let next: Promise<void> | undefined;
    const transact = async (): Promise<void> => {
      waiting += 1;
      next ??= nextTurn().then(() => {
        transactions.push(waiting);
        waiting = 0;
        next = undefined;
      });
      await next;
    };
    const charged = new Map<string, number>();
    const ledger = {
      reserve: transact,
      async settle({ requestId, amount }: { readonly requestId: string; readonly amount: number }) {
        charged.set(requestId, (charged.get(requestId) ?? 0) + amount);
        await transact();
      },
      release: async () => true,
    };
    const offer = {
      ...{ wire: 'openai', paths: { chat: '/chat/completions' }, factor: 0.5 },
      response: () => ({ usage: undefined }),
    };
    const api = {
      models: {
        offers: () => new Map([['acme', offer]]),
        sendTo: async (_operation: string, _provider: string, { path }: { readonly path: string }) =>
          body(path.startsWith('/files') ? results : JSON.stringify({ status: 'completed', output_file_id: 'f' })),
        catalog: {},
      },
      books: { ledger },
      log: { warn() {}, error() {} },
    };
    const records = {
      batches: { put: async () => undefined },
      ended: async () => true,
    };
    await new Settler(api as never, records as never, 1000).refresh(RECORD);
    expect(charged.size).to.equal(LINES);
    expect([...new Set(charged.values())]).to.deep.equal([1]);
    expect(transactions).to.deep.equal([500, 500, 500, 500, 200, 200]);
  });
});

describe('records of batches', () => {
  it('count in the stored bytes of their account, however many users it has (G62)', async () => {
    const store = await openMemory(undefined, '1mb');
    const sets = store.sets;
    const records = createRecords({
      keyv: (name: string) => store.keyv(name) as never,
      stores: { sets, stored: store.stored('batches'), personalData: () => undefined } as never,
    });
    for (let at = 0; at < 60; at += 1) await records.batches.add({ ...RECORD, id: `batch_${at}`, owner: `user ${at}` });
    const bytes = await store.stored('batches').bytes('a');
    expect(bytes)
      .to.be.greaterThan(0)
      .and.at.most(1024 * 1024 * 1.05);
    const large = { ...RECORD, id: 'batch_large', batch: { text: 'x'.repeat(600_000) } };
    const refused = await records.batches.add(large).catch((error: { readonly code: string }) => error);
    expect(refused).to.include({ code: 'request_too_large' });
    expect(await records.batches.any('batch_large')).to.equal(undefined);
  });

  it('are found and removed that an earlier build stored as plain documents', async () => {
    const store = await openMemory();
    const { sets } = store;
    const documents = store.keyv<BatchRecord>('batches');
    const records = createRecords({
      keyv: (name: string) => store.keyv(name) as never,
      stores: { sets, stored: store.stored('batches'), personalData: () => undefined } as never,
    });
    await documents.set(RECORD.id, RECORD);
    expect(await records.batches.any(RECORD.id)).to.deep.equal(RECORD);
    const { held: _held, ...ended } = RECORD;
    await records.batches.put(ended);
    expect(await records.batches.any(RECORD.id)).to.deep.equal(ended);
    await records.batches.remove(RECORD);
    expect(await records.batches.any(RECORD.id)).to.equal(undefined);
  });
});
