import path from 'node:path';
import { expect } from 'chai';
import type { CallRow } from '../../contract/index.ts';
import { openSqlite } from '../../plugins/stores/sqlite/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import {
  chunk,
  LAST_CHUNK,
  type RecordedRequest,
  respondWith,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { streamText, wholeBody } from '../support/vendors/vendor-wires.ts';
import { eventually } from '../support/wait.ts';

const TOKEN = 'sk-ant-oat01-0123456789abcdefghij';
const KEY = 'sk-ant-api03-operator-0123456789';
const SAID = { pieces: [{ text: 'fine' }], usage: { prompt: 1000, completion: 200 } };
const WHOLE = respondWith(200, wholeBody('anthropic', SAID));
/** Responds as requested: with JSON, a stream or a token count. */
const DONE: Script = async ({ request, send }) => {
  if (request.path.endsWith('/count_tokens')) await send(respondWith(200, { input_tokens: 7 }));
  else if (!request.body.includes('"stream":true')) await send(WHOLE);
  else for (const part of [SSE_HEAD, chunk(streamText('anthropic', SAID)), LAST_CHUNK]) await send(part);
};
const MODEL = 'anthropic/claude-opus-5';
const BODY = { max_tokens: 64_000, messages: [{ role: 'user', content: 'hi' }] };
const HEADERS = {
  'anthropic-beta': 'claude-code-20250219',
  'user-agent': 'claude-cli/3.1.0 (external, cli)',
  'x-app': 'cli',
};

/** Records all that a plugin can see of a request and its call. */
const SPY = pluginFile({
  setup: `
    const seen = [];
    const all = (value) => {
      const known = new Set();
      return JSON.stringify(value, (_name, each) => {
        if (typeof each === 'bigint' || typeof each === 'function') return undefined;
        if (each instanceof Map) return [...each];
        if (typeof each === 'object' && each !== null) {
          if (known.has(each)) return undefined;
          known.add(each);
        }
        return each;
      });
    };
    api.use((ctx, next) => { seen.push(all([ctx.headers, ctx.req.rawHeaders, ctx.state])); return next(); });
    for (const hook of ['admit', 'prepare', 'answer', 'route', 'reserve', 'receive', 'finish', 'attempt'])
      api.hook(hook, (...all_) => { for (const each of all_) seen.push(all(each)); return undefined; });
    api.hook('send', (call, request) => { seen.push(all([call, request])); return undefined; });
    api.route({ method: 'GET', path: '/seen', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = seen.join('\\n'); } });`,
});

