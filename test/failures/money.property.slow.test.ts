import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import timers from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import pg from 'pg';
import type { Ledger, Outcome, Principal, Store } from '../../contract/index.ts';
import { Call } from '../../core/calls/call.ts';
import { completeChat } from '../../core/calls/chat.ts';
import { streamChat } from '../../core/calls/chat-stream.ts';
import { keyBudgetId, userBudgetId } from '../../plugins/policies/kit/index.ts';
import { openMemory } from '../../plugins/stores/memory/index.ts';
import { openPostgres } from '../../plugins/stores/postgres/index.ts';
import { openRedis } from '../../plugins/stores/redis/index.ts';
import { openSqlite } from '../../plugins/stores/sqlite/index.ts';
import { useTempFolder } from '../support/folders.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { GROUPINGS } from '../support/stores/ledger-model.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../support/stores/redis-server.ts';
import { type MoneyNode, startMoneyNode } from './money-node.ts';
import { type Deed, PIECE, PRICE, type Script, scriptedProvider } from './money-vendor.ts';

/** `TOLLGATE_PROPERTY_CASES=100000 TOLLGATE_PROPERTY_SEED=1 npx mocha test/failures/money.property.slow.test.ts -g "on redis"` */
const CASES = process.env['TOLLGATE_PROPERTY_CASES'];
const SEED = Number(process.env['TOLLGATE_PROPERTY_SEED'] ?? 20261122);

/** Limits the calls that a report reads, which include all earlier cases on the same store. */
const CASES_A_STORE = 50;

const CREDIT = 400;
const KEY_BUDGET = 250;
const USER_BUDGET = 300;

interface Reply extends Script {
  readonly do: 'call';
  readonly node: 0 | 1;
  /** Index of the key: a key that was rotated twice, or one of a user whose token has a budget. */
  readonly key: 0 | 1 | 2 | 3;
  readonly isStream: boolean;
  readonly maxTokens: number;
  readonly targets: 1 | 2;
  /** Number of pieces after which the caller disconnects; undefined stays to the end, -1 disconnects at once. */
  readonly leavesAt: number | undefined;
  /** Number of repeated requests. */
  readonly retries: number;
}

type Step =
  | Reply
  | { readonly do: 'clock'; readonly byMs: number }
  /** Sweep by another node with a fast clock, which treats running calls as abandoned. */
  | { readonly do: 'sweep' };

const deed = fc.constantFrom<Deed>('answers', 'answers', 'answers', 'fails', 'limits', 'breaks', 'errs inside');
const STEPS: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant('call' as const),
        node: fc.constantFrom(0 as const, 1 as const),
        key: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
        isStream: fc.boolean(),
        maxTokens: fc.integer({ min: 1, max: 30 }),
        targets: fc.constantFrom(1 as const, 2 as const),
        leavesAt: fc.option(fc.integer({ min: -1, max: 8 }), { nil: undefined }),
        retries: fc.constantFrom(0, 0, 1, 2),
        deeds: fc.tuple(deed, deed),
        pieces: fc.integer({ min: 0, max: 8 }),
        hidden: fc.integer({ min: 0, max: 30 }),
        tellsUsage: fc.boolean(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('clock' as const),
        byMs: fc.constantFrom(3_600_000, -3_600_000, 86_400_000),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
  ),
  { minLength: 1, maxLength: 12 },
);

let count = 0;
let offsetMs = 0;

