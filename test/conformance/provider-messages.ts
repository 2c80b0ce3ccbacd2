import assert from 'node:assert/strict';
import { type ChatMessage, isGatewayError, readObject } from '../../contract/index.ts';
import { itShows } from './cells.ts';
import { deepFreeze } from './deep-freeze.ts';
import { CALL, type ProviderSubject } from './provider-subject.ts';
import { findRunner } from './runner.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function call(id: string, city: string) {
  return { id, type: 'function', function: { name: 'get_weather', arguments: JSON.stringify({ city }) } } as const;
}

/** Maximum length of ids at the vendors that document one: Gemini and Anthropic. */
const MAX_ID = 64;
const SIGNATURE = 'CiQBcsjafG1wX3Fib_rY-0pQk3s'.repeat(100);

/** Call ids of other vendors: a conversation may continue at another vendor. */
const FOREIGN_IDS: readonly (readonly [whose: string, ids: readonly string[]])[] = [
  ['odd characters', ['call_from+another/vendor==', 'call_from+another/vendor=+']],
  ['41 characters', [`call_a${'0'.repeat(35)}`, `call_b${'0'.repeat(35)}`]],
  ['Gemini’s signature in them', [`fc_1__thought__${SIGNATURE}`, `fc_2__thought__${SIGNATURE}`, 'fc_3']],
  ['100 characters and differ in the last', [`call_${'x'.repeat(94)}A`, `call_${'x'.repeat(94)}B`]],
];

/** Conversations, and the words that must reach the vendor. */
export const CONVERSATIONS: readonly {
  readonly feature: string;
  readonly messages: readonly ChatMessage[];
  readonly arrives: readonly string[];
}[] = [
  {
    feature: 'system messages',
    messages: [
      { role: 'system', content: 'Be BRIEF' },
      { role: 'user', content: 'Hello YOU' },
    ],
    arrives: ['BRIEF', 'YOU'],
  },
  {
    feature: 'developer messages',
    messages: [
      { role: 'developer', content: 'Be BRIEF' },
      { role: 'user', content: 'Hello YOU' },
    ],
    arrives: ['BRIEF', 'YOU'],
  },
  {
    feature: 'several turns',
    messages: [
      { role: 'user', content: 'FIRST' },
      { role: 'assistant', content: 'SECOND' },
      { role: 'user', content: 'THIRD' },
    ],
    arrives: ['FIRST', 'SECOND', 'THIRD'],
  },
  {
    feature: 'text parts',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'PART-ONE' },
          { type: 'text', text: 'PART-TWO' },
        ],
      },
    ],
    arrives: ['PART-ONE', 'PART-TWO'],
  },
  {
    feature: 'images by URL',
    messages: [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://images.example/cat.png' } }] },
    ],
    arrives: ['https://images.example/cat.png'],
  },
  {
    feature: 'images as data',
    messages: [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } }] },
    ],
    arrives: [PIXEL],
  },
  {
    feature: 'tool results',
    messages: [
      { role: 'user', content: 'Weather in PARIS?' },
      { role: 'assistant', content: null, tool_calls: [call('call_1', 'PARIS')] },
      { role: 'tool', tool_call_id: 'call_1', content: 'SUNNY' },
    ],
    arrives: ['PARIS', 'SUNNY', 'get_weather'],
  },
  {
    feature: 'results of parallel tools',
    messages: [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: null, tool_calls: [call('call_1', 'PARIS'), call('call_2', 'ROME')] },
      { role: 'tool', tool_call_id: 'call_1', content: 'SUNNY' },
      { role: 'tool', tool_call_id: 'call_2', content: 'RAINY' },
    ],
    arrives: ['PARIS', 'ROME', 'SUNNY', 'RAINY'],
  },
];

/** Six cache marks, the longer ones behind shorter ones. */
const MARKED: readonly ChatMessage[] = ['1h', '5m', '1h', '5m', '1h', '5m'].map((ttl, at) => ({
  role: at === 0 ? 'system' : at % 2 === 1 ? 'user' : 'assistant',
  content: [{ type: 'text', text: `Part ${at}.`, cache_control: { type: 'ephemeral', ttl } }],
})) as never;

/** Tests that the content of a conversation reaches the vendor, or is rejected with its place. */
export function testMessages({ name, provider: { chat, fields: table } }: ProviderSubject): void {
  const { describe, it } = findRunner();
  if (!chat) return;
  const request = (messages: readonly ChatMessage[]) => chat.request(deepFreeze({ model: CALL.model, messages }), CALL);

  describe('a conversation', () => {
    for (const { feature, messages, arrives } of CONVERSATIONS) {
      const refusal = refusalOf(() => request(messages));
      const says = refusal ? 'refused' : 'verified';
      itShows(it, { provider: name, feature, says }, refusal ? `refuses ${feature}` : `keeps ${feature}`, () => {
        if (refusal) return assert.match(refusal.param ?? '', /^messages\[\d+\]/);
        const sent = JSON.stringify(request(messages).body);
        for (const words of arrives) assert.ok(sent.includes(words), `${words} is missing`);
      });
    }

    for (const model of [CALL.model, ...(table?.variants ?? []).map(({ example }) => example.model)])
      it(`has at most four cache marks, and none of an hour after one of five minutes, for ${model}`, () => {
        const { body } = chat.request(deepFreeze({ model, messages: MARKED }), { ...CALL, model });
        const sent = ['tools', 'system', 'messages', 'contents', 'input'].map((place) =>
          JSON.stringify(readObject(body)[place]),
        );
        const marks = sent.join().match(/"(?:cache_control|cachePoint)":\{[^}]*\}/g) ?? [];
        assert.ok(marks.length <= 4, `${marks.length} marks are sent`);
        const short = marks.findIndex((mark) => !mark.includes('"1h"'));
        assert.ok(short < 0 || !marks.slice(short).some((mark) => mark.includes('"1h"')), marks.join(', '));
      });

    for (const [whose, ids] of FOREIGN_IDS) {
      it(`gives tools’ calls and results the same short ids if they have ${whose}`, () => {
        const messages: ChatMessage[] = [
          { role: 'user', content: 'Weather?' },
          { role: 'assistant', content: null, tool_calls: ids.map((id) => call(id, 'PARIS')) },
          ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'SUNNY' }) as const),
        ];
        const refusal = refusalOf(() => request(messages));
        if (refusal) return assert.match(refusal.param ?? '', /^messages\[\d+\]/);
        const body = JSON.stringify(request(messages).body);
        const sent = [...body.matchAll(/"(?:id|tool_call_id|tool_use_id)":"([^"]+)"/g)].map((match) => match[1] ?? '');
        const half = sent.length / 2;
        assert.deepEqual(sent.slice(half), sent.slice(0, half), 'a result names its call');
        assert.equal(new Set(sent).size, half, 'calls stay apart');
        for (const id of sent) assert.ok(id.length <= MAX_ID, `${id.length} characters are too many`);
      });
    }
  });
}

function refusalOf(request: () => unknown): { readonly param: string | undefined } | undefined {
  try {
    request();
    return undefined;
  } catch (error) {
    if (isGatewayError(error) && error.code === 'invalid_request') return error;
    throw error;
  }
}
