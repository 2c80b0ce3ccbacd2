import { expect } from 'chai';
import fc from 'fast-check';
import { parseUsd } from '../../contract/index.ts';
import { BY_WORDS, type By, isTimeUnit } from '../../plugins/policies/usage/dimensions.ts';
import { readBalance, settledBooks } from '../support/clients/books.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { eventually } from '../support/wait.ts';

/** Number of killed gateways, and of calls to each before. `TOLLGATE_SOAK` sets more kills. */
const KILLS = Number(process.env['TOLLGATE_SOAK'] ?? 3);
const CALLS = 24;

const USERS = ['ann', 'bob', '=cmd|x', 'ünï "quoted", \'and\' more'] as const;
const TAGS = ['', 'team=search', 'team=ads,project=x', 'project=y,team=search,env=a', 'project=a 1'] as const;
const MODELS = ['dear/echo', 'cheap/echo', 'free/echo', 'any'] as const;
const ZONES = ['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'Australia/Lord_Howe', 'America/New_York'] as const;

interface Reply {
  readonly user: number;
  readonly tags: string;
  readonly model: string;
  readonly stream: boolean;
  readonly words: string;
  readonly session: string;
}

const QUERY: fc.Arbitrary<Reply> = fc.record({
  user: fc.nat(USERS.length - 1),
  tags: fc.constantFrom(...TAGS),
  model: fc.constantFrom(...MODELS),
  stream: fc.boolean(),
  words: fc.stringMatching(/^[a-z ]{1,200}$/),
  session: fc.constantFrom('', 's1', 's2'),
});

const nano = (usd: unknown): number => parseUsd(String(usd));

function testSums(store: () => string): void {
  let installation: Installation;
  let admin: string;
  let keys: readonly string[];

  before(async function () {
    this.timeout(900_000);
    const price = (input: number) => ({ plugin: 'echo', prices: { '*': { input, output: 2 * input } } });
    installation = await installGateway({
      store: store(),
      providers: { dear: price(7.5), cheap: price(0.31), free: { plugin: 'echo' } },
      models: { any: ['dear/echo', 'cheap/echo'] },
      tags: { team: ['search', 'ads'], project: '*', env: ['a'] },
      policies: { accounts: { longestCall: '2s', holdMargin: '1s', sweepEvery: '250ms' } },
    });
    const create = async (user: string, ...more: readonly string[]): Promise<string> =>
      (await installation.command('keys', 'create', '--user', user, ...more)).api_key;
    admin = await create('root', '--admin');
    const made: string[] = [];
    for (const user of USERS) made.push(await create(user, ...(user === 'ann' ? ['--account', 'team'] : [])));
    keys = made;
  });
  after(() => installation?.remove());

  const call = async ({ url }: GatewayProcess, reply: Reply): Promise<number> => {
    const { user, tags, model, stream, words, session } = reply;
    const headers: Record<string, string> = {
      authorization: `Bearer ${keys[user]}`,
      'content-type': 'application/json',
    };
    if (tags) headers['x-tollgate-tag'] = tags;
    if (session) headers['x-session-id'] = session;
    const body = JSON.stringify({ model, stream, messages: [{ role: 'user', content: words }] });
    try {
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
      await response.text();
      return response.status;
    } catch {
      return 0;
    }
  };
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into, whatever their shape
  const report = async ({ url }: GatewayProcess, query: string): Promise<any> => {
    const response = await fetch(`${url}/api/core/admin/usage?${query}`, {
      headers: { authorization: `Bearer ${admin}` },
    });
    expect(response.status, `${query}: ${await response.clone().text()}`).to.equal(200);
    return query.includes('format=csv') ? await response.text() : await response.json();
  };

  it('G84: every grouping sums to the ledger, to the nano-dollar, for any calls and any kills of gateways', async function () {
    this.timeout(900_000);
    for (let kill = 0; kill < KILLS; kill += 1) {
      const gateway = await installation.start();
      const calls = fc.sample(QUERY, CALLS).map((response) => call(gateway, response));
      await Promise.race(calls.slice(kill));
      await gateway.kill();
      await Promise.all(calls);
    }
    const gateway = await installation.start();
    // A store timeout on a busy machine decides nothing, so the call is repeated.
    for (const response of fc.sample(QUERY, CALLS))
      await eventually(async () => expect(await call(gateway, response)).to.equal(200));
    let spent = 0;
    for (const key of keys) {
      await settledBooks(gateway.url, key);
      spent += nano((await readBalance(gateway.url, key)).spent);
    }
    expect(spent).to.be.above(0);

    const groupings = fc.sample(
      fc
        .tuple(fc.uniqueArray(fc.constantFrom(...BY_WORDS), { minLength: 1, maxLength: 4 }), fc.constantFrom(...ZONES))
        .filter(([by]) => by.filter(isTimeUnit).length <= 1),
      20,
    );
    const all: readonly (readonly [readonly By[], string])[] = [
      ...BY_WORDS.map((by) => [[by], 'Asia/Kolkata'] as const),
      ...groupings,
    ];
    for (const [by, tz] of all) {
      const query = `by=${by.join(',')}&tz=${tz}&last=30h&limit=1000`;
      const { data, totals, shared, has_more } = await report(gateway, query);
      expect(has_more).to.equal(false);
      const rows = data.reduce((sum: number, row: { cost_usd: string }) => sum + nano(row.cost_usd), 0);
      expect(nano(totals.cost_usd), `the total by ${by.join()} in ${tz}`).to.equal(spent);
      expect(rows - nano(shared?.repeated_cost_usd ?? 0), `the rows by ${by.join()} in ${tz}`).to.equal(spent);
    }

    // Adjacent ranges add up to the whole range, with or without whole hours.
    const now = Date.now();
    const cuts = [now - 40 * 3_600_000, now - 60_000, now - 4_000, now - 1_234, now + 60_000].map((at) =>
      new Date(at).toISOString(),
    );
    let parts = 0;
    for (const [at, to] of cuts.slice(1).entries())
      parts += nano((await report(gateway, `by=user&from=${cuts[at]}&to=${to}`)).totals.cost_usd);
    expect(parts, 'adjacent ranges').to.equal(spent);

    const csv: string = await report(gateway, 'by=tag,model&last=30h&format=csv');
    const [head = '', ...lines] = csv.trim().split('\r\n');
    const column = head.split(',').indexOf('cost_usd') - head.split(',').length;
    const sum = lines.reduce((whole, line) => whole + nano(line.split(',').at(column)), 0);
    expect(sum, 'the CSV').to.equal(spent);
    await gateway.stop();
  });
}

describe('usage reports on a sqlite store', () => testSums(() => 'sqlite:./data'));

describeWith('usage reports on a redis store', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());
  testSums(() => server.url);
});

describeWith('usage reports on a postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async () => {
    server = await startPostgresServer();
  });
  after(() => server?.close());
  testSums(() => server.url);
});
