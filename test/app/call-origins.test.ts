import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { completion, openAiVendor } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

/** Plugin whose hook waits for 30 ms before each chat of the model `slow`. */
const PATIENT = `export default {
  name: 'patient', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.hook('prepare', async (call) => {
      if (call.request.user === 'waiting@example.com') await new Promise((resolve) => setTimeout(resolve, 30));
    });
  },
};`;

interface Shown {
  readonly address: string | null;
  readonly end_user: string | null;
  readonly tags: readonly string[];
  readonly hook_times: readonly { plugin: string; hook: string; ms: number }[] | null;
  readonly phases: Readonly<Record<string, number>>;
  readonly duration_ms: number;
  readonly attempts: readonly { reason?: string }[];
  readonly error_message: string | null;
  readonly request_id: string;
}

describe('the record of a call', () => {
  let operator: Operator;
  let vendor: ScriptedUpstream;
  before(async () => {
    vendor = await startScriptedUpstream();
    operator = await startOperatorAt(vendor);
  });
  after(async () => {
    await operator?.gateway.stop();
    await vendor?.close();
  });

  const startOperatorAt = (upstream: ScriptedUpstream): Promise<Operator> =>
    startOperator(
      {
        server: { port: 0, trustProxy: true },
        providers: { echo: {}, one: openAiVendor(upstream) },
        policies: { patient: { plugin: './patient.mjs' } },
        endUsers: { header: 'X-OpenWebUI-User-Email', report: true },
      },
      { files: { 'patient.mjs': PATIENT } },
    );

  const send = async (path: string, body: object, headers: Record<string, string> = {}): Promise<Shown> => {
    const response = await operator.gateway.post(path, body, headers);
    await response.text();
    const request = response.headers.get('x-request-id');
    return eventually(async () => {
      const { body: list } = await operator.call('GET', `/calls?request=${request}`);
      expect(list.data).to.have.length(1);
      return list.data[0] as Shown;
    });
  };
  const CHAT = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] };
  const PATH = '/v1/chat/completions';

  it('has the address of the caller, behind a trusted proxy too (G46)', async () => {
    const { address } = await send(PATH, CHAT, { 'x-forwarded-for': '203.0.113.7' });
    expect(address).to.equal('203.0.113.7');
    const embedded = await send(PATH, CHAT);
    expect(embedded.address).to.match(/127\.0\.0\.1$/);
  });

  it('has the end user of the fields of each format, or of the configured header (G46)', async () => {
    expect((await send(PATH, { ...CHAT, user: 'ann@example.com' })).end_user).to.equal('ann@example.com');
    const message = { model: 'echo/echo', max_tokens: 10, messages: CHAT.messages };
    expect((await send('/v1/messages', { ...message, metadata: { user_id: 'bob' } })).end_user).to.equal('bob');
    const code = 'user_0a_account_b1_session_9c1e-44';
    expect((await send('/v1/messages', { ...message, metadata: { user_id: code } })).end_user).to.equal(
      'user_0a_account_b1',
    );
    const json = JSON.stringify({ device_id: 'd1', account_uuid: 'u7', session_id: 's3' });
    expect((await send('/v1/messages', { ...message, metadata: { user_id: json } })).end_user).to.equal('u7');
    const header = { 'x-openwebui-user-email': 'cleo@example.com' };
    const both = await send(PATH, { ...CHAT, user: 'ann@example.com' }, header);
    expect([both.end_user, both.tags]).to.deep.equal(['cleo@example.com', []]);
    expect((await send(PATH, CHAT)).end_user).to.equal(null);
  });

  it('divides its time into phases, and names each hook that it waited for (G46)', async () => {
    vendor.script(async (wire) => {
      await wire.pause(25);
      await wire.send(respondWith(200, completion('fine')));
    });
    const call = await send(PATH, { ...CHAT, model: 'one/m', user: 'waiting@example.com' });
    const { phases, hook_times: hooks } = call;
    expect(hooks?.map(({ plugin, hook }) => [plugin, hook])).to.deep.include(['patient', 'prepare']);
    expect(phases['hooks_ms']).to.be.at.least(28);
    expect(phases['vendor_ms']).to.be.at.least(20);
    const own = ['hooks_ms', 'store_ms', 'retry_wait_ms', 'vendor_ms', 'gateway_ms'];
    const sum = own.reduce((total, name) => total + (phases[name] ?? 0), 0);
    expect(Math.abs(sum - call.duration_ms)).to.be.at.most(own.length);
    expect(phases).to.include.keys('queue_ms', 'receive_ms');
  });

  it('shows the words of a vendor only with bodies:read, also in lists of callers (G63)', async () => {
    vendor.script(respondWith(400, { error: { message: 'canary of the vendor' } }));
    await send(PATH, { ...CHAT, model: 'one/m' });
    const own = (await (await operator.gateway.get('/api/core/calls')).json()) as { data: readonly Shown[] };
    expect(JSON.stringify(own.data.map(({ attempts }) => attempts))).to.not.include('canary');
    const { api_key: key } = await operator.gateway.command<{ api_key: string }>(
      ...['keys', 'create', '--user', 'vera', '--role', 'viewer'],
    );
    const shown = await operator.gateway.get('/api/core/admin/calls?outcome=error', { authorization: `Bearer ${key}` });
    expect(await shown.text())
      .to.include('upstream')
      .and.not.include('canary');
  });

  it('is counted by end user in reports, which other tags do not list (G46)', async () => {
    await send(PATH, { ...CHAT, user: 'dora@example.com' }, { 'x-tollgate-tag': 'team=search' });
    const report = async (query: string) => (await operator.call('GET', `/usage?${query}`)).body;
    const { data } = await report('by=end_user,model');
    const dora = data.find((row: { end_user: string }) => row.end_user === 'dora@example.com');
    expect(dora).to.include({ model: 'echo', requests: 1 });
    expect((await report('by=user&end_user=dora@example.com')).totals.requests).to.equal(1);
    const tags = (await report('by=tag')).data.map(({ tag }: { tag: string }) => tag);
    expect(tags).to.include('team=search').and.not.include('end_user=dora@example.com');
    const refused = await operator.gateway.post(PATH, CHAT, { 'x-tollgate-tag': 'end_user=eve' });
    expect(refused.status).to.equal(400);
  });
});

