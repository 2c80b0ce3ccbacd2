import path from 'node:path';
import { expect } from 'chai';
import type { LedgerEntry, Store } from '../../contract/index.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { openStore, type StoreAddress } from '../support/stores/store-race.ts';
import { openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

/** Steps of a call at which a gateway is killed. `outside` kills when the n-th request reaches the provider. */
const STEPS = [
  'before the reservation',
  'after the reservation',
  'before it is sent',
  'after it was sent',
  'after the answer',
  'in the middle of a stream',
  'while it is settled',
  'outside',
] as const;
type Step = (typeof STEPS)[number];

/** Kills per store, one at each step; `npm run test:nightly` makes more. */
const KILLS = Number(process.env['TOLLGATE_SOAK'] ?? STEPS.length);
const LOAD = 12;
const CREDIT = 1_000_000_000;

/** True cost of call n in nano-dollars. Costs are unique, so that the ledger identifies the charged calls. */
const costOf = (n: number): number => 10_000 + n;
/** Reservation of every call: 4 for the message, 5 for its 20 bytes, 100,000 for the output. */
const ESTIMATE = 100_009;

const text = (n: number): string => `call ${n}`.padEnd(20, '.');

/** Kills the process at the step that the call names. */
const KILLER = `const die = (call, step) => { if (call.request.user === 'kill ' + step) process.kill(process.pid, 'SIGKILL'); };
let chunks = 0;
export default { name: 'killer', kind: 'policy', apiVersion: 1, setup(api) {
  api.hook('admit', (call) => die(call, 'before the reservation'));
  api.hook('prepare', (call) => die(call, 'after the reservation'));
  api.hook('send', (call) => die(call, 'before it is sent'));
  api.hook('receive', (call) => die(call, 'after the answer'));
  api.hook('stream', (call) => ({ push(part) { if (call.request.user?.startsWith('kill') && chunks++ > 0) die(call, 'in the middle of a stream'); return [part]; } }));
  api.hook('finish', (call) => die(call, 'while it is settled'));
} };`;

interface Provider {
  readonly upstream: ScriptedUpstream;
  /** Calls that reached the provider. */
  readonly seen: Set<number>;
  onSeen: (n: number) => void;
}

async function startProvider(): Promise<Provider> {
  const seen = new Set<number>();
  const script = async (wire: Wire): Promise<void> => {
    const request = wire.request.json() as { messages: { content: string }[]; stream?: boolean; user?: string };
    const n = Number(/\d+/.exec(request.messages[0]?.content ?? '')?.[0]);
    expect(seen.has(n), `call ${n} is sent once`).to.equal(false);
    seen.add(n);
    provider.onSeen(n);
    if (request.user === 'kill after it was sent') return void (await wire.hang());
    await wire.pause(Math.random() * 40);
    const usage = { prompt_tokens: costOf(n) - 1, completion_tokens: 1, total_tokens: costOf(n) };
    const head = { id: 'c', created: 1, model: 'm' };
    if (!request.stream) {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }];
      return void (await wire.send(respondWith(200, { ...head, object: 'chat.completion', choices, usage })));
    }
    await wire.send(SSE_HEAD);
    for (const [delta, finish_reason] of [
      [{ content: 'x' }, null],
      [{ content: 'y' }, null],
      [{}, 'stop'],
    ]) {
      const choices = [{ index: 0, delta, finish_reason }];
      const rest = finish_reason ? { usage } : {};
      await wire.send(
        chunk(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...rest })}\n\n`),
      );
      await wire.pause(Math.random() * 10);
    }
    await wire.send(chunk('data: [DONE]\n\n'));
    await wire.send(LAST_CHUNK);
  };
  const provider: Provider = { upstream: await startScriptedUpstream(script), seen, onSeen: () => undefined };
  return provider;
}

function testCrashes(address: (folder: string) => StoreAddress): void {
  let provider: Provider;
  let installation: Installation;
  let sent = 0;

  before(async () => {
    provider = await startProvider();
    const { url } = provider.upstream;
    const where = address('data');
    installation = await installGateway(
      {
        store: where.kind === 'sqlite' ? 'sqlite:./data' : where.kind === 'memory' ? 'memory:' : where.url,
        billing: 'enforce',
        providers: {
          one: openAiVendor({ url }, { prices: tokenPrices(0.001, 0.001) }),
        },
        plugins: ['./killer.mjs'],
        policies: { accounts: { longestCall: '3s', holdMargin: '1s', sweepEvery: '250ms' } },
      },
      { 'killer.mjs': KILLER },
    );
    await installation.command('accounts', 'credit', 'local', String(CREDIT / 1_000_000_000));
  });
  after(async () => {
    await installation?.remove();
    await provider?.upstream.close();
  });

  /** Makes one call; returns true if its response was complete. */
  const call = async (gateway: GatewayProcess, n: number, streams: boolean, user?: string): Promise<boolean> => {
    const messages = [{ role: 'user', content: text(n) }];
    try {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${installation.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'one/m', messages, max_tokens: 100_000, stream: streams, ...(user && { user }) }),
      });
      const body = await response.text();
      return response.status === 200 && (!streams || body.includes('[DONE]'));
    } catch {
      return false;
    }
  };

  /** Starts a gateway under load and kills it at a step. */
  const crash = async (step: Step): Promise<void> => {
    const gateway = await installation.start();
    const first = sent;
    sent += LOAD;
    const victim = first + Math.floor(Math.random() * LOAD);
    const isOutside = step === 'outside' || step === 'after it was sent';
    const before = provider.onSeen;
    provider.onSeen = (n) => {
      before(n);
      if (isOutside && n === victim) void gateway.kill();
    };
    const calls = Array.from({ length: LOAD }, (_, at) => {
      const n = first + at;
      const isVictim = n === victim && step !== 'outside';
      const streams = isVictim ? step === 'in the middle of a stream' : n % 2 === 0;
      return call(gateway, n, streams, isVictim ? `kill ${step}` : undefined);
    });
    // A victim that fails before its step must not keep the gateway and this test running forever.
    await Promise.race([gateway.ended, Promise.all(calls).then(() => gateway.kill())]);
    await Promise.all(calls);
  };

  it('loses and doubles nothing, wherever a gateway is killed', async function () {
    this.timeout(900_000);
    const steps = Array.from({ length: KILLS }, (_, at) => STEPS[at % STEPS.length] ?? 'outside');
    for (let at = 0; at < steps.length; at += 2) await Promise.all(steps.slice(at, at + 2).map(crash));

    // The last gateway is not killed: it settles the remains of the others, and its own calls are exact.
    const gateway = await installation.start();
    const first = sent;
    sent += LOAD;
    const succeeded = await Promise.all(
      Array.from({ length: LOAD }, (_, at) => call(gateway, first + at, at % 2 === 0)),
    );
    expect(succeeded).to.deep.equal(Array.from({ length: LOAD }, () => true));
    await eventually(async () => {
      expect((await installation.command('accounts', 'show', 'local')).held_usd).to.match(/^0(\.0+)?$/);
    });
    await gateway.stop();

    const store = await openStore(address(path.join(installation.folder, 'data')));
    try {
      const entries = await allEntries(store);
      checkBooks(entries, provider.seen, sent, first);
      const { balance, held, spent, credited } = await store.ledger.balance('local');
      expect({ held, credited, balance }).to.deep.equal({ held: 0, credited: CREDIT, balance: CREDIT - spent });
      expect(sum(entries), 'the sum of the entries').to.equal(balance);
      const usage = await store.ledger.report({ edges: [0, Date.now() + 86_400_000], by: ['model'], account: 'local' });
      expect(
        usage.reduce((total, { cost }) => total + cost, 0n),
        'the usage report',
      ).to.equal(BigInt(spent));
    } finally {
      await store.close();
    }
  });
}

const sum = (entries: readonly LedgerEntry[]): number => entries.reduce((total, { amount }) => total + amount, 0);

/**
 * Checks that each call seen by the provider is charged once: its true cost, or its estimate if its gateway was killed.
 */
function checkBooks(entries: readonly LedgerEntry[], seen: ReadonlySet<number>, sent: number, clean: number): void {
  const charges = entries.filter(({ kind }) => kind === 'charge').map(({ amount }) => -amount);
  const exact = charges.filter((amount) => amount !== ESTIMATE).map((amount) => amount - costOf(0));
  const estimates = charges.length - exact.length;
  expect(new Set(exact).size, 'no call twice').to.equal(exact.length);
  expect(
    [...exact].every((n) => seen.has(n)),
    'nothing that the provider never saw',
  ).to.equal(true);
  for (let n = clean; n < sent; n++) expect(exact, `call ${n} of the gateway that lived`).to.include(n);
  const unsettled = seen.size - exact.length;
  expect(estimates, 'every other call that the provider saw').to.be.at.least(unsettled);
  expect(estimates - unsettled, 'calls that died between reservation and sending').to.be.at.most(sent - seen.size);
}

async function allEntries(store: Store): Promise<readonly LedgerEntry[]> {
  const all: LedgerEntry[] = [];
  for (;;) {
    const after = all.at(-1)?.id;
    const page = await store.ledger.entries('local', { limit: 100, ...(after !== undefined && { after }) });
    if (page.length === 0) return all;
    all.push(...page);
  }
}

describe('a gateway on a sqlite store', () => testCrashes((folder) => ({ kind: 'sqlite', folder })));

describeWith('a gateway on a redis store', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());
  testCrashes(() => ({ kind: 'redis', url: server.url }));
});

describeWith('a gateway on a postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async () => {
    server = await startPostgresServer();
  });
  after(() => server?.close());
  testCrashes(() => ({ kind: 'postgres', url: server.url }));
});
