/** Interrupted streams of aliases with `resume: true`: another target continues the response. */
import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { openResponses } from '../support/clients/responses-client.ts';
import { type FailureForm, formsOf, type Heard } from '../support/gateways/failure-forms.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, framesOf, pluginFile } from '../support/plugins/plugin-file.ts';
import { delta, events, tokenPrices, usageOf } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  LAST_CHUNK,
  type RecordedRequest,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { streamText, type Wire } from '../support/vendors/vendor-wires.ts';

const BITS = ['Grü', 'ße,\n\n', ' 🎉 du'];
const FULL = BITS.join('');
/** Chunks of the first vendor, without the end marker. */
const RECORDED = Buffer.from(
  BITS.map((bit) => `data: {"id":"c","choices":[{"index":0,"delta":{"content":${JSON.stringify(bit)}}}]}\n\n`).join(''),
);
/** Uppercases all text of some models and appends the number of characters at the end. */
const LOUD = pluginFile({
  name: 'loud',
  setup: `
    api.hook('stream', { operations: ['chat'], handler(call) {
      if (call.request.model !== 'loud0') return undefined;
      let count = 0;
      let last;
      const say = (chunk, content) => ({ ...chunk, choices: [{ ...chunk.choices[0], delta: { content } }] });
      return {
        push(chunk) {
          const text = chunk.choices[0]?.delta.content ?? '';
          count += text.length;
          last = chunk;
          return text === '' ? [chunk] : [say(chunk, text.toUpperCase())];
        },
        end: () => [say(last, ' (' + count + ')')],
      };
    } });`,
});
/** Number of streams that break concurrently. */
const AT_ONCE = 32;
const PROMPT = [{ role: 'user', content: 'greet me' }];
const TOOL = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
const chunkOf = (of: object): string =>
  JSON.stringify({ ...(JSON.parse(delta('')) as object), choices: [{ index: 0, delta: of, finish_reason: null }] });
const CALL = chunkOf({
  tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{' } }],
});
const THOUGHT = chunkOf({ reasoning_content: 'hm' });

/** Sends the first `at` bytes of a stream, then disconnects. */
const cutAt =
  (bytes: Buffer, at: number): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    if (at > 0) await wire.send(chunk(bytes.subarray(0, at)));
    if (at % 2 === 0) wire.end();
    else wire.reset();
  };

interface Reply {
  readonly messages: readonly {
    readonly role: string;
    readonly content: string | readonly { readonly text: string }[];
  }[];
  readonly max_tokens?: number;
}

/** Response prefix in a request; undefined if the request has none. */
function begunIn(request: RecordedRequest): string | undefined {
  const last = (request.json() as Reply).messages.at(-1);
  if (last?.role !== 'assistant') return undefined;
  return typeof last.content === 'string' ? last.content : last.content.map(({ text }) => text).join('');
}

/** Vendor that continues the prefix of a request, or echoes the full text. */
const goesOn =
  (wire: Wire = 'openai', echoes = false): Script =>
  async (connection) => {
    const rest = echoes ? FULL : FULL.slice(begunIn(connection.request)?.length ?? 0);
    await connection.send(SSE_HEAD);
    await connection.send(chunk(streamText(wire, { pieces: [{ text: rest }], usage: { prompt: 30, completion: 4 } })));
    await connection.send(LAST_CHUNK);
  };

/** Sends these texts and disconnects without an end marker. */
const says = (...texts: readonly string[]): Script =>
  events(
    texts.map((text) => delta(text)),
    (wire) => wire.end(),
  );

