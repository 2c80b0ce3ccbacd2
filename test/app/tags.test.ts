import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

/** Logs the tags of every call, whatever its operation. */
const TAP = `export default {
  name: 'tap', kind: 'policy', apiVersion: 1,
  setup(api) {
    const handler = (call) => api.log.info({ of: call.requestId, tags: call.tags, session: call.session, what: call.operation }, 'tags');
    api.hook('finish', handler);
    api.hook('finish', { operations: ['count'], handler });
  },
};`;

const TEXT = [{ role: 'user', content: 'hi' }];
const WAYS_IN: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { model: 'echo/echo', messages: TEXT }],
  ['/v1/chat/completions', { model: 'echo/echo', messages: TEXT, stream: true }],
  ['/api/core/echo/chat/completions', { model: 'echo', messages: TEXT }],
  ['/v1/completions', { model: 'echo/echo', prompt: 'hi' }],
  ['/v1/messages', { model: 'echo/echo', max_tokens: 20, messages: TEXT }],
  ['/v1/responses', { model: 'echo/echo', input: 'hi' }],
  ['/v1beta/models/echo%2Fecho:generateContent', { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }],
  ['/v1/embeddings', { model: 'echo/echo-embedding', input: 'hi' }],
  ['/api/core/agent', { message: 'hi' }],
];

describe('tags of calls', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      {
        plugins: ['./tap.mjs'],
        agents: { team: { model: 'echo/echo' } },
        tags: { team: ['search', 'ads'], project: '*' },
        server: { port: 0, drainTimeout: '2s', cors: { origins: ['https://chat.example'] } },
      },
      { files: { 'tap.mjs': TAP } },
    );
  });
  after(() => gateway?.stop());

  let requestCount = 0;
  const tagsOf = async (path: string, body: object, tag: string): Promise<readonly unknown[]> => {
    const id = `tag-test-${requestCount++}`;
    const response = await gateway.post(path, body, {
      'x-request-id': id,
      'x-session-id': 's-1',
      'x-tollgate-tag': tag,
    });
    await response.text();
    const lines = () => gateway.logs.filter((line) => line['of'] === id);
    await until(`the calls of ${path} are known`, () => lines().length > 0);
    expect(lines().map((line) => line['session'])).to.deep.equal(lines().map(() => 's-1'));
    return lines().map((line) => line['tags']);
  };

  for (const [path, body] of WAYS_IN)
    it(`are those of the header on ${path}${'stream' in body ? ' as a stream' : ''}, for each of its calls`, async () => {
      const seen = await tagsOf(path, body, 'team=search, project=p-1');
      for (const tags of seen) expect(tags).to.deep.equal(['team=search', 'project=p-1']);
    });

  for (const [path, body] of WAYS_IN)
    it(`that are not on the list are refused on ${path}, before any call`, async () => {
      const id = `tag-refused-${requestCount++}`;
      const headers = { 'x-request-id': id, 'x-tollgate-tag': 'team=sales' };
      const response = await gateway.post(path, body, headers);
      expect(response.status).to.equal(400);
      expect(await response.text())
        .to.include('is not an allowed value of the tag')
        .and.to.include('search, ads');
      expect(gateway.logs.some((line) => line['of'] === id)).to.equal(false);
    });

  it('may be in a repeated header', async () => {
    const headers = new Headers({ authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' });
    headers.append('x-tollgate-tag', 'team=ads');
    headers.append('x-tollgate-tag', 'project=p-2');
    headers.set('x-request-id', 'tag-twice-0001');
    const body = JSON.stringify({ model: 'echo/echo', messages: TEXT });
    await (await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })).text();
    const line = () => gateway.logs.find(({ of }) => of === 'tag-twice-0001');
    await until('the call is known', () => line() !== undefined);
    expect(line()?.['tags']).to.deep.equal(['team=ads', 'project=p-2']);
  });

  it('may be sent by a web page', async () => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://chat.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,x-tollgate-tag',
      },
    });
    expect(response.headers.get('access-control-allow-headers')).to.include('x-tollgate-tag');
  });
});

describe('G67: the budget of a tag', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({
      // 0.01 USD a token.
      providers: { echo: { prices: { '*': { input: 10_000, output: 10_000 } } } },
      tags: { team: ['search', 'ads'], project: '*' },
      budgets: [{ name: 'search', amount_usd: 2, every: 'month', tag: 'team=search' }],
    });
  });
  after(() => gateway?.stop());

  const createKey = async (...words: readonly string[]) =>
    (await gateway.command<{ readonly api_key: string }>('keys', 'create', ...words)).api_key;
  const spend = async (key: string, tag?: string): Promise<number> => {
    const headers = { authorization: `Bearer ${key}`, ...(tag !== undefined && { 'x-tollgate-tag': tag }) };
    const body = {
      model: 'echo/echo',
      max_tokens: 40,
      messages: [{ role: 'user', content: 'a b c d e f g h'.repeat(3) }],
    };
    const response = await gateway.post('/v1/chat/completions', body, headers);
    await response.text();
    return response.status;
  };

  it('is not spent by requests that name the tag themselves, and is by keys that have it', async () => {
    const [stranger, member] = [
      await createKey('--user', 'eve'),
      await createKey('--user', 'bob', '--tag', 'team=search'),
    ];
    for (let call = 0; call < 8; call += 1) expect(await spend(stranger, 'team=search')).to.equal(200);
    expect(await spend(member)).to.equal(200);
    const statuses: number[] = [];
    while (statuses.length < 20 && statuses.at(-1) !== 402) statuses.push(await spend(member, 'project=x'));
    expect(statuses.at(-1)).to.equal(402);
    expect(await spend(stranger, 'team=search'), 'the tag of a request is not bound by the budget').to.equal(200);
  });

  it('is not shown to callers that name the tag themselves', async () => {
    const key = await createKey('--user', 'eve');
    const response = await gateway.get('/api/core/balance', {
      authorization: `Bearer ${key}`,
      'x-tollgate-tag': 'team=search',
    });
    expect(response.status).to.equal(200);
    expect(await response.text()).not.to.include('"search"');
  });
});