describe('a caller’s own subscription, if the operator allows it (E12)', () => {
  let vendor: ScriptedUpstream;
  let other: ScriptedUpstream;
  let gateway: TestGateway;
  before(async () => {
    vendor = await startScriptedUpstream(DONE);
    other = await startScriptedUpstream(respondWith(200, wholeBody('openai', SAID)));
    gateway = await startGateway(
      {
        store: 'sqlite:./data',
        providers: {
          anthropic: { baseUrl: vendor.url, apiKey: KEY, passThroughAuth: true, models: ['*'] },
          keyless: { plugin: 'anthropic', baseUrl: vendor.url, passThroughAuth: true },
          shut: { plugin: 'anthropic', baseUrl: other.url, apiKey: KEY },
          openai: { baseUrl: other.url, apiKey: 'sk-openai-0123456789' },
        },
        models: {
          mixed: ['openai/gpt-5.4', 'shut/claude-opus-5', 'anthropic/claude-opus-5', 'keyless/claude-opus-5'],
          elsewhere: ['openai/gpt-5.4'],
        },
        responseCache: {},
        budgets: [{ name: 'nothing', amount_usd: 0.0095, every: 'day' }],
        policies: { spy: { plugin: './spy.mjs' } },
      },
      { files: { 'spy.mjs': SPY }, level: 'debug' },
    );
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
    await other?.close();
  });
  beforeEach(() => vendor.script(DONE));

  /** Sends a request as Claude Code does: its own token in `authorization`, plus this gateway's key. */
  const send = async (body: object, where = '/v1/messages', headers: Record<string, string> = {}) => {
    const [seen, away] = [vendor.requests.length, other.requests.length];
    const response = await gateway.post(
      where,
      { model: MODEL, ...BODY, ...body },
      {
        ...{ authorization: `Bearer ${TOKEN}`, 'x-api-key': gateway.key },
        ...HEADERS,
        ...headers,
      },
    );
    const text = await response.text();
    return {
      ...{ response, status: response.status, text },
      sent: vendor.requests.slice(seen),
      elsewhere: other.requests.slice(away),
    };
  };
  const withKey = (body: object): Promise<Response> => gateway.post('/v1/messages', { model: MODEL, ...BODY, ...body });
  const recordOf = async ({ headers }: Response): Promise<CallRow> => {
    const store = await openSqlite({ folder: path.join(gateway.folder, 'data') });
    try {
      return await eventually(async () => {
        const { calls } = await store.ledger.calls({ limit: 100 });
        const found = calls.find(({ requestId }) => requestId === headers.get('x-request-id'));
        expect(found).to.not.equal(undefined);
        return found as CallRow;
      });
    } finally {
      await store.close();
    }
  };

  it('goes to the provider’s own host in place of our key, with the client’s own headers', async () => {
    for (const stream of [false, true]) {
      const { status, text, sent } = await send({ ...(stream && { stream }) });
      expect([status, sent.length], text).to.deep.equal([200, 1]);
      const { headers, body } = sent[0] as RecordedRequest;
      expect(headers).to.include({ authorization: `Bearer ${TOKEN}`, 'x-app': 'cli' });
      expect(headers['user-agent']).to.equal(HEADERS['user-agent']);
      expect(headers['anthropic-beta']).to.equal('claude-code-20250219,oauth-2025-04-20');
      expect(headers).to.not.have.property('x-api-key');
      expect(JSON.stringify(headers) + body.toString())
        .to.not.include(KEY)
        .and.not.include(gateway.key);
    }
  });

  it('is used for a provider without a key of the operator, and for counts', async () => {
    const { status, text, sent } = await send({ model: 'keyless/claude-opus-5' });
    expect([status, sent[0]?.headers['authorization']], text).to.deep.equal([200, `Bearer ${TOKEN}`]);
    const count = await send({}, '/v1/messages/count_tokens');
    expect([count.status, count.sent[0]?.headers['authorization']]).to.deep.equal([200, `Bearer ${TOKEN}`]);
  });

  it('is used when a budget is overspent, and for a model without a price', async () => {
    // The reservation is smaller than the cost.
    expect((await withKey({ max_tokens: 50 })).status).to.equal(200);
    await eventually(async () => expect((await withKey({ max_tokens: 1 })).status).to.equal(402));
    expect((await send({})).status).to.equal(200);
    expect((await send({ model: 'anthropic/claude-of-ours' })).status).to.equal(200);
  });

  it('costs the operator nothing: no budget in money applies, and the record has the usage and the payer', async () => {
    const { response, status } = await send({ messages: [{ role: 'user', content: 'who pays' }] });
    expect([status, response.headers.get('x-tollgate-cost-usd')]).to.deep.equal([200, '0.00']);
    const record = await recordOf(response);
    expect(record).to.include({ cost: 0, priced: true, estimated: false, provider: 'anthropic' });
    expect(record.units).to.include({ prompt_tokens: 1000, completion_tokens: 200 });
    expect(record.costParts).to.deep.equal([{ unit: 'own_subscription', quantity: 1, usd: 0 }]);
    expect((await withKey({})).status, 'the same with the operator’s money').to.equal(402);
  });

  it('is sent to no other provider of an alias, and not after a failure', async () => {
    vendor.script(respondWith(529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }));
    const failed = await send({ model: 'mixed' });
    expect(failed.status).to.equal(529);
    expect(failed.elsewhere).to.deep.equal([]);
    expect(new Set(failed.sent.map(({ path: where }) => where.split('/')[1]))).to.have.length(1);
    vendor.script(DONE);
    const { status, response, elsewhere } = await send({ model: 'mixed' });
    expect([status, elsewhere.length]).to.deep.equal([200, 0]);
    expect(response.headers.get('x-tollgate-provider')).to.equal('anthropic');
  });

  it('is refused with an explanation for another vendor’s model, and without a model', async () => {
    for (const [where, body] of [
      ['/v1/messages', { model: 'elsewhere' }],
      ['/v1/messages', { model: 'shut/claude-opus-5' }],
      ['/v1/chat/completions', {}],
      ['/v1/responses', { input: 'hi' }],
      ['/v1beta/models/anthropic/claude-opus-5:generateContent', {}],
      ['/v1/embeddings', { model: 'openai/text-embedding-3-small', input: 'hi' }],
    ] as const) {
      const { status, text, sent, elsewhere } = await send(body, where);
      expect([status, sent, elsewhere], text).to.deep.equal([400, [], []]);
      expect(text).to.include('subscription').and.not.include(TOKEN).and.not.include(gateway.key);
    }
    const two = await send({}, '/v1/messages', {
      authorization: `Bearer ${gateway.key}`,
      'x-api-key': 'ya29.a0123456789',
    });
    expect(two.status, 'a token that no vendor accepts').to.equal(400);
    const list = await gateway.get('/v1/models', { authorization: `Bearer ${TOKEN}`, 'x-api-key': gateway.key });
    expect(list.status, 'what only reads').to.equal(200);
  });

  it('is refused by the vendor as the caller’s own (401), without affecting the provider for others', async () => {
    vendor.script(
      respondWith(401, {
        type: 'error',
        error: { type: 'authentication_error', message: `OAuth token ${TOKEN} has expired` },
      }),
    );
    for (let turn = 0; turn < 6; turn += 1) {
      const { status, text } = await send({});
      expect(status, text).to.equal(401);
      expect(text).to.include('your own subscription').and.not.include(TOKEN);
    }
    vendor.script(
      respondWith(
        429,
        { type: 'error', error: { type: 'rate_limit_error', message: 'Limit' } },
        { 'retry-after': '3600' },
      ),
    );
    expect((await send({})).status).to.equal(429);
    vendor.script(DONE);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics)
      .to.include('tollgate_')
      .and.not.match(/^tollgate_target_state\{.*\} [12]$/m);
    expect((await send({ model: 'mixed' })).status).to.equal(200);
  });

  it('is visible in no plugin, log, record or cache', async () => {
    const request = { messages: [{ role: 'user', content: 'kept?' }], temperature: 0 };
    expect((await send(request)).sent).to.have.length(1);
    expect((await send(request)).sent, 'no response of a subscription is given to another call').to.have.length(1);
    const { response } = await send({ messages: [{ role: 'user', content: 'who sees it' }] });
    const record = await recordOf(response);
    const seen = await (await gateway.get('/seen')).text();
    expect(seen).to.include('who sees it').and.include('claude-opus-5');
    for (const text of [seen, gateway.logText(), JSON.stringify(record)]) {
      expect(text.includes(TOKEN)).to.equal(false);
      expect(text.includes(Buffer.from(TOKEN).toString('base64'))).to.equal(false);
    }
  });

  it('is accepted only for the vendor’s own host or the operator’s own network: `check` refuses another company’s server', async () => {
    const config = {
      providers: { anthropic: { baseUrl: 'https://relay.vendor.com', apiKey: KEY, passThroughAuth: true } },
    };
    const refused = await startGateway(config).then(
      (started) => started.stop().then(() => ''),
      (error: unknown) => String(error),
    );
    expect(refused).to.include('passThroughAuth').and.include('api.anthropic.com');
  });
});
