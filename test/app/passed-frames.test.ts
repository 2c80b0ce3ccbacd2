/** Streams and responses of vendors with OpenAI's format reach callers of this format as the vendor sent them. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { corpusText } from '../support/corpus.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { tokenPrices } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

/** Providers whose vendor has OpenAI's chat completions, so that its frames may pass. */
const PROVIDERS = (await loadProviders()).filter(({ provider }) => provider.native?.('m', true)['chat'] !== undefined);

const FIXTURES = new URL('../fixtures/', import.meta.url);
const RECORDED = corpusText('vercel-ai/packages/openai/src/chat/__fixtures__/openai-text.chunks.txt')
  .trim()
  .split('\n');
const DONE = 'data: [DONE]\n\n';
const KEY = 'sk-operator-0123456789';
/** Bytes of each chunk on the vendor's socket, which splits characters and events. */
const CUT = 61;

const framed = (data: readonly string[]): string => data.map((each) => `data: ${each}\n\n`).join('');

/** Events of a fixture, as their data. */
const fixture = (name: string): readonly string[] =>
  [...readFileSync(new URL(name, FIXTURES), 'utf8').matchAll(/^data: (\{.+\})$/gm)].map(([, data = '']) => data);

const HEAD = { id: 'c-1', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'm-1' };
const event = (delta: object, more: object = {}, of: object = {}): string =>
  JSON.stringify({ ...HEAD, choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...of }], ...more });
const ROLE = event({ role: 'assistant', content: '', refusal: null });
const STOP = event({}, {}, { finish_reason: 'stop' });
const USAGE = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 };
const COUNTED = JSON.stringify({ ...HEAD, choices: [], usage: USAGE });

/** Sends a text in small pieces and ends the response. */
const sending =
  (text: string, cut = CUT): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += cut) await wire.send(chunk(bytes.subarray(at, at + cut)));
    await wire.send(LAST_CHUNK);
  };

/** Changes nothing, but might: it gets the chunks, and returns new ones. */
const CHANGING = pluginFile({
  setup: `api.hook('stream', { handler: () => ({
    push: (chunk) => [{ ...chunk, choices: chunk.choices.map((each) => ({ ...each })) }],
    end: () => [],
  }) });`,
});

const WATCHING = pluginFile({
  setup: `api.hook('stream', { handler: () => ({ observes: true, push: () => [], end: () => [] }) });`,
});