describe('a stream interrupted by its vendor, of an alias with `resume: true`', function () {
  this.timeout(120_000);
  let first: ScriptedUpstream;
  let second: ScriptedUpstream;
  let third: ScriptedUpstream;
  let gateway: TestGateway;
  let used = 0;

  before(async () => {
    [first, second, third] = (await Promise.all([1, 2, 3].map(() => startScriptedUpstream()))) as [
      ScriptedUpstream,
      ScriptedUpstream,
      ScriptedUpstream,
    ];
    const rest = { apiKey: 'sk-test-0123456789', models: ['*'], prices: tokenPrices(1, 2) };
    const compatible = { ...rest, plugin: 'openai-compatible' };
    // One alias per call: an interrupted stream would make the target unhealthy for the next call.
    const aliases = (kind: string, count: number, targets: (n: number) => readonly string[], more: object = {}) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, n) => [`${kind}${n}`, { targets: targets(n), resume: true, ...more }]),
      );
    const config = {
      plugins: ['./loud.mjs'],
      providers: {
        first: { ...compatible, baseUrl: first.url },
        'first-anthropic': { ...rest, plugin: 'anthropic', baseUrl: first.url },
        'first-gemini': { ...rest, plugin: 'gemini', baseUrl: first.url },
        second: { ...compatible, baseUrl: second.url, continues: 'last_message' },
        anthropic: { ...rest, baseUrl: second.url },
        deepseek: { ...rest, baseUrl: `${second.url}/beta` },
        mistral: { ...rest, baseUrl: second.url },
        vllm: { ...compatible, baseUrl: second.url, continues: 'continue_final_message' },
        third: { ...compatible, baseUrl: third.url, continues: 'prefix' },
        mute: { ...compatible, baseUrl: second.url },
      },
      models: {
        ...aliases('byte', RECORDED.length + 1, (n) => [`first/m${n}`, `second/m${n}`]),
        ...aliases('plain', 400, (n) => [`first/p${n}`, `second/p${n}`]),
        ...aliases('messages', 100, (n) => [`first-anthropic/claude-x${n}`, `second/c${n}`]),
        ...aliases('gemini', 100, (n) => [`first-gemini/gemini-3.8-flash-${n}`, `second/g${n}`]),
        ...aliases('anthropic', 40, (n) => [`first/a${n}`, `anthropic/claude-3-x${n}`]),
        ...aliases('mistral', 40, (n) => [`first/i${n}`, `mistral/mistral-x${n}`]),
        ...aliases('deepseek', 1, (n) => [`first/d${n}`, `deepseek/deepseek-x${n}`]),
        ...aliases('vllm', 1, (n) => [`first/v${n}`, `vllm/v${n}`]),
        ...aliases('three', 2, (n) => [`first/t${n}`, `second/t${n}`, `third/t${n}`]),
        ...aliases('mute', 1, (n) => [`first/u${n}`, `mute/u${n}`]),
        ...aliases('newer', 1, (n) => [`first/w${n}`, `anthropic/claude-opus-5-${n}`]),
        ...aliases('loud', 1, (n) => [`first/l${n}`, `second/l${n}`]),
        ...aliases('off', 1, (n) => [`first/o${n}`, `second/o${n}`], { resume: false }),
      },
    };
    gateway = await startGateway(config, { files: { 'loud.mjs': LOUD } });
  });
  after(async () => {
    await gateway?.stop();
    await Promise.all([first, second, third].map((vendor) => vendor?.close()));
  });
  beforeEach(() => {
    used = second.requests.length;
    second.script(goesOn());
    third.script(goesOn());
  });

  const plain = (() => {
    let n = 0;
    return () => `plain${n++}`;
  })();
  const send = async (model: string, rest: object = {}): Promise<{ text: string; frames: readonly Frame[] }> => {
    const body = { model, stream: true, messages: PROMPT, max_tokens: 50, ...rest };
    const text = await (await gateway.post(CHAT, body)).text();
    return { text, frames: framesOf(text) as unknown as readonly Frame[] };
  };
  const hear = async (form: FailureForm, model: string): Promise<Heard> => {
    const response = await gateway.post(form.path, form.body({ model, max_tokens: 50, messages: PROMPT }));
    const text = await response.text();
    const frames = text.split('\n\n').flatMap((frame) => (frame.startsWith('data: ') ? [frame.slice(6)] : []));
    return { status: response.status, headers: Object.fromEntries(response.headers), text, frames, whole: true };
  };
  const sentSecond = (): readonly RecordedRequest[] => second.requests.slice(used);
  const bodyOf = (nth: number) => sentSecond()[nth]?.json() as Reply | undefined;

  it('is one stream with the complete text, wherever it is interrupted @slow', async () => {
    first.script((wire) => cutAt(RECORDED, Number(/"model":"m(\d+)"/.exec(wire.request.body.toString())?.[1]))(wire));
    const check = async (at: number): Promise<void> => {
      const { text, frames } = await send(`byte${at}`);
      const where = `after ${at} bytes: ${text}`;
      expect(wordsOf(frames), where).to.equal(FULL);
      expect(new Set(frames.map(({ id }) => id)).size, where).to.equal(1);
      expect(
        frames.flatMap(({ choices: [choice] }) => choice?.finish_reason ?? []),
        where,
      ).to.deep.equal(['stop']);
      expect(text, where)
        .to.match(/data: \[DONE\]\n\n$/)
        .and.not.include('"error"');
      expect(text.split('"role":"assistant"').length, where).to.be.at.most(2);
    };
    for (let from = 0; from <= RECORDED.length; from += AT_ONCE) {
      const most = Math.min(AT_ONCE, RECORDED.length + 1 - from);
      await Promise.all(Array.from({ length: most }, (_, n) => check(from + n)));
    }
    expect(sentSecond().filter((request) => begunIn(request) !== undefined).length).to.be.greaterThan(120);
  });

  for (const form of formsOf(true))
    it(`is complete for clients of the format ${form.name}`, async () => {
      const wire = form.name === 'Messages' ? 'anthropic' : 'openai';
      const bytes = Buffer.from(streamText(wire, { pieces: [{ text: FULL }] }));
      const end = bytes.indexOf(wire === 'anthropic' ? '"message_delta"' : '"finish_reason":"stop"');
      for (const [n, at] of cutsOf(bytes.subarray(0, end)).entries()) {
        first.script(cutAt(bytes, at));
        const model = form.name === 'Messages' ? `messages${n}` : plain();
        const heard = await hear(form, model);
        expect(form.text(heard), `after ${at} bytes: ${heard.text}`).to.equal(FULL);
      }
    });

  it('is complete on a Responses websocket, and for clients of legacy completions', async () => {
    first.script(says('Grü'));
    const { socket, create } = await openResponses(gateway);
    const all = await create({ model: plain(), input: 'greet me' });
    socket.close();
    const said = all.map((event) => (event.type === 'response.output_text.delta' ? String(event['delta']) : ''));
    expect([said.join(''), all.at(-1)?.type]).to.deep.equal([FULL, 'response.completed']);
    const old = await gateway.post('/v1/completions', { model: plain(), prompt: 'greet me', stream: true });
    const frames = framesOf(await old.text()) as unknown as readonly {
      readonly choices: readonly { text: string }[];
    }[];
    expect(frames.map(({ choices: [choice] }) => choice?.text ?? '').join('')).to.equal(FULL);
  });

  it('passes the transforms of plugins as one stream, and the next vendor gets the first one’s text', async () => {
    first.script(says('Grü'));
    const { text, frames } = await send('loud0');
    expect(wordsOf(frames), text).to.equal(`${FULL.toUpperCase()} (${FULL.length})`);
    expect(begunIn(sentSecond()[0] as RecordedRequest)).to.equal('Grü');
  });

  it('is complete for clients of Gemini', async () => {
    const bytes = Buffer.from(streamText('gemini', { pieces: [{ text: FULL }] }));
    for (const [n, at] of cutsOf(bytes).entries()) {
      first.script(cutAt(bytes, at));
      const body = { contents: [{ role: 'user', parts: [{ text: 'greet me' }] }] };
      const path = `/v1beta/models/gemini${n}:streamGenerateContent?alt=sse`;
      const text = await (await gateway.post(path, body)).text();
      const said = (framesOf(text) as unknown as readonly GeminiFrame[]).flatMap(({ candidates = [] }) =>
        (candidates[0]?.content?.parts ?? []).map((part) => part.text ?? ''),
      );
      expect(said.join(''), `after ${at} bytes: ${text}`).to.equal(FULL);
      expect(text.match(/"finishReason":"STOP"/g), text).to.have.lengthOf(1);
    }
  });

  for (const wire of ['anthropic', 'mistral'] as const)
    it(`continues at ${wire}, which gets the previous text in its own form`, async () => {
      for (let n = 0; n < BITS.length; n++) {
        used = second.requests.length;
        first.script(says(...BITS.slice(0, n + 1)));
        second.script(goesOn(wire, wire === 'mistral'));
        const { text, frames } = await send(`${wire}${n}`);
        expect(wordsOf(frames), text).to.equal(FULL);
        const begun = BITS.slice(0, n + 1).join('');
        const [request] = sentSecond();
        expect(request && begunIn(request)).to.equal(wire === 'anthropic' ? begun.trimEnd() : begun);
        if (wire === 'mistral') expect(bodyOf(0)?.messages.at(-1)).to.include({ prefix: true });
      }
    });

  it('continues at DeepSeek’s beta, and at servers that need a flag', async () => {
    first.script(says(BITS[0] ?? ''));
    for (const model of ['deepseek0', 'vllm0']) expect(wordsOf((await send(model)).frames)).to.equal(FULL);
    const [atDeepSeek, atVllm] = sentSecond();
    expect(atDeepSeek?.path).to.equal('/beta/chat/completions');
    expect(bodyOf(0)?.messages.at(-1)).to.include({ role: 'assistant', content: BITS[0], prefix: true });
    expect(atVllm?.json()).to.include({ add_generation_prompt: false, continue_final_message: true });
  });

  it('is reported in a comment and in the record, and both vendors are charged', async () => {
    const before = (await settledBooks(gateway.url, gateway.key)).spent;
    first.script(says('Grüße,\n\n'));
    const model = plain();
    const { text, frames } = await send(model, { stream_options: { include_usage: true } });
    expect(text).to.match(/\n\n: stream interrupted; resumed by second\/p\d+\n\n/);
    const { id = '', usage } = frames.at(-1) ?? {};
    // The first vendor's prompt and output are estimated; the second vendor reported its usage.
    const [prompt, written] = [6, 3];
    expect(usage).to.include(usageOf(prompt + 30, written + 4));
    const spent = prompt + 30 + 2 * (written + 4);
    expect((await settledBooks(gateway.url, gateway.key)).spent - before).to.equal(spent);
    const { data } = (await (await gateway.get('/api/core/calls?limit=1')).json()) as { data: readonly CallRow[] };
    const [row] = data;
    expect(row).to.include({ outcome: 'ok', requested: model });
    expect(row?.units).to.include({ prompt_tokens: prompt + 30, completion_tokens: written + 4 });
    expect(row?.attempts.map(({ target, class: kind }) => [target.split('/')[0], kind !== undefined])).to.deep.equal([
      ['first', true],
      ['second', false],
    ]);
    expect(id).to.equal(frames[0]?.id);
    expect(bodyOf(0)?.max_tokens, 'what is left of 50').to.equal(50 - written);
  });

  it('is resumed again when the second one is interrupted too', async () => {
    first.script(says('Grü'));
    second.script(says('ße,\n\n'));
    const { text, frames } = await send('three0');
    expect(wordsOf(frames), text).to.equal(FULL);
    expect(text.match(/^: stream interrupted/gm)).to.have.lengthOf(2);
    expect(third.requests.at(-1) && begunIn(third.requests.at(-1) as RecordedRequest)).to.equal('Grüße,\n\n');
  });

  it('is resumed at a third vendor when the second refuses', async () => {
    first.script(says('Grü'));
    second.script('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n');
    const { text, frames } = await send('three1');
    expect(wordsOf(frames), text).to.equal(FULL);
  });

  it('ends with the error when the next vendor repeats the text, contrary to its table', async () => {
    const long = 'These words are longer than any chance. ';
    first.script(says(long));
    second.script(says(long, 'And more.'));
    const { text, frames } = await send(plain());
    expect(wordsOf(frames)).to.equal(long);
    expect(frames.at(-1)?.error?.code, text).to.equal('provider_unavailable');
  });

  for (const [what, model, rest, script] of [
    ['unless the alias says `resume`', 'off0', {}, says('Grü')],
    ['at a vendor that does not declare it', 'mute0', {}, says('Grü')],
    ['at a model that no longer takes a begun answer', 'newer0', {}, says('Grü')],
    ['while a tool is being called', '', {}, events([delta('Grü'), CALL], (wire) => wire.end())],
    ['after thinking', '', {}, events([THOUGHT, delta('Grü')], (wire) => wire.end())],
    ['with a form to keep to', '', { response_format: { type: 'json_object' } }, says('Grü')],
    ['with several choices', '', { n: 2 }, says('Grü')],
    ['with an effort to think', '', { reasoning_effort: 'high' }, says('Grü')],
    ['with a tool that must be called', '', { tools: [TOOL], tool_choice: 'required' }, says('Grü')],
    [
      'behind an answer that the caller has begun',
      '',
      { messages: [...PROMPT, { role: 'assistant', content: 'G' }] },
      says('rü'),
    ],
  ] as const)
    it(`is not resumed ${what}: the error ends it`, async () => {
      first.script(script);
      const { text, frames } = await send(model || plain(), rest);
      expect(frames.at(-1)?.error?.code, text).to.equal('provider_unavailable');
      expect(sentSecond()).to.have.lengthOf(0);
      expect((await settledBooks(gateway.url, gateway.key)).held).to.equal(0);
    });
});

