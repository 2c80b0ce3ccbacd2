import { expect } from 'chai';
import { type ChatResponse, StreamFailure } from '../../../../contract/index.ts';
import { geminiResponse } from '../../../../plugins/formats/google/read-response.ts';
import { codecCall, jsonFixture } from '../../../support/formats/codec.ts';

const candidate = (parts: unknown[], more: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0, ...more }],
});

function translate(body: unknown): ChatResponse {
  return geminiResponse(body, codecCall({ model: 'gemini-x' }));
}

describe('gemini answers', () => {
  it('become a chat completion with reasoning, tool calls and exact usage', () => {
    expect(translate(jsonFixture('gemini/chat.json'))).to.deep.equal({
      id: 'K2Jq6ZfTEr',
      object: 'chat.completion',
      created: 1_790_000_000,
      model: 'gemini-3.8-flash',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Hi',
            refusal: null,
            reasoning_content: 'thinking…',
            tool_calls: [
              {
                id: 'fc_9__thought__CiQBcsjafG1wX3Fib_rY-0pQk3s',
                type: 'function',
                function: { name: 'get_weather', arguments: '{"city":"Paris"}' },
                extra_content: { google: { thought_signature: 'CiQBcsjafG1wX3Fib/rY+0pQk3s=' } },
              },
            ],
          },
          finish_reason: 'tool_calls',
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: 12,
        completion_tokens: 24,
        total_tokens: 36,
        prompt_tokens_details: { cached_tokens: 6, audio_tokens: 3 },
        completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 0 },
      },
    });
  });

  it('have an empty, filtered choice when the prompt was blocked at status 200', () => {
    const { choices, usage } = translate(jsonFixture('gemini/chat-blocked.json'));
    expect(choices[0]?.finish_reason).to.equal('content_filter');
    expect(choices[0]?.message).to.deep.equal({ role: 'assistant', content: '', refusal: null });
    expect(usage?.prompt_tokens).to.equal(7);
  });

  for (const [reason, expected] of [
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['CONTINUATION', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['BLOCKLIST', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['SPII', 'content_filter'],
    ['LANGUAGE', 'content_filter'],
    ['IMAGE_SAFETY', 'content_filter'],
  ] as const) {
    it(`end with ${expected} for ${reason}`, () => {
      expect(translate(candidate([{ text: 'x' }], { finishReason: reason })).choices[0]?.finish_reason).to.equal(
        expected,
      );
    });
  }

  it('end with tool_calls when there are some, because Gemini sends STOP for them', () => {
    const body = candidate([{ functionCall: { name: 'f' } }]);
    expect(translate(body).choices[0]).to.deep.include({ finish_reason: 'tool_calls' });
    expect(translate(body).choices[0]?.message.content).to.equal(null);
  });

  for (const reason of [
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'NO_IMAGE',
    'IMAGE_OTHER',
    'OTHER',
    'FINISH_REASON_UNSPECIFIED',
    'SOMETHING_NEW',
    'toString',
  ]) {
    const finish = { native: reason, unmapped: true };
    it(`G11: are incomplete after ${reason}, and fail without content`, () => {
      for (const [parts, finish_reason] of [
        [[{ text: 'Half a' }], 'length'],
        [[{ text: 'Hm.', thought: true }], 'length'],
        [[{ functionCall: { name: 'f' } }], 'tool_calls'],
        [
          [
            {
              functionCall: {
                name: 'f',
                partialArgs: [{ jsonPath: '$.a', stringValue: 'x', willContinue: true }],
                willContinue: true,
              },
            },
          ],
          'length',
        ],
      ] as const)
        expect(translate(candidate([...parts], { finishReason: reason })).choices[0]).to.deep.include({
          finish_reason,
          finish,
        });
      for (const parts of [[], [{ text: '' }]])
        expect(() => translate(candidate(parts, { finishReason: reason })))
          .to.throw(StreamFailure)
          .with.nested.property('failure.class', 'broken_off');
    });
  }

  for (const reason of ['MALFORMED_FUNCTION_CALL', 'MALFORMED_RESPONSE', 'MISSING_THOUGHT_SIGNATURE']) {
    for (const parts of [[], [{ text: 'Half a' }], [{ functionCall: { name: 'f' } }]]) {
      it(`E19: fail, to be tried again, when the model broke off with ${reason} after ${parts.length} parts`, () => {
        expect(() => translate(candidate(parts, { finishReason: reason })))
          .to.throw(StreamFailure)
          .with.nested.property('failure.class', 'broken_off');
      });
    }
  }

  it('keep a filtered candidate without content', () => {
    const body = { candidates: [{ finishReason: 'SAFETY', index: 0 }] };
    expect(translate(body).choices[0]).to.deep.include({ finish_reason: 'content_filter' });
  });

  it('give each call of a vendor without ids its own id', () => {
    const body = candidate([{ functionCall: { name: 'f' } }, { functionCall: { name: 'f' } }]);
    const ids = translate(body).choices[0]?.message.tool_calls?.map(({ id }) => id);
    expect(new Set(ids).size).to.equal(2);
  });

  it('show images that the model made', () => {
    const body = candidate([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }]);
    expect(translate(body).choices[0]?.message).to.deep.include({
      content: null,
      images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
    });
  });

  it('show log probabilities as OpenAI does', () => {
    const logprobsResult = {
      chosenCandidates: [{ token: 'é', tokenId: 1, logProbability: -0.5 }],
      topCandidates: [{ candidates: [{ token: 'e', logProbability: -1 }] }],
    };
    expect(translate(candidate([{ text: 'é' }], { logprobsResult })).choices[0]?.logprobs).to.deep.equal({
      content: [
        { token: 'é', logprob: -0.5, bytes: [195, 169], top_logprobs: [{ token: 'e', logprob: -1, bytes: [101] }] },
      ],
      refusal: null,
    });
  });

  for (const [title, body] of [
    ['an empty object', {}],
    ['no candidates', { candidates: [] }],
    ['an unspecified block reason', { promptFeedback: { blockReason: 'BLOCK_REASON_UNSPECIFIED' } }],
    ['null', null],
    ['a text', 'hello'],
    ['a list', []],
  ] as const) {
    it(`fail on ${title} at status 200`, () => {
      expect(() => translate(body)).to.throw(StreamFailure);
    });
  }

  it('fail with the class of an error that came at status 200', () => {
    const body = { error: { code: 503, status: 'UNAVAILABLE', message: 'x' } };
    expect(() => translate([body]))
      .to.throw(StreamFailure)
      .with.nested.property('failure.class', 'overloaded');
  });

  for (const [name, count] of [
    ['promptTokenCount', 'many'],
    ['candidatesTokenCount', -4],
    ['thoughtsTokenCount', 2.4],
    ['cachedContentTokenCount', 1e12],
  ] as const) {
    it(`have no usage if ${name} is ${count} (E7)`, () => {
      const usageMetadata = { promptTokenCount: 4, candidatesTokenCount: 6, [name]: count };
      expect(translate({ ...candidate([{ text: 'x' }]), usageMetadata }).usage).to.equal(undefined);
    });
  }
});
