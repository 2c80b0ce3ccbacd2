import { expect } from 'chai';
import { type ChatResponse, StreamFailure } from '../../../../contract/index.ts';
import { anthropicRateLimits } from '../../../../plugins/formats/anthropic/errors.ts';
import { anthropicResponse } from '../../../../plugins/formats/anthropic/read-response.ts';
import { anthropicUsage } from '../../../../plugins/formats/anthropic/usage.ts';
import { ANSWER_TOOL } from '../../../../plugins/providers/kit/index.ts';
import { codecCall, jsonFixture } from '../../../support/formats/codec.ts';

const message = (content: unknown[], more: object = {}): object => ({
  id: 'msg_1',
  type: 'message',
  model: 'claude-x',
  content,
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 2 },
  ...more,
});

function translate(body: unknown): ChatResponse {
  return anthropicResponse(body, codecCall());
}

describe('anthropic answers', () => {
  it('become a chat completion with reasoning, its signature, tool calls and exact usage', () => {
    expect(translate(jsonFixture('anthropic/chat.json'))).to.deep.equal({
      id: 'msg_01A',
      object: 'chat.completion',
      created: 1_790_000_000,
      model: 'claude-sonnet-5-5',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Hi',
            refusal: null,
            reasoning_content: 'Hm.',
            reasoning_details: [{ kind: 'text', text: 'Hm.', signature: 'EqQB', format: 'anthropic' }],
            tool_calls: [
              { id: 'toolu_01', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } },
            ],
          },
          finish_reason: 'tool_calls',
          finish: { native: 'tool_use' },
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: 20,
        completion_tokens: 25,
        total_tokens: 45,
        prompt_tokens_details: { cached_tokens: 7, cache_write_tokens: 3 },
        completion_tokens_details: { reasoning_tokens: 12 },
      },
    });
  });

  for (const [reason, expected] of [
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'length'],
    ['compaction', 'length'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
  ] as const) {
    it(`end with ${expected} for ${reason}`, () => {
      expect(
        translate(message([{ type: 'text', text: 'x' }], { stop_reason: reason })).choices[0]?.finish_reason,
      ).to.equal(expected);
    });
  }

  it('G11, E19: are incomplete after an unknown stop reason, and an error without content', () => {
    for (const reason of ['something_new', 'constructor']) {
      const [choice] = translate(message([{ type: 'text', text: 'x' }], { stop_reason: reason })).choices;
      expect(choice).to.deep.include({ finish_reason: 'length', finish: { native: reason, unmapped: true } });
      expect(choice?.message.content).to.equal('x');
      expect(() => translate(message([], { stop_reason: reason }))).to.throw(StreamFailure, reason);
    }
  });

  it('G11: end with tool_calls for an unknown stop reason after complete calls', () => {
    const called = [{ type: 'tool_use', id: 't', name: 'f', input: { a: 1 } }];
    expect(translate(message(called, { stop_reason: 'something_new' })).choices[0]).to.deep.include({
      finish_reason: 'tool_calls',
      finish: { native: 'something_new', unmapped: true },
    });
  });

  it('show why the model refused', () => {
    const body = message([], { stop_reason: 'refusal', stop_details: { type: 'refusal', explanation: 'No.' } });
    expect(translate(body).choices[0]?.message).to.deep.equal({ role: 'assistant', content: null, refusal: 'No.' });
    expect(translate(message([], { stop_reason: 'refusal', stop_details: null })).choices[0]?.message.refusal).to.be.a(
      'string',
    );
  });

  it('show a structured response as text only, ended by stop', () => {
    const blocks = [
      { type: 'text', text: 'Here:' },
      { type: 'tool_use', id: 't', name: ANSWER_TOOL, input: { answer: 42 } },
    ];
    const choice = translate(message(blocks, { stop_reason: 'tool_use' })).choices[0];
    expect([choice?.message.content, choice?.finish_reason]).to.deep.equal(['{"answer":42}', 'stop']);
    expect(choice?.message).to.not.have.property('tool_calls');
  });

  it('give a call without input an empty object', () => {
    const choice = translate(
      message([{ type: 'tool_use', id: 't', name: 'f', input: {} }], { stop_reason: 'tool_use' }),
    ).choices[0];
    expect(choice?.message.tool_calls?.[0]?.function.arguments).to.equal('{}');
    expect(choice?.message.content).to.equal(null);
  });

  it('keep unknown blocks for clients that know them', () => {
    const blocks = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      null,
      'x',
      { type: 'text', text: 'ok' },
    ];
    expect(translate(message(blocks)).choices[0]?.message).to.deep.equal({
      role: 'assistant',
      content: 'ok',
      refusal: null,
      opaque: [{ type: 'opaque', dialect: 'messages', value: blocks[0] }],
      order: ['opaque:0', 'content:0'],
    });
  });

  for (const [title, body] of [
    ['an empty object', {}],
    ['null', null],
    ['a text', 'hello'],
    ['content that is no list', { content: 'x' }],
  ] as const) {
    it(`fail on ${title} at status 200`, () => {
      expect(() => translate(body)).to.throw(StreamFailure);
    });
  }

  it('fail with the class of an error that came at status 200', () => {
    const body = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    expect(() => translate(body))
      .to.throw(StreamFailure)
      .with.nested.property('failure.class', 'overloaded');
  });
});