describe('a stream of a vendor with OpenAI’s format', () => {
  let vendor: ScriptedUpstream;
  let spare: ScriptedUpstream;
  let gateway: TestGateway;
  let hooked: TestGateway;
  let watched: TestGateway;

  before(async () => {
    [vendor, spare] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
    const tiers = { service_tiers: { priority: { input: 2, output: 4 } } };
    const prices = { ...tokenPrices(1, 2), tiered: { input: 1, output: 2, ...tiers } };
    const settings = { apiKey: KEY, baseUrl: `${vendor.url}/v1`, models: ['*'], prices };
    const providers = {
      openai: settings,
      local: { ...settings, plugin: 'openai-compatible' },
      spare: { ...settings, plugin: 'openai-compatible', baseUrl: `${spare.url}/v1`, continues: 'last_message' },
      relayed: { ...settings, plugin: 'openrouter' },
      translated: { ...settings, plugin: 'openai', native: false },
    };
    const models = { both: ['openai/b', 'spare/b'], going: { targets: ['openai/g', 'spare/g'], resume: true } };
    gateway = await startGateway({ providers, models });
    hooked = await startGateway({ providers, plugins: ['./probe.mjs'] }, { files: { 'probe.mjs': CHANGING } });
    watched = await startGateway({ providers, plugins: ['./probe.mjs'] }, { files: { 'probe.mjs': WATCHING } });
  });
  after(async () => {
    await Promise.all([gateway?.stop(), hooked?.stop(), watched?.stop()]);
    await Promise.all([vendor?.close(), spare?.close()]);
  });

  const COUNTS = { stream_options: { include_usage: true } };
  const sendRequest = async (
    model: string,
    fields: object = COUNTS,
    of: TestGateway = gateway,
    onBegin?: () => void,
  ): Promise<string> => {
    const body = { model, stream: true, messages: [{ role: 'user', content: 'Hi' }], ...fields };
    const response = await of.post('/v1/chat/completions', body);
    expect(response.status).to.equal(200);
    onBegin?.();
    return response.text();
  };
  const dataOf = (text: string): readonly string[] => [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data);
  const say = (data: readonly string[], end = DONE): void => vendor.script(sending(framed(data) + end));

  it('G24: passes every frame of a recorded stream unchanged', async () => {
    say(RECORDED);
    expect(await sendRequest('openai/gpt-4.1-nano')).to.equal(framed(RECORDED) + DONE);
  });

  for (const name of ['stream.sse', 'stream-tools.sse', 'stream-logprobs.sse', 'stream-two-choices.sse'])
    it(`G24: passes every frame unchanged: openai/${name}`, async () => {
      const data = fixture(`openai/${name}`);
      say(data);
      const n = name.includes('two') ? { n: 2 } : {};
      expect(await sendRequest('openai/gpt-4o-mini', { ...COUNTS, ...n })).to.equal(framed(data) + DONE);
    });

  it('passes frames whatever a vendor adds to them', async () => {
    const data = [
      event(
        { role: 'assistant', content: '', refusal: null, audio: null },
        { usage: null, obfuscation: 'a1', x_groq: { id: 'r' } },
      ),
      event(
        { content: 'é🌍 \\ "q" \n\u0001 <&> \u2028', vendor_words: [1, { a: null }] },
        { perf: { ms: 1.5 }, usage: null },
      ),
      event({ content: '' }, { usage: null }),
      event({ reasoning_content: 'Hm.' }, { system_fingerprint: 'fp' }),
      event(
        {},
        { service_tier: 'flex', usage: null },
        { finish_reason: 'length', stop_reason: null, native_finish_reason: 'max' },
      ),
      JSON.stringify({ ...HEAD, choices: [], usage: { ...USAGE, queue_time: 0.5 }, perf: 1 }),
    ];
    say(data);
    expect(await sendRequest('openai/m')).to.equal(framed(data) + DONE);
  });

  it('keeps the vendor’s own layout of the JSON', async () => {
    const spaced = [ROLE, event({ content: 'a' }), STOP].map((each) => each.replace(/([:,])"/g, '$1 "'));
    say([...spaced, COUNTED.replace('"usage":', '"usage" : ')]);
    expect(await sendRequest('openai/m')).to.equal(
      `${framed(spaced)}data: ${COUNTED.replace('"usage":', '"usage" : ')}\n\n${DONE}`,
    );
  });

  it('leaves out usage that the caller did not ask for, and nothing else', async () => {
    const data = [
      ROLE,
      event({ content: 'a' }, { usage: null, z: 1 }),
      event({ content: 'usage: null, "usage":null' }),
      STOP,
    ];
    say([...data, COUNTED]);
    const kept = data.map((each) => each.replace(',"usage":null', ''));
    expect(await sendRequest('openai/m', {})).to.equal(framed(kept) + DONE);
  });

  it('passes frames of servers whose thinking may be in the text, from its first word on', async () => {
    const words = [
      ROLE,
      event({ content: 'Well' }),
      event({ content: ' <think>' }),
      event({ content: 'x' }),
      STOP,
      COUNTED,
    ];
    say(words);
    expect(await sendRequest('local/m')).to.equal(framed(words) + DONE);
    say([
      ROLE,
      event({ content: '<thi' }),
      event({ content: 'nk>Hm.</think>' }),
      event({ content: 'Well' }, { z: 1 }),
      STOP,
      COUNTED,
    ]);
    const read = dataOf(await sendRequest('local/m'))
      .slice(0, -1)
      .map((each) => JSON.parse(each));
    const deltas = read.flatMap(({ choices }) => choices.map(({ delta }: { delta: object }) => delta));
    expect(deltas).to.deep.include({ reasoning_content: 'Hm.', reasoning: 'Hm.' });
    expect(read.find(({ z }) => z === 1).choices[0].delta).to.deep.equal({ content: 'Well' });
  });

  describe('is rewritten where something in it is the gateway’s to change', () => {
    const chunksOf = (text: string) =>
      dataOf(text)
        .filter((each) => each !== '[DONE]')
        .map((each) => JSON.parse(each));

    it('a role that is missing or repeated, a reason in other words', async () => {
      say([
        event({ content: 'a' }, { z: 1 }),
        event({ role: 'assistant', content: 'b' }, { z: 2 }),
        event({}, { z: 3 }, { finish_reason: 'eos' }),
        COUNTED,
      ]);
      const [first, second, third, usage] = chunksOf(await sendRequest('openai/m'));
      expect([first.z, second.z, third.z]).to.deep.equal([1, 2, 3]);
      expect(first.choices[0].delta).to.deep.equal({ role: 'assistant', content: 'a' });
      expect(second.choices[0].delta).to.deep.equal({ content: 'b' });
      expect(third.choices[0]).to.deep.include({ finish_reason: 'stop' }).and.not.to.have.property('finish');
      expect(usage).to.deep.equal(JSON.parse(COUNTED));
    });

    it('thinking under another name, in details, in parts', async () => {
      const details = [{ type: 'reasoning.encrypted', data: 'opaque', format: 'anthropic-claude-v1', index: 0 }];
      say([
        ROLE,
        event({ reasoning: 'Hm.', reasoning_details: details }),
        event({ content: [{ type: 'text', text: 'Yes' }] }),
        STOP,
      ]);
      const text = await sendRequest('relayed/m');
      const deltas = chunksOf(text).flatMap(({ choices }) => choices.map(({ delta }: { delta: object }) => delta));
      expect(deltas[1]).to.deep.include({ reasoning_content: 'Hm.' });
      expect(text).not.to.include('"opaque"');
      expect(deltas.some((delta) => delta.content === 'Yes')).to.equal(true);
    });

    it('tool calls that need repair', async () => {
      const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } };
      say([
        ROLE,
        event({ tool_calls: [call] }),
        event({ tool_calls: [{ ...call, function: { name: '', arguments: '{}' } }] }),
        STOP,
      ]);
      const [, first, second, last] = chunksOf(await sendRequest('local/m'));
      expect(first.choices[0].delta.tool_calls).to.deep.equal([call]);
      expect(second.choices[0].delta.tool_calls).to.deep.equal([{ index: 0, function: { arguments: '{}' } }]);
      expect(last.choices[0].finish_reason).to.equal('tool_calls');
    });

    it('fields with a name of the gateway’s own form', async () => {
      const ours = { opaque: { type: 'x' }, dialect_fields: { messages: { a: 1 } } };
      say([
        ROLE,
        event({ content: 'a', ...ours }, { dialect_fields: { a: 1 } }, { finish: { native: 'x' } }),
        STOP,
        COUNTED,
      ]);
      const text = await sendRequest('openai/m');
      expect(text).to.include('"content":"a"');
      expect(text).not.to.match(/opaque|dialect_fields|"finish"/);
    });

    it('usage next to content, counts that do not add up, none at all', async () => {
      say([ROLE, event({ content: 'a' }), event({}, { usage: USAGE, z: 1 }, { finish_reason: 'stop' })]);
      const [, , stop, usage] = chunksOf(await sendRequest('openai/m'));
      expect(stop).to.deep.include({ z: 1 }).and.not.to.have.property('usage');
      expect([usage.choices, usage.usage]).to.deep.equal([[], USAGE]);
      say([ROLE, event({ content: 'a' }), STOP, COUNTED.replace(':25', ':26')]);
      expect(chunksOf(await sendRequest('openai/m')).at(-1).usage).to.deep.equal(USAGE);
      say([ROLE, event({ content: 'a' }), STOP]);
      expect(chunksOf(await sendRequest('openai/m')).at(-1).usage.completion_tokens).to.be.greaterThan(0);
    });

    it('a key of the operator', async () => {
      say([
        ROLE,
        event({ content: `echo ${KEY}` }, { debug: { authorization: `Bearer ${KEY}` } }),
        event({ content: KEY }),
        STOP,
      ]);
      const text = await sendRequest('openai/m');
      expect(text).to.include('"content":"echo ').and.not.to.include(KEY);
    });

    it('anything that a hook may change; one that only watches leaves it as it is', async () => {
      const data = [ROLE, event({ content: 'a' }, { usage: null }), STOP, COUNTED];
      say(data);
      const text = await sendRequest('openai/m', COUNTS, hooked);
      expect(text).to.include('"content":"a"').and.not.to.include('"usage":null');
      say(data);
      expect(await sendRequest('openai/m', COUNTS, watched)).to.equal(framed(data) + DONE);
    });

    it('anything of a provider with `native: false`', async () => {
      say([ROLE, event({ content: 'a' }, { usage: null }), STOP, COUNTED]);
      expect(await sendRequest('translated/m'))
        .to.include('"content":"a"')
        .and.not.to.include('"usage":null');
    });
  });

  it('is framed by the gateway: line ends, comments, names and lines of the vendor’s events', async () => {
    const [first = '', second = '', third = ''] = [ROLE, event({ content: 'a' }), event({ content: 'b' })];
    const halves = [third.slice(0, third.indexOf(',"created"')), third.slice(third.indexOf(',"created"'))];
    const text = [
      `\ufeff: hello\r\n\r\ndata: ${first}\r\n\r\n`,
      `: OPENROUTER PROCESSING\n\nid: 7\nretry: 10\ndata:${second}\n\n`,
      `event: message\ndata: ${halves[0]}\ndata: ${halves[1]}\n\n`,
      `data: : PROCESSING\n\ndata: ${STOP}\r\rdata: ${COUNTED}\n\n${DONE}`,
    ].join('');
    for (const cut of [1, 7, 4096]) {
      vendor.script(sending(text, cut));
      const data = dataOf(await sendRequest('openai/m'));
      expect(data.slice(0, 2)).to.deep.equal([first, second]);
      expect(JSON.parse(data[2] ?? '')).to.deep.equal(JSON.parse(third));
      expect(data.slice(3)).to.deep.equal([STOP, COUNTED, '[DONE]']);
    }
  });

  it('ends without the vendor’s [DONE], and drops what follows it', async () => {
    say([ROLE, event({ content: 'a' }), STOP, COUNTED], '');
    expect(await sendRequest('openai/m')).to.equal(framed([ROLE, event({ content: 'a' }), STOP, COUNTED]) + DONE);
    say([ROLE, event({ content: 'a' }), STOP], `${DONE}data: ${event({ content: 'late' })}\n\n`);
    expect(await sendRequest('openai/m', {})).to.equal(framed([ROLE, event({ content: 'a' }), STOP]) + DONE);
  });

  it('ends in an error frame when the vendor breaks off, sends an error, or something else than JSON', async () => {
    const begun = [ROLE, event({ content: 'a' })];
    const ends = [
      '',
      'data: {"error":{"message":"overloaded","code":503}}\n\n',
      'event: error\ndata: {"message":"no"}\n\n',
      `data: ${event({}, { error: { message: 'no' } })}\n\n`,
      `data: ${event({}, {}, { error: { message: 'no' } })}\n\n`,
      'data: {"half":\n\n',
      `data: ${event({ content: 'x'.repeat(4_300_000) })}\n\n`,
      `data: ${event({ content: 'b' }).slice(0, -1)}\n\n`,
      `data: ${event({ content: 'b' }).replace('"b"', '"b"c"')}\n\n`,
      `data: ${event({ content: 'b' }).replace('"b"', '"b\t"')}\n\n`,
      `data: ${event({ content: 'b' }).replace('"b"', '"\\x"')}\n\n`,
    ];
    for (const [at, end] of ends.entries()) {
      let send = (): void => {};
      const received = new Promise<void>((resolve) => {
        send = resolve;
      });
      vendor.script(async (wire) => {
        await wire.send(SSE_HEAD);
        await wire.send(chunk(framed(begun)));
        await received;
        if (end !== '') await wire.send(chunk(end));
        await wire.send(LAST_CHUNK);
      });
      const text = await sendRequest(`openai/failing-${at}`, COUNTS, gateway, send);
      expect(text.startsWith(framed(begun)), end).to.equal(true);
      const rest = dataOf(text.slice(framed(begun).length));
      expect(rest, end).to.have.lengthOf(1);
      expect(JSON.parse(rest[0] ?? '').error.code, end).to.be.oneOf([
        'provider_unavailable',
        'provider_overloaded',
        'provider_invalid_response',
      ]);
    }
  });

  it('lets the next target respond to an error before the first content', async () => {
    spare.script(sending(framed([ROLE, event({ content: 'spare' }), STOP]) + DONE));
    for (const first of ['{"error":{"message":"overloaded","code":503}}', event({}, { error: { message: 'no' } })]) {
      say([ROLE, first]);
      expect(await sendRequest('both', {})).to.equal(framed([ROLE, event({ content: 'spare' }), STOP]) + DONE);
    }
  });

  it('goes on at another target where its alias says so', async () => {
    vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(framed([ROLE, event({ content: 'Once upon' })])));
      wire.reset();
    });
    spare.script(sending(framed([ROLE, event({ content: ' a time' }), STOP]) + DONE));
    const text = await sendRequest('going', {});
    expect(text)
      .to.include('Once upon')
      .and.to.match(/\[DONE\]\n\n$/);
  });

  it('is charged for what was delivered when the caller leaves @slow', async () => {
    const words = Array.from({ length: 40 }, (_, at) => event({ content: `“${at}” ` }));
    const costs: number[] = [];
    for (const model of ['openai/left', 'translated/left']) {
      vendor.script(async (wire) => {
        await wire.send(SSE_HEAD);
        await wire.send(chunk(framed([ROLE, ...words])));
        await wire.hang();
      });
      const before = (await settledBooks(gateway.url, gateway.key)).spent;
      const body = { model, stream: true, messages: [{ role: 'user', content: 'Hi' }] };
      const response = await gateway.post('/v1/chat/completions', body);
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      for (let text = ''; !text.includes('“39”'); ) text += Buffer.from((await reader.read()).value ?? []).toString();
      await reader.cancel();
      costs.push((await settledBooks(gateway.url, gateway.key)).spent - before);
    }
    expect(costs[0]).to.be.greaterThan(0).and.to.equal(costs[1]);
  });

  it('is charged by the service tier that its frames name', async () => {
    const data = [ROLE, event({ content: 'a' }), event({ content: 'b' }), STOP].map((each) =>
      each.replace('"model":', '"service_tier":"priority","model":'),
    );
    for (const model of ['openai/tiered', 'translated/tiered']) {
      const before = (await settledBooks(gateway.url, gateway.key)).spent;
      say([...data, COUNTED]);
      await sendRequest(model);
      expect((await settledBooks(gateway.url, gateway.key)).spent - before, model).to.equal(20 * 2 + 5 * 4);
    }
  });

  it('is charged like a rewritten one, also without usage', async () => {
    const words = Array.from({ length: 40 }, (_, at) => event({ content: `“${at}” \n 🌍` }));
    const others = words.map((each, at) => each.replace('"delta":{', `"delta":{"n":${at},`));
    const streams = [
      [...words, STOP, COUNTED],
      [...words, STOP],
      [...others, STOP],
      fixture('openai/stream-tools.sse'),
    ];
    for (const data of streams) {
      const costs: number[] = [];
      for (const model of ['openai/m', 'translated/m']) {
        const before = (await settledBooks(gateway.url, gateway.key)).spent;
        say([ROLE, ...data]);
        await sendRequest(model, {});
        costs.push((await settledBooks(gateway.url, gateway.key)).spent - before);
      }
      expect(costs[0]).to.be.greaterThan(0).and.to.equal(costs[1]);
    }
  });
});