describe('an interrupted stream, of an account whose balance covers one response', () => {
  it('ends with the error, and the second vendor is not called', async () => {
    const first = await startScriptedUpstream(says('Grü'));
    const second = await startScriptedUpstream(goesOn());
    const rest = {
      plugin: 'openai-compatible',
      apiKey: 'sk-test-0123456789',
      models: ['*'],
      prices: tokenPrices(1, 2),
    };
    const gateway = await startGateway({
      billing: 'enforce',
      providers: {
        first: { ...rest, baseUrl: first.url },
        second: { ...rest, baseUrl: second.url, continues: 'last_message' },
      },
      models: { poor: { targets: ['first/m', 'second/m'], resume: true } },
    });
    try {
      // 106 micro-dollars cover 50 tokens of output and a prompt of 6 once, but not twice.
      await gateway.command('accounts', 'credit', 'local', '0.00015');
      const body = { model: 'poor', stream: true, messages: PROMPT, max_tokens: 50 };
      const text = await (await gateway.post(CHAT, body)).text();
      const frames = framesOf(text) as unknown as readonly Frame[];
      expect(wordsOf(frames), text).to.equal('Grü');
      expect(frames.at(-1)?.error?.code, text).to.equal('provider_unavailable');
      expect(second.requests).to.have.lengthOf(0);
      expect(gateway.logText()).to.include('could not be resumed at another target');
      expect(await settledBooks(gateway.url, gateway.key)).to.include({ held: 0, spent: 8 });
      // With more money the stream is resumed.
      await gateway.command('accounts', 'credit', 'local', '1');
      expect(wordsOf(framesOf(await (await gateway.post(CHAT, body)).text()) as unknown as readonly Frame[])).to.equal(
        FULL,
      );
    } finally {
      await gateway.stop();
      await Promise.all([first.close(), second.close()]);
    }
  });
});

interface CallRow {
  readonly units: Readonly<Record<string, number>>;
  readonly attempts: readonly { readonly target: string; readonly class?: string }[];
}

interface Frame {
  readonly id: string;
  readonly choices: readonly { readonly delta: { readonly content?: string }; readonly finish_reason: string | null }[];
  readonly usage?: Record<'prompt_tokens' | 'completion_tokens' | 'total_tokens', number>;
  readonly error?: { readonly code: string };
}

interface GeminiFrame {
  readonly candidates?: readonly { readonly content?: { readonly parts?: readonly { readonly text?: string }[] } }[];
}

function wordsOf(frames: readonly Frame[]): string {
  return frames.map(({ choices = [] }) => choices[0]?.delta.content ?? '').join('');
}

/** End and middle of each event. */
function cutsOf(bytes: Buffer): readonly number[] {
  const cuts: number[] = [];
  for (let from = 0, end = bytes.indexOf('\n\n'); end >= 0; from = end + 2, end = bytes.indexOf('\n\n', from))
    cuts.push(Math.floor((from + end) / 2), end + 2);
  return cuts;
}
