/**
 * A stop reason without a matching finish reason: the response is stored as incomplete, on every wire format and for
 * every client format.
 */
import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { AMAZON_HEAD, amazonEvent } from '../support/vendors/amazon-frames.ts';
import { completion, delta, events, openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import { responsesBody, responsesEvents } from '../support/vendors/responses-wire.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { type ScriptedOutput, streamText, wholeBody } from '../support/vendors/vendor-wires.ts';
import { eventually } from '../support/wait.ts';

const WORD = 'SOMETHING_NEW';
const USER = [{ role: 'user', content: 'Hi' }];
const TEXT: ScriptedOutput = { pieces: [{ text: 'Half an answer' }], usage: { prompt: 50, completion: 10 } };
const COST = 70;

/** Request of a client format, and the end that it reads. */
interface WayIn {
  readonly name: string;
  readonly requestOf: (model: string, stream: boolean) => readonly [path: string, body: object];
  readonly end: RegExp;
}

const WAYS: readonly WayIn[] = [
  {
    name: 'chat',
    requestOf: (model, stream) => ['/v1/chat/completions', { model, messages: USER, stream }],
    end: /"finish_reason":"length"(?:,"logprobs":null)?,"finish":\{"native":"SOMETHING_NEW","unmapped":true\}/,
  },
  {
    name: 'Messages',
    requestOf: (model, stream) => ['/v1/messages', { model, max_tokens: 100, messages: USER, stream }],
    end: /"stop_reason":"max_tokens"/,
  },
  {
    name: 'Responses',
    requestOf: (model, stream) => ['/v1/responses', { model, input: 'Hi', stream }],
    end: /"status":"incomplete".*"incomplete_details":\{"reason":"max_output_tokens"\}/,
  },
  {
    name: 'Gemini',
    requestOf: (model, stream) => [
      `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    ],
    end: /"finishReason":"MAX_TOKENS"/,
  },
];

/** Vendor that ends its response with {@link WORD}. */
interface WireCase {
  readonly model: string;
  /** Client format in which the vendor's stop reason is passed through. */
  readonly native?: string;
  readonly whole: object;
  readonly head: string;
  readonly stream: string | Uint8Array;
}

const renamed = (text: string, word: string): string => text.replaceAll(word, `"${WORD}"`);
const renamedBody = (body: object, word: string): object => JSON.parse(renamed(JSON.stringify(body), word)) as object;

const RESPONSES = { ...TEXT, finish: 'length' as const };
const CASES: Readonly<Record<string, WireCase>> = {
  chat: {
    model: 'chat/m',
    whole: renamedBody(wholeBody('openai', TEXT), '"stop"'),
    head: SSE_HEAD,
    stream: renamed(streamText('openai', TEXT), '"stop"'),
  },
  Messages: {
    ...{ model: 'claude/claude-x', native: 'Messages' },
    whole: renamedBody(wholeBody('anthropic', TEXT), '"end_turn"'),
    head: SSE_HEAD,
    stream: renamed(streamText('anthropic', TEXT), '"end_turn"'),
  },
  Gemini: {
    ...{ model: 'google/gemini-x', native: 'Gemini' },
    whole: renamedBody(wholeBody('gemini', TEXT), '"STOP"'),
    head: SSE_HEAD,
    stream: renamed(streamText('gemini', TEXT), '"STOP"'),
  },
  Responses: {
    ...{ model: 'responses/gpt-x', native: 'Responses' },
    whole: renamedBody(responsesBody(RESPONSES), '"max_output_tokens"'),
    head: SSE_HEAD,
    stream: responsesEvents(RESPONSES)
      .map((event) => `data: ${renamed(JSON.stringify(event), '"max_output_tokens"')}\n\n`)
      .join('')
      .replaceAll(`"${WORD}":null`, '"max_output_tokens":null'),
  },
  Converse: {
    model: 'bedrock/amazon.nova-x',
    whole: {
      output: { message: { role: 'assistant', content: [{ text: 'Half an answer' }] } },
      stopReason: WORD,
      usage: { inputTokens: 50, outputTokens: 10, totalTokens: 60 },
    },
    head: AMAZON_HEAD,
    stream: Buffer.concat([
      amazonEvent('messageStart', { role: 'assistant' }),
      amazonEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Half an answer' } }),
      amazonEvent('contentBlockStop', { contentBlockIndex: 0 }),
      amazonEvent('messageStop', { stopReason: WORD }),
      amazonEvent('metadata', { usage: { inputTokens: 50, outputTokens: 10, totalTokens: 60 } }),
    ]),
  },
};

describe('a response with an unknown stop reason', () => {
  let vendor: ScriptedUpstream;
  let second: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    [vendor, second] = await Promise.all([
      startScriptedUpstream(),
      startScriptedUpstream(respondWith(200, completion())),
    ]);
    const rest = { apiKey: 'k', baseUrl: vendor.url, models: ['*'], prices: tokenPrices(1, 2) };
    gateway = await startGateway({
      providers: {
        chat: openAiVendor(vendor, rest),
        claude: { plugin: 'anthropic', ...rest },
        google: { plugin: 'gemini', ...rest },
        responses: { plugin: 'openai', ...rest },
        bedrock: { region: 'us-east-1', ...rest },
        second: openAiVendor(second, { prices: tokenPrices(10, 20) }),
      },
      models: Object.fromEntries(
        Object.entries(CASES).map(([name, { model }]) => [`both-${name.toLowerCase()}`, [model, 'second/m']]),
      ),
    });
  });
  after(async () => {
    await gateway.stop();
    await Promise.all([vendor.close(), second.close()]);
  });

  const counted = async (provider: string): Promise<number> => {
    const metrics = await (await gateway.get('/metrics')).text();
    const line = new RegExp(
      `^tollgate_unmapped_finish_reasons_total\\{provider="${provider}",model="[^"]*",reason="${WORD}"\\} (\\d+)$`,
      'm',
    );
    return Number(line.exec(metrics)?.[1] ?? 0);
  };

  for (const [name, { model, native, whole, head, stream }] of Object.entries(CASES))
    for (const way of WAYS.filter((each) => name !== 'Responses' || each.name === 'Responses'))
      for (const isStream of [false, true])
        it(`G11: is stored and charged once: ${name} for ${way.name}, ${isStream ? 'streamed' : 'whole'}`, async () => {
          const { url, key } = gateway;
          const provider = model.slice(0, model.indexOf('/'));
          const [before, countedBefore] = [await settledBooks(url, key), await counted(provider)];
          vendor.script(async (wire) => {
            if (!isStream) return wire.send(respondWith(200, whole));
            await wire.send(head);
            await wire.send(chunk(stream));
            return wire.send(LAST_CHUNK);
          });
          const [path, body] = way.requestOf(`both-${name.toLowerCase()}`, isStream);
          const response = await gateway.post(path, body);
          const text = await response.text();
          expect(response.status, text).to.equal(200);
          expect(text).not.to.match(/"error":\s*\{/);
          if (way.name === native) expect(text).to.include(`"${WORD}"`);
          else expect(text).to.match(way.end);
          if (!isStream) {
            expect(text).to.include('Half an answer');
            expect(response.headers.get('x-tollgate-finish')).to.equal(WORD);
          }
          expect(response.headers.get('x-tollgate-attempts')).to.equal('1');
          expect(second.requests, 'requests to the next target').to.have.lengthOf(0);
          await eventually(async () => expect((await counted(provider)) - countedBefore).to.equal(1));
          expect((await settledBooks(url, key)).spent - before.spent).to.equal(COST);
        });

  for (const isStream of [false, true])
    it(`G11: falls back to the next target if there was no content, ${isStream ? 'streamed' : 'whole'}`, async () => {
      const { url, key } = gateway;
      const before = await settledBooks(url, key);
      const nothing = { index: 0, message: { role: 'assistant', content: '' }, finish_reason: WORD };
      vendor.script(
        isStream ? events([delta('', WORD), '[DONE]']) : respondWith(200, completion('', { choices: [nothing] })),
      );
      second.script(
        isStream
          ? events([delta('fine'), delta('', 'stop', { usage: completion().usage }), '[DONE]'])
          : respondWith(200, completion()),
      );
      const response = await gateway.post('/v1/chat/completions', {
        model: 'both-chat',
        messages: USER,
        stream: isStream,
      });
      expect(await response.text()).to.include('fine');
      expect(response.headers.get('x-tollgate-provider')).to.equal('second');
      expect(response.headers.get('x-tollgate-finish')).to.equal(null);
      expect((await settledBooks(url, key)).spent - before.spent).to.equal(10 * COST);
    });

  for (const [text, finish] of [
    ['{"city":"Paris"}', 'tool_calls'],
    ['{"city":"Pa', 'length'],
  ] as const)
    it(`G11: ends with ${finish} after a call whose arguments are ${finish === 'length' ? 'cut' : 'whole'}`, async () => {
      const called = { id: 'c1', type: 'function', function: { name: 'weather', arguments: text } };
      const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }];
      for (const stream of [false, true]) {
        const message = { role: 'assistant', content: null, tool_calls: [called] };
        const streamed = { index: 0, delta: { tool_calls: [{ index: 0, ...called }] }, finish_reason: null };
        vendor.script(
          stream
            ? events([JSON.stringify({ id: 'c', model: 'm', choices: [streamed] }), delta('', WORD), '[DONE]'])
            : respondWith(200, completion('', { choices: [{ index: 0, message, finish_reason: WORD }] })),
        );
        const response = await gateway.post('/v1/chat/completions', { model: 'chat/m', messages: USER, tools, stream });
        expect(await response.text()).to.match(
          new RegExp(`"finish_reason":"${finish}","finish":\\{"native":"${WORD}"`),
        );
      }
    });

  it('G11: is logged with its vendor’s stop reason', () => {
    expect(gateway.logs.find((line) => line['finish'] === WORD)).to.include({ level: 'warn' });
  });
});
