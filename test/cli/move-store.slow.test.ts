import { randomBytes } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { CliError } from '../../cli/io.ts';
import { runExport, runImport } from '../../cli/move-store.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { eventually } from '../support/wait.ts';

const PEPPER = randomBytes(32).toString('hex');
const CONFIG = {
  auth: { 'api-key': { pepper: PEPPER } },
  providers: { echo: { prices: { '*': { input: 1, output: 2000 } } } },
  budgets: [{ name: 'everyone', amount_usd: 1000, every: 'month' }],
  policies: { cache: false },
};
/** Names that are not plain keys: stores use a hash of them, or other bytes. */
const LONG = `user-${'x'.repeat(250)}`;
const ODD = 'ünïcode ✓|"7"';

const startOn = (store: string): Promise<TestGateway> => startGateway({ ...CONFIG, store });

/** Creates all kinds of data: keys, calls, money, plans, budgets, blocked users. Returns the operator's key. */
async function fill(gateway: TestGateway): Promise<{ readonly admin: string; readonly key: string }> {
  const { api_key: admin } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin');
  const keys: string[] = [];
  for (const user of ['ada', LONG, ODD]) {
    const made = await gateway.command<{ api_key: string }>('keys', 'create', '--user', user, '--budget', '5');
    keys.push(made.api_key);
    for (const [amount, id] of [
      ['25.00', 'invoice 7'],
      ['-0.50', 'refund'],
    ] as const)
      await gateway.command('accounts', 'credit', user, amount, '--id', id);
    for (let n = 0; n < 3; n += 1) {
      const body = { model: 'echo/echo', messages: [{ role: 'user', content: `hello ${n}` }] };
      const headers = { authorization: `Bearer ${made.api_key}` };
      expect((await gateway.post('/v1/chat/completions', body, headers)).status).to.equal(200);
    }
  }
  await gateway.command('plans', 'set', 'team', '{"rpm":60}');
  await gateway.command('accounts', 'plan', 'ada', 'team');
  await gateway.command('budgets', 'set', 'search', '7', '--every', 'day', '--user', 'ada');
  await gateway.command('users', 'block', 'zed', '--reason', 'left');
  // A running gateway applies commands within five seconds, and settles calls shortly after their responses.
  await eventually(async () => {
    expect((await read(gateway, admin, '/accounts/ada')).text).to.match(/"budgets":\[\{"name":"search"/);
    expect((await read(gateway, admin, '/accounts')).text).not.to.match(/held_usd":"0\.0*[1-9]/);
  });
  return { admin, key: keys[0] ?? '' };
}

const read = async (gateway: TestGateway, admin: string, where: string) => {
  const response = await gateway.get(`/api/core/admin${where}`, { authorization: `Bearer ${admin}` });
  return { status: response.status, text: await response.text() };
};

const SHOWN = [
  ...['/keys', '/users', '/plans', '/budgets', '/audit', '/accounts/ada', '/usage?by=user,model,day', '/calls'],
  ...[`/accounts/${LONG}`, `/accounts/${encodeURIComponent(ODD)}`],
];

/** Reads all data shown to operators. Lists in an order that depends on the store are sorted. */
async function look(gateway: TestGateway, admin: string): Promise<readonly (readonly [string, unknown])[]> {
  const shown: [string, unknown][] = [];
  for (const where of SHOWN) {
    const { status, text } = await read(gateway, admin, where);
    expect(status, text).to.equal(200);
    // Ignores the last use of the operator's key and the time range of the request, which are not moved.
    shown.push([where, JSON.parse(text.replaceAll(/"(?:last_used_at|from|to|next)":(?:"[^"]*"|null),?/g, ''))]);
  }
  return shown;
}

describeWith('moving a store', { postgres: POSTGRES, initdb: INITDB, redis: REDIS_SERVER }, () => {
  const folder = useTempFolder('move');
  const servers: TestServer[] = [];
  let gateway: TestGateway | undefined;
  let stores: Readonly<Record<'sqlite' | 'postgres' | 'redis' | 'again', string>>;
  before(async () => {
    servers.push(await startPostgresServer(), await startRedisServer());
    stores = {
      sqlite: `sqlite:${path.join(folder, 'one')}`,
      postgres: servers[0]?.url ?? '',
      redis: servers[1]?.url ?? '',
      again: `sqlite:${path.join(folder, 'two')}`,
    };
  });
  after(async () => {
    await gateway?.stop();
    for (const server of servers) await server.close();
  });

  const run = async (command: typeof runExport, store: string, file: string) => {
    const config = path.join(folder, 'tollgate.config.json');
    await writeFile(config, JSON.stringify({ ...CONFIG, store }));
    const { terminal, out } = captureTerminal();
    await command({ terminal, globals: { config, json: true }, args: [path.join(folder, file)], options: {} });
    return JSON.parse(out()).data as { counts: Record<string, number>; sums: Record<string, string> };
  };
  const refusal = (work: Promise<unknown>): Promise<CliError> =>
    work.then(
      () => Promise.reject(new Error('it was not refused')),
      (error: unknown) => (error instanceof CliError ? error : Promise.reject(error as Error)),
    );

  it('preserves all data in another kind of store, and in a third one, to the nano-dollar (E50)', async () => {
    gateway = await startOn(stores.sqlite);
    const { admin, key } = await fill(gateway);
    const before = await look(gateway, admin);
    const running = await refusal(run(runExport, stores.sqlite, 'refused'));
    expect(running.message).to.match(/A gateway runs on the store.*It is process \d+ on /);
    await gateway.stop();

    const first = await run(runExport, stores.sqlite, 'first');
    expect(first.counts).to.include({ account: 3, call: 9 });
    expect(first.sums['balance']).to.equal(first.sums['entry_amount']);
    expect((await stat(path.join(folder, 'first'))).mode & 0o777).to.equal(0o600);
    expect((await refusal(run(runExport, stores.sqlite, 'first'))).message).to.include('already exists');
    for (const [from, to, file] of [
      [stores.sqlite, stores.postgres, 'first'],
      [stores.postgres, stores.redis, 'second'],
      [stores.redis, stores.again, 'third'],
    ] as const) {
      if (file !== 'first') await run(runExport, from, file);
      const { sums } = await run(runImport, to, file);
      expect(sums, file).to.deep.equal(first.sums);
      expect((await refusal(run(runImport, to, file))).message).to.match(/is not empty/);
      gateway = await startOn(to);
      const [after, balance] = [
        await look(gateway, admin),
        await gateway.get('/api/core/balance', { authorization: `Bearer ${key}` }),
      ];
      for (const [at, [where, shown]] of before.entries())
        expect(after[at], `${file} ${where}`).to.deep.equal([where, shown]);
      expect(balance.status).to.equal(200);
      // A credit that was already granted is not granted twice.
      const again = await gateway.command<{ credited: boolean }>(
        'accounts',
        'credit',
        'ada',
        '25.00',
        '--id',
        'invoice 7',
      );
      expect(again.credited).to.equal(false);
      expect((await refusal(run(runImport, to, file))).message).to.include('A gateway runs on the store');
      await gateway.stop();
    }
  });

  it('is refused for a truncated, changed or foreign file, and nothing is written (E50)', async () => {
    const text = await readFile(path.join(folder, 'first'), 'utf8');
    const empty = `sqlite:${path.join(folder, 'three')}`;
    for (const [title, changed, words] of [
      ['cut', text.slice(0, -200), /truncated or changed|is not JSON/],
      ['line', text.split('\n').toSpliced(3, 1).join('\n'), /truncated or changed/],
      ['money', text.replace(/"balance":\d+/, '"balance":1'), /truncated or changed/],
      ['word', text.replace('"reason":"credit"', '"reason":"gift!!"'), /truncated or changed/],
      [
        'form',
        text.replace('"tollgate_export":1', '"tollgate_export":2'),
        /format is not 1: it was written by Tollgate /,
      ],
      ['other', '{"hello":1}\n{}\n', /it is not an export/],
      ['nothing', '', /cannot be read/],
    ] as const) {
      await writeFile(path.join(folder, title), changed);
      expect((await refusal(run(runImport, empty, title))).message, title).to.match(words);
    }
    expect((await refusal(run(runImport, empty, 'not-there'))).message).to.match(/not-there does not exist$/);
    expect((await run(runImport, empty, 'first')).counts).to.include({ account: 3 });
  });

  it('is refused for a store in memory, which ends with its gateway (E50)', async () => {
    expect((await refusal(run(runExport, 'memory:', 'memory'))).message).to.include('"memory" cannot be moved');
  });
});
