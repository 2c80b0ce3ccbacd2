import { expect } from 'chai';
import { readBooks, settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { openAiVendor } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  respondWith,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

/** One dollar per million input tokens, two per million output tokens: a token costs one or two micro-dollars. */
const PRICES = { '*': { input: 1, output: 2 } };
/** Estimate of the gateway for PROMPT: 4 for the message, 400 bytes / 4. */
const PROMPT = 'a'.repeat(400);
const PROMPT_TOKENS = 104;

const completion = (usage?: object) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'b'.repeat(80) }, finish_reason: 'stop' }],
  ...(usage && { usage }),
});
const USAGE = { prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 };
const event = (content: string, finish_reason: string | null = null, rest: object = {}) =>
  chunk(
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason }], ...rest })}\n\n`,
  );
const refusal = (status: number) =>
  respondWith(status, { error: { message: 'no', type: status === 429 ? 'rate_limit_error' : 'server_error' } });

/** Sends the pieces of a stream, then runs `end`. */
const stream =
  (pieces: readonly Buffer[], end: Script): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    for (const piece of pieces) await wire.send(piece);
    await end(wire);
  };
const done: Script = async (wire) => {
  await wire.send(chunk('data: [DONE]\n\n'));
  await wire.send(LAST_CHUNK);
};

interface Case {
  readonly title: string;
  readonly script: Script | Buffer;
  /** Script of the alias's second target; without it the call uses the first target alone. */
  readonly second?: Script | Buffer;
  readonly stream?: boolean;
  readonly status: number;
  /** Charge in micro-dollars. The second target costs ten times as much. */
  readonly cost: number;
}

const CASES: readonly Case[] = [
  { title: 'charges what the provider counted', script: respondWith(200, completion(USAGE)), status: 200, cost: 70 },
  {
    title: 'estimates a call whose provider counts nothing',
    script: respondWith(200, completion()),
    status: 200,
    cost: PROMPT_TOKENS + 40,
  },
  {
    title: 'charges what a stream counted',
    script: stream([event('hi'), event('', 'stop', { usage: USAGE })], done),
    stream: true,
    status: 200,
    cost: 70,
  },
  {
    title: 'estimates a stream without counts, by the bytes that came',
    script: stream([event('日本'), event('日本', 'stop')], done),
    stream: true,
    status: 200,
    cost: PROMPT_TOKENS + 2 * 3,
  },
  {
    title: 'charges the prompt and what was streamed when the provider breaks off',
    script: stream([event('b'.repeat(40)), event('b'.repeat(40))], (wire) => wire.reset()),
    stream: true,
    status: 200,
    cost: PROMPT_TOKENS + 40,
  },
  {
    title: 'charges the prompt of a call that the provider let time out',
    script: (wire) => wire.hang(),
    status: 503,
    cost: PROMPT_TOKENS,
  },
  {
    title: 'charges the prompt of a call whose answer was cut',
    script: async (wire) => {
      await wire.send(head(200, { 'content-type': 'application/json', 'content-length': '5000' }));
      await wire.send('{"id":');
      wire.reset();
    },
    status: 503,
    cost: PROMPT_TOKENS,
  },
  { title: 'charges nothing for an error status', script: refusal(500), status: 503, cost: 0 },
  { title: 'charges nothing for a rate limit of the provider', script: refusal(429), status: 429, cost: 0 },
  {
    title: 'charges nothing for an error inside an answer',
    script: respondWith(200, { error: { message: 'no', type: 'server_error', code: 500 } }),
    status: 503,
    cost: 0,
  },
  {
    title: 'charges nothing for an error before the first piece of a stream',
    script: stream([chunk('data: {"error":{"message":"no","type":"server_error"}}\n\n')], done),
    stream: true,
    status: 503,
    cost: 0,
  },
  {
    title: 'charges the fallback alone when the first target refused',
    script: refusal(500),
    second: respondWith(200, completion(USAGE)),
    status: 200,
    cost: 700,
  },
  {
    title: 'charges one answer, also when the first target timed out before it',
    script: (wire) => wire.hang(),
    second: respondWith(200, completion(USAGE)),
    status: 200,
    cost: 700,
  },
  {
    title: 'charges the prompt at the target that had it when the fallback refuses @slow',
    script: (wire) => wire.hang(),
    second: refusal(500),
    status: 503,
    cost: PROMPT_TOKENS,
  },
  {
    title: 'charges the prompt once when every target times out @slow',
    script: (wire) => wire.hang(),
    second: (wire) => wire.hang(),
    status: 503,
    cost: PROMPT_TOKENS * 10,
  },
];

describe('a gateway that charges for calls', () => {
  let one: ScriptedUpstream;
  let two: ScriptedUpstream;
  let gateway: TestGateway;
  let spent = 0;

  before(async () => {
    [one, two] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
    const compatible = (upstream: ScriptedUpstream, times: number) =>
      openAiVendor(upstream, {
        timeouts: { firstByte: '300ms', idle: '2s' },
        prices: { '*': { input: PRICES['*'].input * times, output: PRICES['*'].output * times } },
      });
    gateway = await startGateway(
      {
        providers: { one: compatible(one, 1), two: compatible(two, 10), cheap: compatible(one, 0.02) },
        // One alias per case, so that a failure does not open the circuit of the next case.
        models: Object.fromEntries(CASES.map((_, n) => [`both${n}`, [`one/m${n}`, `two/m${n}`]])),
        plugins: ['./twice.mjs', './censor.mjs'],
        tts: {
          openai: {
            apiKey: 'sk-speech-secret-1234567890',
            baseUrl: one.url,
            timeouts: { firstByte: '300ms' },
            prices: { '*': { characters: 5 } },
          },
        },
      },
      { files: { 'twice.mjs': TWICE, 'censor.mjs': CENSOR } },
    );
  });
  after(() => Promise.all([gateway?.stop(), one?.close(), two?.close()]));
  beforeEach(async () => {
    ({ spent } = await readBooks(gateway.url, gateway.key));
  });

  const send = (rest: object = {}, signal?: AbortSignal) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'one/m', max_tokens: 100, messages: [{ role: 'user', content: PROMPT }], ...rest }),
      ...(signal && { signal }),
    });
  const charged = async () => (await settledBooks(gateway.url, gateway.key)).spent - spent;

  for (const [n, { title, script, second, stream: streams = false, status, cost }] of CASES.entries()) {
    it(title, async () => {
      one.script(script);
      if (second) two.script(second);
      const response = await send({ ...(second && { model: `both${n}` }), ...(streams && { stream: true }) });
      const text = await response.text();
      expect(response.status, text).to.equal(status);
      if (status === 200 && !streams)
        expect(response.headers.get('x-tollgate-cost-usd'))
          .to.match(/^0\.0+[1-9]/)
          .and.satisfy((usd: string) => Math.round(Number(usd) * 1e6) === cost);
      expect(await charged()).to.equal(cost);
    });
  }

  it('reserves the estimate while a call runs', async () => {
    let go = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    one.script(async (wire) => {
      await gate;
      await wire.send(respondWith(200, completion(USAGE)));
    });
    const seen = one.requests.length;
    const pending = send({ max_tokens: 30 });
    await one.request(seen);
    expect((await readBooks(gateway.url, gateway.key)).held).to.equal(PROMPT_TOKENS + 60);
    go();
    await pending;
    expect(await charged()).to.equal(70);
  });

  it('charges the prompt when the caller disconnects before the response', async () => {
    one.script((wire) => wire.hang());
    const seen = one.requests.length;
    const stop = new AbortController();
    const pending = send({}, stop.signal).catch(() => undefined);
    await one.request(seen);
    stop.abort();
    await pending;
    expect(await charged()).to.equal(PROMPT_TOKENS);
  });

  it('charges the prompt and the streamed part when the caller disconnects in the middle', async () => {
    one.script(stream([event('b'.repeat(40))], (wire) => wire.hang()));
    const stop = new AbortController();
    const response = await send({ stream: true }, stop.signal);
    await response.body?.getReader().read();
    stop.abort();
    expect(await charged()).to.equal(PROMPT_TOKENS + 20);
  });

  it('charges embeddings by their input', async () => {
    one.script(
      respondWith(200, {
        object: 'list',
        model: 'm',
        data: [{ object: 'embedding', index: 0, embedding: [0, 1] }],
        usage: { prompt_tokens: 9, total_tokens: 9 },
      }),
    );
    const response = await gateway.post('/v1/embeddings', { model: 'one/m', input: 'hello' });
    expect(response.status, await response.text()).to.equal(200);
    expect(await charged()).to.equal(9);
  });

  it('charges 300 embeddings of 5 tokens 300 times the cost of one, to the nano-dollar (E10) @slow', async () => {
    const embedded = { object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [0, 1] }] };
    one.script(respondWith(200, { ...embedded, usage: { prompt_tokens: 5, total_tokens: 5 } }));
    const embed = () => gateway.post('/v1/embeddings', { model: 'cheap/embedding', input: 'hello' });
    for (let made = 0; made < 300; made += 30)
      for (const response of await Promise.all(Array.from({ length: 30 }, embed))) {
        expect(response.status, await response.text()).to.equal(200);
        expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.0000001');
      }
    expect(await charged()).to.equal(30);
    const usage = await (await gateway.get('/api/core/usage?by=model&model=embedding')).json();
    expect(usage).to.have.nested.property('totals.cost_usd', '0.00003');
  });

  it('charges nothing for an error inside an embeddings response', async () => {
    one.script(respondWith(200, { error: { message: 'no', type: 'server_error', code: 500 } }));
    const response = await gateway.post('/v1/embeddings', { model: 'one/m', input: 'hello' });
    expect(response.status, await response.text()).to.equal(503);
    expect(await charged()).to.equal(0);
  });

  it('charges each model call that a plugin makes for a caller', async () => {
    one.script(respondWith(200, completion(USAGE)));
    expect((await gateway.post('/twice', {})).status).to.equal(200);
    expect(await charged()).to.equal(140);
  });

  it('charges a response that a hook refuses, and calls no other target', async () => {
    one.script(respondWith(200, completion(USAGE)));
    const requestCount = two.requests.length;
    const response = await send({ model: 'both0', user: 'censored' });
    expect(response.status, await response.text()).to.equal(503);
    expect(two.requests.length).to.equal(requestCount);
    expect(await charged()).to.equal(70);
  });

  it('charges speech by its characters', async () => {
    one.script(respondWith(200, Buffer.alloc(4800), { 'content-type': 'audio/pcm' }));
    const response = await gateway.post('/openai/tts', { model: 'tts-1', text: 'Hello you.', format: 'pcm' });
    expect(response.status).to.equal(200);
    await response.arrayBuffer();
    expect(await charged()).to.equal(50);
  });

  it('charges the characters of speech that timed out', async () => {
    one.script((wire) => wire.hang());
    const response = await gateway.post('/openai/tts', { model: 'tts-1', text: 'Hello you.', format: 'pcm' });
    expect(response.status, await response.text()).to.equal(503);
    expect(await charged()).to.equal(50);
  });

  it('charges the characters of speech whose caller disconnects in the middle', async () => {
    one.script(async (wire) => {
      await wire.send(head(200, { 'content-type': 'audio/pcm', 'content-length': '96000' }));
      await wire.send(Buffer.alloc(4800));
      await wire.hang();
    });
    const stop = new AbortController();
    const response = await fetch(`${gateway.url}/openai/tts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tts-1', text: 'Hello you.', format: 'pcm' }),
      signal: stop.signal,
    });
    expect(response.status).to.equal(200);
    await response.body?.getReader().read();
    stop.abort();
    expect(await charged()).to.equal(50);
  });

  it('charges nothing for speech that the vendor refuses', async () => {
    one.script(refusal(500));
    const response = await gateway.post('/openai/tts', { model: 'tts-1', text: 'Hello you.', format: 'pcm' });
    expect(response.status, await response.text()).to.equal(503);
    expect(await charged()).to.equal(0);
  });

  it('charges nothing for an invalid request', async () => {
    const requestCount = one.requests.length;
    expect((await send({ temperature: 3 })).status).to.equal(400);
    expect((await send({ model: 'one/' })).status).to.be.oneOf([400, 404]);
    expect(one.requests.length).to.equal(requestCount);
    expect(await charged()).to.equal(0);
  });
});

/** Calls a model twice for one request. */
const TWICE = `export default { name: 'twice', kind: 'policy', apiVersion: 1, setup(api) {
  api.route({ method: 'POST', path: '/twice', summary: 'Twice', auth: ['key'], bodyOptional: true, body: { type: 'object' }, responses: { 200: 'Done.' },
    async handler(ctx) {
      const { principal, requestId } = ctx.state;
      const request = { model: 'one/m', max_tokens: 10, messages: [{ role: 'user', content: 'x' }] };
      await Promise.all([1, 2].map(() => api.chat(request, { principal, requestId })));
      ctx.body = {};
    } });
} };`;

/** Refuses responses to one user with an error that would allow a fallback. */
const CENSOR = `import { createRequire } from 'node:module';
export default { name: 'censor', kind: 'policy', apiVersion: 1, setup(api) {
  api.hook('receive', (call) => {
    if (call.request.user !== 'censored') return undefined;
    const error = new Error('The answer was refused.');
    throw Object.assign(Object.defineProperty(error, Symbol.for('tollgate.GatewayError'), { value: true }), { code: 'provider_invalid_response', headers: {}, status: 503, toBody: () => ({ error: { message: 'The answer was refused.', code: 'provider_invalid_response' } }) });
  });
} };`;