/** Runs one case: concurrent calls on two nodes of one store, while clocks jump and other nodes sweep. */
async function run(store: Store, steps: readonly Step[]): Promise<void> {
  const account = `account-${count++}`;
  const reserved = new Map<string, number>();
  const ledger: Ledger = {
    ...store.ledger,
    async reserve(reservation) {
      const result = await store.ledger.reserve(reservation);
      if (result.outcome === 'held') reserved.set(reservation.requestId, reservation.amount);
      return result;
    },
  };
  const scripts = new Map<string, Script>();
  const worked = new Set<string>();
  const providers = [scriptedProvider(0, scripts, worked), scriptedProvider(1, scripts, worked)];
  const nodes = await Promise.all([startMoneyNode(store, ledger, providers), startMoneyNode(store, ledger, providers)]);
  await store.ledger.credit(account, 'first', CREDIT, 'test', Date.now());
  const ended: Ended[] = [];

  const principals = ([0, 1, 2, 3] as const).map(
    (at): Principal => ({
      ...{ credential: 'key', userId: `user-${account}`, account, keyId: `key-${at}-${account}` },
      ...(at < 2 ? { limitsId: `key-0-${account}`, budget: KEY_BUDGET } : { userLimits: { budget: USER_BUDGET } }),
    }),
  );
  const work: Promise<void>[] = [];
  for (const [at, step] of steps.entries()) {
    if (step.do === 'clock') offsetMs += step.byMs;
    else if (step.do === 'sweep') {
      // Waits until calls are running.
      for (let turn = 0; turn < at % 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      await store.ledger.sweep(Date.now() + 100 * 86_400_000);
    } else
      for (let again = 0; again <= step.retries; again++) {
        const id = `${at}.${again}`;
        scripts.set(id, step);
        work.push(
          send(nodes[step.node] as MoneyNode, principals[step.key] as Principal, id, step, (each) => ended.push(each)),
        );
      }
  }
  await Promise.all(work);
  for (const node of nodes) await node.close();
  offsetMs = 0;

  const { balance, held, spent } = await store.ledger.balance(account);
  const entries = await store.ledger.entries(account, { limit: 1000 });
  const charged = new Map<string, number>();
  for (const { kind, ref, amount } of entries)
    if (kind === 'charge') charged.set(ref, (charged.get(ref) ?? 0) - amount);
  expect(held, 'nothing is held').to.equal(0);
  expect(
    entries.reduce((sum, { amount }) => sum + amount, 0),
    'the books are the balance',
  ).to.equal(balance);
  expect(balance, 'the balance')
    .to.equal(CREDIT - spent)
    .and.at.least(0);
  const budgetIds = [keyBudgetId(`key-0-${account}`), userBudgetId(`user-${account}`)];
  const [ofKey, ofUser] = await store.ledger.budgets(budgetIds);
  expect(ofKey?.spent, 'the budget of the key').to.be.at.most(KEY_BUDGET);
  expect([ofUser?.held, (ofUser?.spent ?? 0) <= USER_BUDGET], 'the budget of the user').to.deep.equal([0, true]);
  const spentBy = { key: 0, user: 0 };
  for (const { callId, id, key, pieces, sent, cost } of ended) {
    const paid = charged.get(callId) ?? 0;
    expect(paid, `${id}: at most what was reserved`).to.be.at.most(reserved.get(callId) ?? 0);
    expect(paid, `${id}: at least what was delivered`).to.be.at.least(pieces * PRICE.output);
    if (pieces > 0) expect(paid, `${id}: and its prompt`).to.be.greaterThan(pieces * PRICE.output);
    expect(paid > 0, `${id}: sent and counted`).to.equal(sent);
    // Also if another node had already charged its reservation.
    expect(paid, `${id}: what it came to`).to.equal(sent ? cost : 0);
    spentBy[key < 2 ? 'key' : 'user'] += paid;
    // Refused calls, and calls that no provider received, cost nothing.
    if (!worked.has(id)) expect([pieces], id).to.deep.equal([0]);
  }
  expect(spentBy.key, 'keys that replaced one another').to.be.at.most(KEY_BUDGET);
  expect(spentBy.user, 'all keys of a user').to.be.at.most(USER_BUDGET);
  expect([...charged.keys()].every((id) => ended.some(({ callId }) => callId === id))).to.equal(true);
  await checkRecords(store, account, [...reserved.keys()], charged);
}

/**
 * Every admitted call has one record with its charge, and reports add up to the spent amount. Each case reads one
 * grouping: all of them are half of a case's time on a server.
 */
async function checkRecords(
  { ledger }: Store,
  account: string,
  admitted: readonly string[],
  charged: ReadonlyMap<string, number>,
): Promise<void> {
  const { calls } = await ledger.calls({ account, limit: 1000 });
  expect(
    calls.map(({ id }) => id),
    'one record each',
  ).to.have.members(admitted);
  for (const { id, cost } of calls) expect(cost, `the record of ${id}`).to.equal(charged.get(id) ?? 0);
  const { spent } = await ledger.balance(account);
  const by = GROUPINGS[count % GROUPINGS.length] ?? [];
  const rows = await ledger.report({ edges: [0, Number.MAX_SAFE_INTEGER], by, account });
  expect(
    rows.reduce((sum, row) => sum + row.cost, 0n),
    `the report by ${by}`,
  ).to.equal(BigInt(spent));
}

interface Ended {
  readonly id: string;
  readonly callId: string;
  /** Number of tokens that the caller received. */
  readonly pieces: number;
  readonly sent: boolean;
  readonly cost: number | undefined;
  readonly key: number;
}

async function send(
  { deps }: MoneyNode,
  principal: Principal,
  id: string,
  { isStream, maxTokens, key, targets: wanted, leavesAt }: Reply,
  onEnd: (ended: Ended) => void,
): Promise<void> {
  const caller = new AbortController();
  if (leavesAt === -1) caller.abort();
  let callId = '';
  let outcome: Outcome | undefined;
  let pieces = 0;
  const init = {
    ...{ requestId: id, principal, signal: caller.signal },
    onOutcome(call: { readonly id: string }, reported: Outcome) {
      callId = call.id;
      outcome = reported;
    },
  };
  const messages = [{ role: 'user', content: 'a'.repeat(8) }] as const;
  const request = { model: 'm', user: id, max_tokens: maxTokens, messages, stream: isStream };
  const targets = [
    { provider: 'p0', model: 'm' },
    { provider: 'p1', model: 'm' },
  ].slice(0, wanted);
  const call = new Call(deps, 'chat', request, { ...init, targets });
  try {
    if (isStream) {
      const stream = await streamChat(deps, call);
      for await (const { chunks: batch } of stream.batches) {
        for (const { choices } of batch) pieces += (choices[0]?.delta.content ?? '').length / PIECE.length;
        if (leavesAt !== undefined && pieces >= leavesAt) {
          if (leavesAt % 2 === 0) caller.abort();
          break;
        }
      }
      stream.close();
    } else {
      if (leavesAt !== undefined) setImmediate(() => caller.abort());
      const response = await completeChat(deps, call);
      pieces = (response.choices[0]?.message.content ?? '').length / PIECE.length;
    }
  } catch {
    // Every failure is a valid end of a call.
  }
  await deps.pending.idle(5000);
  const { sent = false, cost } = outcome ?? {};
  onEnd({ id, callId, key, pieces: Math.min(pieces, maxTokens), sent, cost });
}

/** Tests a store with `usual` cases, or with as many as the environment says. */
function testMoney(title: string, open: () => Promise<Store>, usual: number): void {
  it(`is at least the delivered part and at most the reservation, whatever happens, on ${title}`, async function () {
    this.timeout(0);
    let store = await open();
    let cases = 0;
    const property = fc.asyncProperty(STEPS, async (steps) => {
      if (++cases % CASES_A_STORE === 0) {
        await store.close();
        store = await open();
      }
      await run(store, steps);
    });
    await fc.assert(property, { numRuns: Number(CASES ?? usual), seed: SEED });
    await store.close();
  });
}

/** Shifts clocks by `offsetMs` and makes retries immediate in the tests of a suite. */
function useOwnTime(): void {
  // Replaced by hand: `mock.method` records every call with its stack, which takes some megabytes per case.
  const { now } = Date;
  const { setTimeout: pause } = timers;
  before(() => {
    Date.now = () => now() + offsetMs;
    // A retry waits for a few turns of the event loop instead of some hundred milliseconds. The delay does not affect
    // money.
    timers.setTimeout = (_delayMs, value, options) => timers.setImmediate(value, options);
    syncBuiltinESMExports();
  });
  after(() => {
    Date.now = now;
    timers.setTimeout = pause;
    syncBuiltinESMExports();
  });
}

describe('the money of calls', () => {
  const folder = useTempFolder('money-property');
  useOwnTime();
  testMoney('memory', async () => openMemory(), 300);
  let stores = 0;
  testMoney('sqlite', () => openSqlite({ folder: path.join(folder, String(stores++)) }), 30);
});

describeWith('the money of calls on a redis server', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());
  useOwnTime();
  const open = async (): Promise<Store> => {
    await sendToRedis(server.port, 'FLUSHALL');
    return openRedis({ url: server.url, timeoutMs: 10_000 });
  };
  testMoney('redis', open, 30);
});

describeWith('the money of calls on a postgres server', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async () => {
    server = await startPostgresServer();
  });
  after(() => server?.close());
  useOwnTime();
  const open = async (): Promise<Store> => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    await pool.query({ text: 'DROP SCHEMA IF EXISTS tollgate CASCADE' });
    await pool.end();
    return openPostgres({ url: server.url, timeoutMs: 10_000 });
  };
  testMoney('postgres', open, 30);
});