describe('the bill of a stream of a vendor with OpenAI’s format', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  const own = PROVIDERS.map(({ name }) => ({
    name,
    files: readdirSync(new URL(`${name}/`, FIXTURES)).filter((file) => /^(?:stream|failure).*\.sse$/.test(file)),
  }));

  before(async () => {
    vendor = await startScriptedUpstream();
    const providers = own.flatMap(({ name }) => {
      const settings = { plugin: name, apiKey: KEY, baseUrl: `${vendor.url}/v1`, models: ['*'] };
      const priced = { ...settings, prices: tokenPrices(1, 2) };
      return [
        [name, priced],
        [`${name}-translated`, { ...priced, native: false }],
      ];
    });
    gateway = await startGateway({ providers: Object.fromEntries(providers) });
  });
  after(() => Promise.all([gateway?.stop(), vendor?.close()]));

  for (const { name, files } of own)
    for (const [at, file] of files.entries())
      it(`is that of a rewritten stream: ${name}/${file}`, async () => {
        vendor.script(sending(readFileSync(new URL(`${name}/${file}`, FIXTURES), 'utf8')));
        const results: unknown[] = [];
        for (const provider of [name, `${name}-translated`]) {
          const before = (await settledBooks(gateway.url, gateway.key)).spent;
          const body = { model: `${provider}/some-${at}`, stream: true, stream_options: { include_usage: true } };
          const messages = [{ role: 'user', content: 'Hi' }];
          const response = await gateway.post('/v1/chat/completions', { ...body, messages });
          const text = await response.text();
          const frames = [...text.matchAll(/^data: (\{.+\})$/gm)].map(([, data = '']) => JSON.parse(data));
          const usage = frames.flatMap((frame) => frame.usage ?? frame.x_groq?.usage ?? []);
          const { prompt_tokens: prompt, completion_tokens: written } = usage.at(-1) ?? {};
          const spent = (await settledBooks(gateway.url, gateway.key)).spent - before;
          results.push([response.status, usage.length, prompt, written, spent, text.endsWith(DONE)]);
        }
        expect(results[0]).to.deep.equal(results[1]);
      });
});

