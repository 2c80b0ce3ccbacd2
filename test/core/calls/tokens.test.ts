import { expect } from 'chai';
import type { ChatRequest } from '../../../contract/chat.ts';
import { factsOf } from '../../../contract/facts.ts';
import { estimateChat } from '../../../core/calls/meter.ts';

/** One nano-dollar per token. */
const PRICE = { input: 0.001, output: 0.001, audio_input: 0.001 };
const base: ChatRequest = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] };
const LONG = 'x'.repeat(40_000);
const partOf = (part: { readonly type: string; readonly [field: string]: unknown }): Partial<ChatRequest> => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, part] }],
});
const base64 = Buffer.alloc(30_000, 'text ').toString('base64');

describe('the estimate of a request', () => {
  const LEAST: readonly (readonly [string, object, number])[] = [
    ['tools', { tools: [{ type: 'function', function: { name: 'f', description: LONG } }] }, 10_000],
    ['functions', { functions: [{ name: 'f', description: LONG }] }, 10_000],
    [
      'the schema of a response format',
      { response_format: { type: 'json_schema', json_schema: { name: 's', schema: { description: LONG } } } },
      10_000,
    ],
    ['a prediction, as output too', { prediction: { type: 'content', content: LONG } }, 20_000],
    ['a field that is unknown', { documents: [{ text: LONG }] }, 10_000],
    [
      'a file',
      partOf({ type: 'file', file: { filename: 'a.txt', file_data: `data:text/plain;base64,${base64}` } }),
      7500,
    ],
    ['a file that is only named', partOf({ type: 'file', file: { file_id: 'file-1' } }), 10_000],
    ['a video that is only named', partOf({ type: 'video_url', video_url: { url: 'https://v.example/1' } }), 10_000],
    ['a recording', partOf({ type: 'input_audio', input_audio: { data: base64, format: 'wav' } }), 30],
    ['a recording that is packed', partOf({ type: 'input_audio', input_audio: { data: base64, format: 'mp3' } }), 300],
    ['an image', partOf({ type: 'image_url', image_url: { url: 'https://i.example/1' } }), 765],
    ['a part that is unknown', partOf({ type: 'scroll', scroll: { words: LONG } }), 10_000],
    ['a refusal', { messages: [{ role: 'assistant', content: null, refusal: LONG }] }, 10_000],
    [
      'thinking that is sent back',
      { messages: [{ role: 'assistant', content: 'a', reasoning_content: LONG }] },
      10_000,
    ],
    [
      'a call of a function',
      { messages: [{ role: 'assistant', content: null, function_call: { name: 'f', arguments: LONG } }] },
      10_000,
    ],
  ];
  for (const [title, fields, least] of LEAST)
    it(`counts ${title} by its size`, () => {
      const plain = estimateChat(base, undefined, PRICE).cost ?? 0;
      const cost = estimateChat({ ...base, ...fields }, undefined, PRICE).cost ?? 0;
      expect(cost - plain).to.be.within(least - 10, least * 1.1 + 200);
    });

  it('counts nothing for parts that no model reads', () => {
    const more = { metadata: { note: LONG }, logit_bias: { 1: 1 }, stream_options: { include_usage: true } };
    expect(factsOf({ ...base, ...more }).inputTokens).to.equal(factsOf(base).inputTokens);
  });

  it('counts a short text file by its words', () => {
    const data = Buffer.from('a few words').toString('base64');
    const request = { ...base, ...partOf({ type: 'file', file: { file_data: data } }) };
    expect(factsOf(request).inputTokens).to.be.below(20);
  });
});