describe('anthropic usage', () => {
  it('adds the usage of a compaction, which the totals omit', () => {
    const iterations = [
      { type: 'compaction', input_tokens: 60_385, output_tokens: 522 },
      { type: 'message', input_tokens: 612, output_tokens: 2819 },
      { type: 'advisor_message', input_tokens: 9, output_tokens: 9 },
    ];
    expect(anthropicUsage({ input_tokens: 612, output_tokens: 2819, iterations })).to.deep.include({
      prompt_tokens: 60_997,
      completion_tokens: 3341,
    });
  });

  it('uses the totals when a fallback served the response', () => {
    const iterations = [
      { type: 'message', input_tokens: 408, output_tokens: 0 },
      { type: 'fallback_message', input_tokens: 412, output_tokens: 264 },
    ];
    expect(anthropicUsage({ input_tokens: 412, output_tokens: 264, iterations })).to.deep.include({
      prompt_tokens: 412,
      completion_tokens: 264,
    });
  });

  it('separates one-hour cache writes, which cost more', () => {
    const cache_creation = { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 4 };
    const usage = { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 5, cache_creation };
    expect(anthropicUsage(usage)?.prompt_tokens_details).to.deep.equal({
      cached_tokens: 0,
      cache_write_tokens: 5,
      cache_write_1h_tokens: 4,
    });
  });

  for (const usage of [undefined, null, {}, { foo: 0, bar: 0 }, { input_tokens: 'x' }]) {
    it(`is absent for ${JSON.stringify(usage)}`, () => {
      expect(anthropicUsage(usage)).to.equal(undefined);
    });
  }
});

describe('anthropic rate limits', () => {
  it('get OpenAI’s names, and a reset counted from the answer’s date', () => {
    const headers = {
      date: 'Fri, 20 Nov 2026 10:00:00 GMT',
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '49',
      'anthropic-ratelimit-requests-reset': '2026-11-20T10:00:30Z',
      'anthropic-ratelimit-input-tokens-limit': '40000',
      'anthropic-ratelimit-input-tokens-remaining': '39000',
    };
    expect(anthropicRateLimits(headers)).to.deep.equal({
      'x-ratelimit-limit-requests': '50',
      'x-ratelimit-remaining-requests': '49',
      'x-ratelimit-reset-requests': '30s',
      'x-ratelimit-limit-tokens': '40000',
      'x-ratelimit-remaining-tokens': '39000',
    });
  });

  it('are missing if the vendor reports none', () => {
    expect(anthropicRateLimits({})).to.deep.equal({});
  });
});
