import http from 'node:http';
import { expect } from 'chai';
import { createGateway, type Gateway } from '../../core/app.ts';
import { createLogger } from '../../core/logger.ts';
import { type FailureRig, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { MINI_FILES } from '../support/plugins/mini-dialect.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { heldSse, respondWith } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const USAGE_CHUNK = delta('', 'stop', { usage: { prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 } });
const STREAM = [delta('in '), delta('pieces'), USAGE_CHUNK, '[DONE]'];
const EMBEDDED = {
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
  model: 'm',
  usage: { prompt_tokens: 50, total_tokens: 50 },
};

/** Plugin routes without model calls: a long stream that ends in an error, and a route whose first call fails. */
const FEED = pluginFile({
  name: 'feed',
  setup: `
    const body = { type: 'object', properties: {} };
    api.route({ method: 'POST', path: '/feed', summary: 'x', auth: ['key'], body, isIdempotent: true, responses: { 200: 'x' },
      handler(ctx) {
        ctx.set('content-type', 'text/event-stream');
        ctx.body = 'data: ' + 'x'.repeat(6000) + '\\n\\ndata: {"error":{"code":"broken"}}\\n\\n';
      } });
    let calls = 0;
    api.route({ method: 'POST', path: '/away', summary: 'x', auth: ['key'], body, isIdempotent: true, responses: { 200: 'x' },
      handler(ctx) { ctx.status = (calls += 1) === 1 ? 503 : 200; ctx.body = {}; } });`,
});
let keys = 0;
const freshKey = () => {
  keys += 1;
  return { 'idempotency-key': `key-${keys}` };
};

describe('a request with an Idempotency-Key', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig(
      {
        store: 'sqlite:./data',
        server: { port: 0, drainTimeout: '2s', drainDelay: '0s', idempotency: { maxSize: '16kb' } },
        dialects: { mini: { plugin: './mini.mjs' } },
        policies: { feed: { plugin: './feed.mjs' } },
      },
      { files: { ...MINI_FILES, 'feed.mjs': FEED } },
    );
  });
  after(() => rig?.stop());

  /** Comparable part of a response, without the headers that differ each time. */
  const bodyOf = async (response: Response) => ({ status: response.status, text: await response.text() });
  const post = (path: string, body: object, headers: Record<string, string>) => rig.gateway.post(path, body, headers);
  const MESSAGES = [{ role: 'user', content: 'hello' }];
  const WAYS: readonly (readonly [path: string, body: object])[] = [
    ['/v1/chat/completions', { model: 'one/m', messages: MESSAGES }],
    ['/api/core/one/chat/completions', { model: 'm', messages: MESSAGES }],
    ['/mini/chat', { m: 'one/m', say: 'hello' }],
    ['/mini/one%2Fm:say', { say: 'hello' }],
    ['/v1/embeddings', { model: 'one/m', input: 'hello' }],
  ];

  for (const [path, body] of WAYS)
    for (const stream of path.includes('embeddings') ? [false] : [false, true])
      it(`is one call on ${path}${stream ? ' as a stream' : ''}: the second gets the same bytes, and is not charged`, async () => {
        const mark = await rig.mark();
        const seen = rig.vendor.requests.length;
        rig.vendor.script(
          stream ? events(STREAM) : respondWith(200, path.includes('embeddings') ? EMBEDDED : completion('whole')),
        );
        const headers = freshKey();
        const request = { ...body, ...(stream && { stream }) };
        const first = await post(path, request, headers);
        const whole = await bodyOf(first);
        expect(whole.status, whole.text).to.equal(200);
        expect(first.headers.get('idempotency-replayed')).to.equal(null);
        const second = await post(path, request, headers);
        expect(await bodyOf(second)).to.deep.equal(whole);
        expect(second.headers.get('idempotency-replayed')).to.equal('true');
        expect(second.headers.get('content-type')).to.equal(first.headers.get('content-type'));
        expect(second.headers.get('x-request-id')).not.to.equal(first.headers.get('x-request-id'));
        if (!stream) expect(second.headers.get('x-tollgate-cost-usd')).to.equal('0');
        expect(rig.vendor.requests.slice(seen)).to.have.lengthOf(1);
        expect(rig.vendor.requests.at(-1)?.headers['idempotency-key']).to.equal(undefined);
        await rig.expectOrder(mark, 2, path.includes('embeddings') ? 50 : USAGE_COST);
      });

  it('is refused (409) with another body, and is independent on another path or without the key', async () => {
    rig.vendor.script(respondWith(200, completion()));
    const headers = freshKey();
    const body = { model: 'one/m', messages: MESSAGES };
    expect((await post('/v1/chat/completions', body, headers)).status).to.equal(200);
    const other = await post('/v1/chat/completions', { ...body, temperature: 0 }, headers);
    expect(other.status).to.equal(409);
    const { error } = (await other.json()) as { error: { code: string; param: string } };
    expect(error).to.include({ code: 'conflict', param: 'Idempotency-Key' });
    const otherForm = await post('/v1/chat/completions', body, { ...headers, accept: 'text/event-stream' });
    expect(otherForm.status, 'another form of response (E59)').to.equal(409);
    const elsewhere = await post('/api/core/one/chat/completions', { ...body, model: 'm' }, headers);
    expect([elsewhere.status, elsewhere.headers.get('idempotency-replayed')]).to.deep.equal([200, null]);
    const without = await post('/v1/chat/completions', body, {});
    expect(without.headers.get('idempotency-replayed')).to.equal(null);
  });

  it('is checked like any call when its response is replayed: by the requests a minute and the models of its key (E33)', async () => {
    rig.vendor.script(respondWith(200, completion()));
    const make = async (...limits: readonly string[]) => {
      const words = ['keys', 'create', '--user', 'rita', ...limits] as const;
      const { api_key } = await rig.gateway.command<{ api_key: string }>(...words);
      return { authorization: `Bearer ${api_key}` };
    };
    const headers = freshKey();
    const send = async (key: object) => {
      const response = await post(
        '/v1/chat/completions',
        { model: 'one/m', messages: MESSAGES },
        { ...headers, ...key },
      );
      const { error } = (await response.json()) as { error?: { code: string } };
      return [response.status, error?.code ?? response.headers.get('idempotency-replayed')];
    };
    const slow = await make('--rpm', '2');
    expect(await send(slow)).to.deep.equal([200, null]);
    expect(await send(slow)).to.deep.equal([200, 'true']);
    expect(await send(slow)).to.deep.equal([429, 'rate_limited']);
    expect(await send(await make('--models', 'two/*'))).to.deep.equal([403, 'model_not_allowed']);
    expect(await send(await make('--models', 'one/*'))).to.deep.equal([200, 'true']);
  });

  it('of another user of the same account is another request', async () => {
    rig.vendor.script(respondWith(200, completion()));
    const headers = freshKey();
    for (const user of ['one-of-two', 'two-of-two']) {
      const words = ['keys', 'create', '--user', user, '--account', 'shared'] as const;
      const { api_key: key } = await rig.gateway.command<{ api_key: string }>(...words);
      const response = await post(
        '/v1/chat/completions',
        { model: 'one/m', messages: MESSAGES },
        { ...headers, authorization: `Bearer ${key}` },
      );
      expect([response.status, response.headers.get('idempotency-replayed')], user).to.deep.equal([200, null]);
    }
  });

  it('of another user is another request', async () => {
    rig.vendor.script(respondWith(200, completion()));
    const { api_key: key } = await rig.gateway.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'somebody-else',
    );
    const headers = freshKey();
    const body = { model: 'one/m', messages: MESSAGES };
    await (await post('/v1/chat/completions', body, headers)).text();
    const theirs = await post('/v1/chat/completions', body, { ...headers, authorization: `Bearer ${key}` });
    expect([theirs.status, theirs.headers.get('idempotency-replayed')]).to.deep.equal([200, null]);
  });

  for (const stream of [false, true])
    it(`is charged once for 50 concurrent equal requests${stream ? ', streamed' : ''}; the others are asked to retry`, async () => {
      const mark = await rig.mark();
      const seen = rig.vendor.requests.length;
      rig.vendor.script(async (wire) => {
        await wire.pause(150);
        await (stream ? events(STREAM)(wire) : wire.send(respondWith(200, completion())));
      });
      const headers = freshKey();
      const body = { model: 'one/m', stream, messages: MESSAGES };
      const all = await Promise.all(Array.from({ length: 50 }, () => post('/v1/chat/completions', body, headers)));
      const texts = await Promise.all(all.map((response) => response.text()));
      const won = all.filter(
        ({ status, headers: reported }) => status === 200 && !reported.get('idempotency-replayed'),
      );
      expect(won).to.have.lengthOf(1);
      for (const { status, headers: reported } of all.filter((response) => response.status !== 200)) {
        expect(status).to.equal(409);
        expect(Number(reported.get('retry-after'))).to.be.above(0);
        expect(reported.get('x-should-retry')).to.equal('true');
      }
      expect(rig.vendor.requests.slice(seen)).to.have.lengthOf(1);
      const again = await bodyOf(await post('/v1/chat/completions', body, headers));
      expect(texts).to.include(again.text);
      const replayed = all.filter(
        ({ status, headers: reported }) => status === 200 && reported.get('idempotency-replayed'),
      );
      await rig.expectOrder(mark, 2 + replayed.length, USAGE_COST);
    });

  it('is not stored after a failure: the next one is processed', async () => {
    rig.vendor.script(respondWith(400, { error: { message: 'no', type: 'invalid_request_error' } }));
    const headers = freshKey();
    const body = { model: 'one/m', messages: MESSAGES };
    expect((await post('/v1/chat/completions', body, headers)).status).to.equal(400);
    rig.vendor.script(respondWith(200, completion()));
    const second = await post('/v1/chat/completions', body, headers);
    expect([second.status, second.headers.get('idempotency-replayed')]).to.deep.equal([200, null]);
  });

  it('is not stored after an interrupted stream either', async () => {
    rig.vendor.script(events([delta('so far')], (wire) => wire.reset()));
    const headers = freshKey();
    const body = { model: 'one/m', stream: true, messages: MESSAGES };
    expect(await (await post('/v1/chat/completions', body, headers)).text()).to.include('"error"');
    rig.vendor.script(events(STREAM));
    const second = await post('/v1/chat/completions', body, headers);
    expect(await second.text()).to.include('[DONE]');
    expect(second.headers.get('idempotency-replayed')).to.equal(null);
  });

  it('E59: is not stored after a long stream with an error at its end, also without a call', async () => {
    const headers = freshKey();
    for (let n = 0; n < 2; n++) {
      const response = await post('/feed', {}, headers);
      expect(await response.text()).to.include('"error"');
      expect(response.headers.get('idempotency-replayed')).to.equal(null);
    }
  });

  it('is not stored after a failure without a call either', async () => {
    const headers = freshKey();
    const statuses = [];
    for (let n = 0; n < 2; n++) statuses.push((await post('/away', {}, headers)).status);
    expect(statuses).to.deep.equal([503, 200]);
  });

  it('runs to its end when its caller disconnects, who then gets it all and pays once', async () => {
    const mark = await rig.mark();
    const held = heldSse(delta('in '), ...STREAM.slice(1));
    rig.vendor.script(held.script);
    const headers = freshKey();
    const body = { model: 'one/m', stream: true, messages: MESSAGES };
    const leaving = new AbortController();
    const first = await fetch(`${rig.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${rig.gateway.key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    await first.body?.getReader().read();
    leaving.abort();
    expect((await post('/v1/chat/completions', body, headers)).status).to.equal(409);
    held.finish();
    await eventually(async () => {
      const again = await post('/v1/chat/completions', body, headers);
      expect([again.status, await again.text()].join()).to.match(/^200[\s\S]*pieces[\s\S]*\[DONE\]/);
    });
    await rig.expectOrder(mark, 2, USAGE_COST);
  });

  it('is refused when it is repeated after an oversized response, and is not processed again', async () => {
    const mark = await rig.mark();
    rig.vendor.script(respondWith(200, completion('x'.repeat(20_000))));
    const headers = freshKey();
    const body = { model: 'one/m', messages: MESSAGES };
    expect(await (await post('/v1/chat/completions', body, headers)).text()).to.include('xxxx');
    const second = await post('/v1/chat/completions', body, headers);
    expect(second.status).to.equal(409);
    expect(await second.text()).to.include('too large to store');
    await rig.expectOrder(mark, 2, USAGE_COST);
  });

  it('has one line in the log and one count, with the outcome of its call', async () => {
    rig.vendor.script(respondWith(200, completion()));
    const requestId = `idempotent-${process.pid}`;
    await (
      await post(
        '/v1/chat/completions',
        { model: 'one/m', messages: MESSAGES },
        { ...freshKey(), 'x-request-id': requestId },
      )
    ).text();
    const lines = () =>
      rig.gateway.logs.filter((line) => line['request_id'] === requestId && line['msg'] === 'request');
    await eventually(async () => expect(lines()).to.have.lengthOf(1));
    expect(lines()[0]).to.include({ outcome: 'ok', provider: 'one', status: 200, cost_usd: '0.00007' });
  });

  for (const key of ['', ' x', 'é', 'x'.repeat(256)])
    it(`is 400 for a key that is ${JSON.stringify(key.slice(0, 20))}`, async () => {
      const status = await new Promise((resolve) => {
        const request = http.request(`${rig.gateway.url}/v1/chat/completions`, { method: 'POST' }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        request.setHeader('authorization', `Bearer ${rig.gateway.key}`);
        request.setHeader('content-type', 'application/json');
        request.setHeader('idempotency-key', key);
        request.end(JSON.stringify({ model: 'one/m', messages: MESSAGES }));
      });
      // Surrounding spaces are not part of a header's value.
      expect(status).to.equal(key === ' x' ? 200 : 400);
    });

  it('is supported for a caller whose credential is in the URL', async () => {
    rig.vendor.script(respondWith(200, completion()));
    const send = () =>
      fetch(`${rig.gateway.url}/mini/chat?key=${rig.gateway.key}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'by-url' },
        body: JSON.stringify({ m: 'one/m', say: 'hello' }),
      });
    const first = await bodyOf(await send());
    expect(first.status, first.text).to.equal(200);
    const second = await send();
    expect(second.headers.get('idempotency-replayed')).to.equal('true');
    expect(rig.gateway.logText()).not.to.include(rig.gateway.key);
  });

  it('is ignored on routes that are free of charge', async () => {
    const headers = freshKey();
    for (let n = 0; n < 2; n += 1) {
      const counted = await post('/mini/count', { m: 'one/m', say: 'hello' }, headers);
      expect(counted.headers.get('idempotency-replayed')).to.equal(null);
    }
  });

  describe('on two nodes of one store', () => {
    let other: Gateway;
    before(async () => {
      other = await createGateway({
        cwd: rig.gateway.folder,
        env: {},
        configPath: `${rig.gateway.folder}/tollgate.config.json`,
        log: createLogger({ level: 'silent' }),
      });
    });
    after(() => other.close());

    const send = (url: string, headers: Record<string, string>) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${rig.gateway.key}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'one/m', messages: MESSAGES }),
      });

    it('is known to the other one, as after a restart', async () => {
      rig.vendor.script(respondWith(200, completion('before')));
      const headers = freshKey();
      const first = await bodyOf(await send(rig.gateway.url, headers));
      const response = await send(other.url, headers);
      expect(response.headers.get('idempotency-replayed')).to.equal('true');
      expect(await bodyOf(response)).to.deep.equal(first);
    });

    it('is charged once when both receive it concurrently', async () => {
      const mark = await rig.mark();
      const seen = rig.vendor.requests.length;
      rig.vendor.script(async (wire) => {
        await wire.pause(150);
        await wire.send(respondWith(200, completion()));
      });
      const headers = freshKey();
      const all = await Promise.all(
        Array.from({ length: 50 }, (_, n) => send(n % 2 === 0 ? rig.gateway.url : other.url, headers)),
      );
      await Promise.all(all.map((response) => response.text()));
      const won = all.filter(
        ({ status, headers: reported }) => status === 200 && reported.get('idempotency-replayed') === null,
      );
      expect(won).to.have.lengthOf(1);
      expect(rig.vendor.requests.slice(seen)).to.have.lengthOf(1);
      expect((await rig.mark()).books.spent - mark.books.spent).to.equal(USAGE_COST);
    });
  });
});
