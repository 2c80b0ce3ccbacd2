import { expect } from 'chai';
import { ERRORS, type ErrorCode, GatewayError } from '../../../../contract/index.ts';
import { MESSAGES_ERRORS, messagesError } from '../../../../plugins/formats/anthropic/errors.ts';

/** Error types of Anthropic's SDKs, with their allowed statuses. */
const TYPES: Readonly<Record<string, readonly number[]>> = {
  invalid_request_error: [400, 405, 408, 412, 415, 426, 431],
  authentication_error: [401],
  billing_error: [402],
  permission_error: [403],
  not_found_error: [404],
  conflict_error: [409],
  request_too_large: [413],
  rate_limit_error: [429],
  api_error: [500, 503],
  timeout_error: [504],
  overloaded_error: [529],
};

describe('errors of the Messages dialect', () => {
  it('have a row for every code of the gateway, each with a type that fits its status', () => {
    expect(Object.keys(MESSAGES_ERRORS)).to.have.members(Object.keys(ERRORS));
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      const { type, status = ERRORS[code].status } = MESSAGES_ERRORS[code];
      expect(TYPES[type], `${code}: ${type}`).to.include(status);
    }
  });

  it('G14: have the format’s body with the request’s id', () => {
    expect(messagesError(new GatewayError('unsupported_model', 'No such model.'), 'req_1')).to.deep.equal({
      body: { type: 'error', error: { type: 'not_found_error', message: 'No such model.' }, request_id: 'req_1' },
    });
  });

  for (const [name, words, wanted] of [
    [
      'OpenAI',
      "openai: This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
      'prompt is too long: 130000 tokens > 128000 maximum',
    ],
    [
      'vLLM',
      "vllm: This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).",
      'input length and `max_tokens` exceed context limit: 4000 + 1000 > 4096',
    ],
    [
      'vLLM, whose prompt alone is too long',
      "vllm: This model's maximum context length is 4096 tokens. However, you requested 6000 tokens (5000 in the messages, 1000 in the completion).",
      'prompt is too long: 5000 tokens > 4096 maximum',
    ],
    [
      'Gemini',
      'gemini: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      'prompt is too long: 1200000 tokens > 1048576 maximum',
    ],
    [
      'Anthropic',
      'anthropic: prompt is too long: 210000 tokens > 200000 maximum',
      'prompt is too long: 210000 tokens > 200000 maximum',
    ],
    [
      'Anthropic, with its output',
      'anthropic: input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
    ],
    [
      'one that tells no numbers',
      'x: Your input exceeds the context window of this model.',
      'prompt is too long: x: Your input exceeds the context window of this model.',
    ],
  ] as const) {
    it(`G18: report a full context as clients expect it, in the numbers of ${name}`, () => {
      const { body } = messagesError(new GatewayError('context_length_exceeded', words), 'req_1');
      expect(body.error).to.deep.equal({ type: 'invalid_request_error', message: wanted });
    });
  }
});
