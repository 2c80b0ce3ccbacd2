import { expect } from 'chai';
import { readLogprobs, readResponse } from '../../../../plugins/formats/openai-chat/response.ts';

const CALL = { model: 'asked', stream: false, created: 1_750_000_000, id: 'chatcmpl-own' };
const DIFFERENCES = { baseUrl: 'https://acme.example/v1' };

function read(body: object, choice: object = {}, message: object = {}) {
  const choices = [
    { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'x', ...message }, ...choice },
  ];
  return readResponse({ choices, ...body }, CALL, DIFFERENCES);
}

describe('a JSON response', () => {
  const CREATED: readonly (readonly [unknown, number])[] = [
    [1_763_000_000, 1_763_000_000],
    [1_763_000_000.9, 1_763_000_000],
    [1_763_000_000_123, 1_763_000_000],
    [0, CALL.created],
    [-1, CALL.created],
    ['2026-11-20', CALL.created],
    [undefined, CALL.created],
  ];
  for (const [reported, created] of CREATED) {
    it(`is created at ${created} when the vendor sends ${reported}`, () => {
      expect(read({ created: reported }).created).to.equal(created);
    });
  }

  it('gets the attempt’s id and the requested model when the vendor sends none', () => {
    expect(read({ id: '', model: null })).to.include({ id: 'chatcmpl-own', model: 'asked' });
  });

  it('counts choices that have no index', () => {
    const choices = [{ message: { content: 'a' } }, { message: { content: 'b' } }];
    expect(read({ choices }).choices.map(({ index }) => index)).to.deep.equal([0, 1]);
  });

  it('keeps a newer field of OpenAI’s, and removes nulls and padding', () => {
    const response = read(
      { shiny: { a: 1 }, obfuscation: 'x', nothing: null },
      { stop_reason: null },
      { annotations: [], audio: null },
    );
    expect(response)
      .to.deep.include({ shiny: { a: 1 } })
      .and.not.have.any.keys('obfuscation', 'nothing');
    expect(response.choices[0]).not.to.have.property('stop_reason');
    expect(response.choices[0]?.message).to.deep.include({ annotations: [] }).and.not.have.property('audio');
  });

  it('G29: keeps vLLM’s stop sequence under vLLM’s name', () => {
    expect(read({}, { finish_reason: 'stop', stop_reason: 'END' }).choices[0]).to.deep.include({
      finish_reason: 'stop',
      stop_reason: 'END',
      finish: { stop_sequence: 'END' },
    });
    // The id of a token.
    expect(read({}, { finish_reason: 'stop', stop_reason: 13 }).choices[0]).to.include({ stop_reason: 13 });
  });

  it('removes fields that only share a name with OpenAI’s', () => {
    const response = read({ service_tier: 'on_demand', system_fingerprint: 5, metadata: { a: 1 } });
    expect(response).not.to.have.any.keys('service_tier', 'system_fingerprint', 'metadata');
  });

  it('is empty if the vendor sent nothing', () => {
    expect(read({}, {}, { content: undefined }).choices[0]?.message).to.deep.equal({
      role: 'assistant',
      content: null,
      refusal: null,
    });
  });

  it('has no key of a hostile body in its prototype', () => {
    const body = JSON.parse(
      '{"__proto__":{"polluted":1},"choices":[{"message":{"content":"x","__proto__":{"polluted":1}}}]}',
    ) as object;
    const response = readResponse(body, CALL, DIFFERENCES);
    expect((response as { polluted?: number }).polluted).to.equal(undefined);
    expect((response.choices[0]?.message as { polluted?: number } | undefined)?.polluted).to.equal(undefined);
  });
});

describe('log probabilities', () => {
  const token = { token: 'x', logprob: -1, bytes: [120], top_logprobs: [] };
  const READ: readonly (readonly [string, unknown, unknown])[] = [
    ['keep OpenAI’s shape', { content: [token], refusal: null }, { content: [token], refusal: null }],
    ['get the half that is missing', { content: [token] }, { content: [token], refusal: null }],
    ['are null for null', null, null],
    ['are null for an empty object', {}, null],
    ['are null for a number', 0.5, null],
    ['are turned from parallel lists', { tokens: ['x'], token_logprobs: [-1] }, { content: [token], refusal: null }],
    [
      'mark a token without one',
      { tokens: ['x'], token_logprobs: [null] },
      { content: [{ ...token, logprob: -9999 }], refusal: null },
    ],
  ];
  for (const [title, reported, read] of READ) {
    it(title, () => {
      expect(readLogprobs(reported)).to.deep.equal(read);
    });
  }
});