describe('a list of calls', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({ server: { port: 0, trustProxy: true }, models: { quick: 'echo/echo' } });
    for (const [user, from] of [
      ['ann@example.com', '10.1.2.3'],
      ['bob@example.com', '10.9.9.9'],
    ] as const)
      await operator.gateway
        .post(
          '/v1/chat/completions',
          { model: 'quick', messages: [{ role: 'user', content: `${user} `.repeat(5) }], user },
          { 'x-forwarded-for': from },
        )
        .then((response) => response.text());
    await operator.gateway
      .post('/v1/chat/completions', { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] })
      .then((response) => response.text());
    await eventually(async () => expect((await list('')).data).to.have.length(3));
  });
  after(() => operator?.gateway.stop());

  const list = async (query: string) => {
    const { status, body } = await operator.call('GET', `/calls?${query}`);
    expect(status, JSON.stringify(body)).to.equal(200);
    return body;
  };
  const endUsers = async (query: string): Promise<readonly (string | null)[]> =>
    (await list(query)).data.map(({ end_user }: { end_user: string | null }) => end_user);

  it('filters by parts of names, address, network, end user, alias, error code, cost and duration', async () => {
    const [ann, bob] = ['ann@example.com', 'bob@example.com'];
    expect(await endUsers('search=BOB@')).to.deep.equal([bob]);
    expect(await endUsers('search=10.1.2')).to.deep.equal([ann]);
    expect(await endUsers('address=10.9.9.9')).to.deep.equal([bob]);
    expect(await endUsers('address=10.1.0.0/16')).to.deep.equal([ann]);
    expect(await endUsers('end_user=ann@example.com')).to.deep.equal([ann]);
    expect(await endUsers('alias=quick')).to.deep.equal([bob, ann]);
    expect(await endUsers('alias=echo/echo')).to.deep.equal([null]);
    expect(await endUsers('error_code=rate_limited')).to.deep.equal([]);
    expect(await endUsers('status=429')).to.deep.equal([]);
    expect(await endUsers('min_cost=1000')).to.deep.equal([]);
    expect(await endUsers('min_duration=1h')).to.deep.equal([]);
    expect((await operator.call('GET', '/calls?address=10.1')).body.error.param).to.equal('address');
    expect((await operator.call('GET', '/calls?status=9')).body.error.param).to.equal('status');
  });

  it('counts the calls that match, and sorts them by what they took', async () => {
    const counted = await list('search=@example.com&count=true&limit=1');
    expect(counted.count).to.deep.equal({ calls: 2, is_complete: true });
    expect(counted.data).to.have.length(1);
    const sorted = await list('sort=tokens');
    expect(sorted.sorted_of).to.deep.equal({ calls: 3, is_complete: true });
    expect(sorted.data.at(-1).end_user).to.equal(null);
    expect((await operator.call('GET', '/calls?sort=cost&after=x')).body.error.param).to.equal('after');
  });

  it('has the same filters on the command line', async () => {
    const { data } = await operator.gateway.command<{ data: readonly { end_user: string }[] }>(
      ...['calls', '--end-user', 'bob@example.com', '--min-duration', '0ms'],
    );
    expect(data.map(({ end_user }) => end_user)).to.deep.equal(['bob@example.com']);
  });
});

describe('a budget of end users', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({ providers: { echo: { prices: { '*': { input: 0, output: 2000 } } } } });
  });
  after(() => operator?.gateway.stop());

  const chat = async (user: string | undefined, key = operator.gateway.key): Promise<number> => {
    const response = await operator.gateway.post(
      '/v1/chat/completions',
      { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1, ...(user && { user }) },
      { authorization: `Bearer ${key}` },
    );
    await response.text();
    return response.status;
  };

  it('gives each end user of one key an amount of its own, and calls without one share one (G46)', async () => {
    const key = `tg_${operator.gateway.key.slice(3, 15)}`;
    const wanted = { amount_usd: '0.003', every: 'day', end_user: '*' };
    const refused = await operator.call('PUT', '/budgets/webui', wanted);
    expect([refused.status, refused.body.error.param]).to.deep.equal([400, 'end_user']);
    const { status, body } = await operator.call('PUT', '/budgets/webui', { ...wanted, key });
    expect([status, body.end_user, body.spent_usd]).to.deep.equal([200, '*', null]);
    for (const user of ['ann', 'bob', undefined]) {
      expect(await chat(user), user).to.equal(200);
      expect(await chat(user), user).to.equal(402);
    }
    // Another key may name the same end users.
    expect(await chat('ann', operator.key)).to.equal(200);
    const round = await operator.call('PUT', '/budgets/webui', { ...wanted, key, end_user: 'cleo' });
    expect([round.status, round.body.end_user, round.body.spent_usd]).to.deep.equal([200, 'cleo', '0.00']);
    expect(await chat('ann')).to.equal(200);
    expect([await chat('cleo'), await chat('cleo')]).to.deep.equal([200, 402]);
    const shown = (await operator.call('GET', '/budgets/webui')).body;
    expect(shown.spent_usd).to.equal('0.002');
  });
});