describe('a response of a vendor with OpenAI’s format, whole', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream();
    const settings = { apiKey: KEY, baseUrl: `${vendor.url}/v1`, models: ['*'], prices: tokenPrices(1, 2) };
    gateway = await startGateway({
      providers: { openai: settings, local: { ...settings, plugin: 'openai-compatible' } },
    });
  });
  after(() => Promise.all([gateway?.stop(), vendor?.close()]));

  const send = async (body: object, model = 'openai/m', fields: object = {}): Promise<string> => {
    vendor.script(respondWith(200, body));
    const messages = [{ role: 'user', content: 'Hi' }];
    return (await gateway.post('/v1/chat/completions', { model, messages, ...fields })).text();
  };
  const MESSAGE = { role: 'assistant', content: 'Yes.', refusal: null, annotations: [], audio: null };
  const whole = (of: object = {}, more: object = {}) => ({
    ...{ id: 'c-1', object: 'chat.completion', created: 1_790_000_000, model: 'm-1' },
    choices: [{ index: 0, message: MESSAGE, logprobs: null, finish_reason: 'stop', ...of }],
    usage: USAGE,
    ...more,
  });

  it('passes unchanged, with fields that the gateway does not know', async () => {
    const body = whole(
      { stop_reason: null, message: { ...MESSAGE, vendor_words: [null, { a: null }] } },
      { service_tier: null, x_groq: { id: 'r' }, obfuscation: 'a1', usage: { ...USAGE, queue_time: 0.5, extra: null } },
    );
    expect(await send(body)).to.equal(JSON.stringify(body));
    expect(await send(body, 'local/m')).to.equal(JSON.stringify(body));
  });

  it('passes with tool calls, log probabilities and several choices', async () => {
    for (const name of ['chat.json', 'chat-tools.json', 'chat-logprobs.json', 'chat-refusal.json']) {
      const body = JSON.parse(readFileSync(new URL(`openai/${name}`, FIXTURES), 'utf8')) as object;
      expect(await send(body), name).to.equal(JSON.stringify(body));
    }
  });

  it('is rewritten where something in it is the gateway’s to change', async () => {
    const thinking = JSON.parse(
      await send(whole({ message: { ...MESSAGE, content: '<think>Hm.</think>Yes.' } }), 'local/m'),
    );
    expect(thinking.choices[0].message).to.deep.include({ content: 'Yes.', reasoning_content: 'Hm.' });
    const ended = JSON.parse(await send(whole({ finish_reason: 'eos' }, { z: 1 })));
    expect(ended.z).to.equal(1);
    expect(ended.choices[0]).to.deep.include({ finish_reason: 'stop' }).and.not.to.have.property('finish');
    const ours = await send(whole({ message: { ...MESSAGE, dialect_fields: { a: 1 }, opaque: 1 }, finish: 1 }));
    expect(ours).not.to.match(/dialect_fields|opaque|"finish"/);
    const keyed = await send(whole({}, { debug: { authorization: `Bearer ${KEY}` } }));
    expect(keyed).not.to.include(KEY);
    const { usage } = JSON.parse(await send({ ...whole(), usage: null }));
    expect(usage.completion_tokens).to.be.greaterThan(0);
  });

  it('restores the caller’s names of tools and the old form of functions', async () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'my_tool', arguments: '{}' } };
    const body = whole({ message: { ...MESSAGE, content: null, tool_calls: [call] }, finish_reason: 'tool_calls' });
    const tools = [{ type: 'function', function: { name: 'my.tool', parameters: { type: 'object' } } }];
    const renamed = JSON.parse(await send(body, 'openai/m', { tools }));
    expect(renamed.choices[0].message.tool_calls[0].function.name).to.equal('my.tool');
    const old = JSON.parse(
      await send(body, 'openai/m', { functions: [{ name: 'my_tool', parameters: { type: 'object' } }] }),
    );
    expect(old.choices[0].message.function_call).to.deep.equal({ name: 'my_tool', arguments: '{}' });
  });
});
