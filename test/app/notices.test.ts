import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { createReloader } from '../../cli/reload.ts';
import { loadConfig } from '../../config/load-config.ts';
import { FACTS } from '../conformance/store.ts';
import { type NoticeReceiver, startNoticeReceiver } from '../support/clients/notice-receiver.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { fine, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { createSilentLog } from '../support/log.ts';
import { noonTimezone } from '../support/noon.ts';
import { openStore } from '../support/stores/store-race.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../support/wait.ts';

const SECRET = 'a secret of the tests';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('notices', () => {
  const folder = useTempFolder('notices');
  let receiver: NoticeReceiver;
  let gateway: TestGateway | undefined;
  let rig: RoutingRig | undefined;
  beforeEach(async () => {
    receiver = await startNoticeReceiver();
  });
  afterEach(async () => {
    await Promise.all([gateway?.stop(), rig?.stop()]);
    [gateway, rig] = [undefined, undefined];
    await receiver.close();
  });

  /** Policy with these receivers. */
  const notices = (receivers: Readonly<Record<string, object>>, more: object = {}) => ({
    notices: { receivers, ...more },
  });
  const ours = (more: object = {}) => ({ ours: { url: receiver.url, secret: SECRET, ...more } });
  const startRig = async (policies: object): Promise<RoutingRig> => {
    rig = await startRoutingRig({ both: ['a/m', 'b/m'] }, {}, { policies });
    return rig;
  };

  it('report an unhealthy target with the reason, and its recovery, once each and signed @slow', async () => {
    const { vendors, send } = await startRig(notices(ours()));
    vendors['a']?.script(refusal(500, { 'retry-after': '1' }));
    for (let n = 0; n < 6; n++) expect(await send('both')).to.include({ by: 'b' });
    const [opened] = await receiver.verified('target.opened', SECRET);
    expect(opened).to.include({ provider: 'a', targets: 'a/m', cause: 'failures', error: '500' });
    expect(opened?.['text']).to.equal('Target a/m is unhealthy: its recent calls failed (500)');
    expect(opened?.['request_id']).to.match(/^req_/);
    vendors['a']?.script(fine);
    const [closed] = await eventually(async () => {
      await send('both');
      expect(receiver.got).to.have.lengthOf(2);
      return receiver.verified('target.closed', SECRET);
    });
    expect(closed).to.include({ provider: 'a', targets: 'a/m' });
    expect(closed?.['text']).to.include('Target a/m is healthy again');
  });

  it('report a key that is used from a new network, and forget the networks of an erased user (G46)', async () => {
    gateway = await startGateway({ server: { port: 0, trustProxy: true }, policies: notices(ours()) });
    const chat = async (from: string): Promise<void> => {
      const body = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] };
      const response = await gateway?.post('/v1/chat/completions', body, { 'x-forwarded-for': from });
      expect(response?.status).to.equal(200);
      await response?.text();
    };
    for (const from of ['203.0.113.7', '203.0.113.9', '198.51.100.1', '203.0.113.7', '2001:db8:1:2::1', '198.51.100.2'])
      await chat(from);
    const sent = await receiver.verified('key.new_network', SECRET, 2);
    expect(sent.map(({ network }) => network).sort()).to.deep.equal(['198.51.100.0/24', '2001:db8:1::/48']);
    expect(sent[0]).to.include({ user: 'local', key: `tg_${gateway.key.slice(3, 15)}` });
    const { erased } = await gateway.command<{ erased: Record<string, number> }>('users', 'erase', 'local', '--yes');
    expect(erased['networks_of_keys']).to.equal(3);
    const again = await gateway.command<{ erased: Record<string, number> }>('users', 'erase', 'local');
    expect(again.erased['networks_of_keys']).to.equal(0);
  });

  it('are combined for targets of one provider that fail together @slow', async () => {
    const { vendors, send } = await startRig(notices(ours()));
    for (const model of ['a/one', 'a/two', 'a/three']) expect((await send(model)).status).to.equal(200);
    vendors['a']?.script(refusal(401));
    expect((await send('a/one')).status).to.equal(503);
    const [opened] = await receiver.verified('target.opened', SECRET);
    expect(opened).to.include({ provider: 'a', cause: 'credential', error: '401' });
    expect(opened?.['text']).to.match(/^3 targets of a are unhealthy: its API key was rejected/);
  });

  it('contain neither the vendor’s message nor markup', async () => {
    const { vendors, send } = await startRig(
      notices({
        slack: { url: receiver.url, format: 'slack', events: ['target.opened'] },
        teams: { url: receiver.url, format: 'teams', events: ['target.opened'] },
      }),
    );
    vendors['a']?.script(respondWith(401, { error: { message: 'no key for: my secret prompt' } }));
    await send('a/<!channel>[x](http://evil.example)');
    await eventually(async () => expect(receiver.got).to.have.lengthOf(2));
    const [slack, teams] = ['blocks', 'attachments'].map(
      (field) => receiver.got.find(({ body }) => field in body)?.text ?? '',
    );
    for (const text of [slack, teams]) expect(text).to.include('a/').and.not.include('my secret prompt');
    expect(slack).to.include('a/&lt;!channel&gt;').and.not.include('<!channel>');
    // The only text element of a card that ignores Markdown.
    expect(teams).to.include('"TextRun"').and.not.include('"TextBlock"').and.not.include('"FactSet"');
    for (const { headers } of receiver.got) expect(headers).to.not.have.property('x-tollgate-signature');
  });

  it('report a budget at its soft limit, and one that no longer covers calls', async () => {
    gateway = await startGateway({
      providers: { echo: { prices: { '*': { input: 0, output: 2000 } } } },
      budgets: [{ name: 'all', amount_usd: 3, soft_usd: 1, every: 'total' }],
      policies: notices(ours({ events: ['budget.soft_limit', 'budget.used_up'] })),
    });
    const spend = (dollars: number) =>
      gateway?.post('/v1/chat/completions', {
        model: 'echo/echo',
        max_tokens: dollars * 500,
        messages: [{ role: 'user', content: 'word '.repeat(dollars * 700) }],
      });
    expect((await spend(1))?.status).to.equal(200);
    const [soft] = await receiver.verified('budget.soft_limit', SECRET);
    expect(soft).to.include({ budget: 'all', of: 'all', used: '1.00', amount: '3.00', soft: '1.00', resets_at: null });
    expect((await spend(1))?.status).to.equal(200);
    expect((await spend(2))?.status).to.equal(402);
    expect((await spend(2))?.status).to.equal(402);
    const [usedUp] = await receiver.verified('budget.used_up', SECRET);
    expect(usedUp?.['text']).to.equal(
      'The budget all no longer covers calls, which are refused: 2.00 of 3.00 USD are used',
    );
    expect(receiver.got).to.have.lengthOf(2);
  });

  it('report a refused reload with the reason, once per file @slow', async () => {
    gateway = await startGateway({ policies: notices(ours()) });
    const { folder: cwd, use, recordReload: noteReload, audit } = gateway;
    const configPath = path.join(cwd, 'tollgate.config.json');
    const read = () => loadConfig({ cwd, env: {}, configPath });
    const right = await readFile(configPath, 'utf8');
    const { reload } = createReloader({
      loaded: await read(),
      log: createSilentLog(),
      read,
      inspect: () => Promise.resolve([]),
      swap: use,
      note: noteReload,
      audit,
    });
    await writeFile(configPath, '{"nonsense": 1}');
    await reload('a test', { via: 'file' });
    await reload('a test', { via: 'file' });
    const [refused] = await receiver.verified('reload.refused', SECRET);
    expect(refused?.['problem']).to.include('nonsense').and.not.to.include(cwd);
    await writeFile(configPath, right);
    expect((await reload('a test', { via: 'file' })).isReloaded).to.equal(true);
    expect(receiver.got).to.have.lengthOf(1);
  });

  it('report the shutdown date of a model, once for all gateways of a store @slow', async () => {
    const config = {
      store: `sqlite:${folder}/models`,
      providers: { openai: { apiKey: 'k' }, echo: {} },
      models: { old: ['openai/gpt-3.5-turbo-16k'] },
      policies: notices(ours({ events: ['model.ends', 'reload.refused'] })),
    };
    gateway = await startGateway(config);
    const [ends] = await receiver.verified('model.ends', SECRET);
    expect(ends).to.include({ target: 'openai/gpt-3.5-turbo-16k', shutdown: '2024-09-13' });
    const other = await startGateway(config);
    try {
      // The first notice of the other gateway proves that it has checked its models.
      other.recordReload('a problem of the test');
      await receiver.verified('reload.refused', SECRET);
      await receiver.verified('model.ends', SECRET, 1);
    } finally {
      await other.stop();
    }
  });

  it('report the coming expiry of an operator’s key, by its public prefix', async () => {
    const auth = { 'api-key': { bootstrap: true, pepper: 'a pepper of 32 bytes or more, for tests' } };
    const store = `sqlite:${folder}/keys`;
    gateway = await startGateway({ store, auth });
    const { api_key: key, api_key_info: made } = await gateway.command<{
      readonly api_key: string;
      readonly api_key_info: { readonly prefix: string; readonly expires_at: string };
    }>('keys', 'create', '--user', 'ann', '--admin', '--expires', '5d');
    await gateway.stop();
    gateway = await startGateway({ store, auth, policies: notices(ours()) });
    const [soon] = await receiver.verified('key.expires', SECRET);
    expect(soon).to.include({ key: made.prefix, expires_at: made.expires_at });
    expect(receiver.got[0]?.text).to.not.include(key);
  });

  it('report unusual spend for the weekday, compared with the ledger of previous weeks', async () => {
    const timezone = noonTimezone();
    const store = await openStore({ kind: 'sqlite', folder: `${folder}/spend` });
    for (const [weeks, dollars] of [
      [4, 8],
      [3, 20],
      [2, 12],
      [0, 41],
    ] as const) {
      const now = Date.now() - weeks * 7 * DAY_MS - 2 * HOUR_MS;
      const call = { account: 'a', requestId: `${weeks} weeks ago`, amount: dollars * 1e9, facts: FACTS, now };
      await store.ledger.reserve({ ...call, floor: Number.NEGATIVE_INFINITY, expiresAt: now + 1000 });
      await store.ledger.settle(call);
    }
    await store.close();
    const policies = notices(ours({ events: ['spend.unusual'] }), { timezone });
    gateway = await startGateway({ store: `sqlite:${folder}/spend`, policies });
    const [unusual] = await receiver.verified('spend.unusual', SECRET);
    expect(unusual).to.include({ spent_usd: '41.00', most_before_usd: '20.00', weeks_compared: '3', timezone });
  });

  it('wait for an unreachable receiver, without delaying calls @slow', async () => {
    receiver.respond(0);
    const { vendors, send } = await startRig(notices(ours()));
    vendors['a']?.script(refusal(401));
    expect((await send('both')).by).to.equal('b');
    await until('the receiver has the notice and does not respond', () => receiver.got.length === 1);
    for (let n = 0; n < 5; n++) expect((await send('both')).status).to.equal(200);
  });

  it('can be tested: the command reports for each receiver whether it accepted a notice', async () => {
    const gone = await startNoticeReceiver();
    await gone.close();
    gateway = await startGateway({
      policies: notices({
        ...ours(),
        team: { url: receiver.url, format: 'slack' },
        gone: { url: gone.url, secret: SECRET },
      }),
    });
    receiver.respond(204, 404);
    const rows = await gateway.command<readonly { receiver: string; taken: boolean; said: string }[]>(
      'notices',
      'test',
    );
    expect(rows.slice(0, 2)).to.deep.equal([
      { receiver: 'ours', taken: true, said: 'status 204' },
      { receiver: 'team', taken: false, said: 'status 404' },
    ]);
    expect(rows[2]).to.include({ receiver: 'gone', taken: false });
    expect(rows[2]?.said).to.include('ECONNREFUSED');
    process.exitCode = 0;
    const [tried] = await receiver.verified('test', SECRET);
    expect(tried?.['text']).to.include('no action needed');
    expect(await gateway.command('notices', 'test', 'ours')).to.have.lengthOf(1);
    const refused = await gateway.command('notices', 'test', 'other').then(String, (error: Error) => error.message);
    expect(refused).to.include('receiver "other" not found').and.include('Use one of ours, team, gone.');
  });

  for (const [what, options, wrong] of [
    ['without a secret', { url: 'https://hooks.example/x' }, 'has no secret'],
    ['of Slack without TLS', { url: 'http://hooks.example/x', format: 'slack' }, 'is not an https URL'],
    ['of Teams with a secret', { url: 'https://hooks.example/x', format: 'teams', secret: SECRET }, 'is not used'],
    ['with a password in its address', { url: 'https://a:b@hooks.example/x', secret: SECRET }, 'user or password'],
    ['of an unknown event', { url: 'https://hooks.example/x', secret: SECRET, events: ['target.gone'] }, 'target.gone'],
  ] as const)
    it(`refuse a receiver ${what}, with the remedy`, async () => {
      const refused = await startGateway({ policies: notices({ ours: options }) }).then(
        (started) => started.stop(),
        (error: Error) => error.message,
      );
      expect(refused).to.include('policies.notices.receivers.ours').and.include(wrong);
      expect(refused).to.not.include(SECRET);
    });
});
