import { expect } from 'chai';
import type { ChatRequest } from '../../../../contract/index.ts';
import { geminiResponse } from '../../../../plugins/formats/google/read-response.ts';
import type { GeminiRequest } from '../../../../plugins/formats/google/types.ts';
import { geminiRequest } from '../../../../plugins/formats/google/write-request.ts';
import { corpusJson } from '../../../support/corpus.ts';
import { codecCall } from '../../../support/formats/codec.ts';
import { assertOpenAi } from '../../../support/formats/openai-schemas.ts';

const KONG = 'kong-ai-proxy/spec/fixtures/ai-proxy/';

describe('recorded gemini answers', () => {
  for (const [path, finish, tokens] of [
    ['gemini/llm-v1-chat/responses/good.json', 'stop', 13],
    ['gemini/llm-v1-chat/responses/fails_safety.json', 'content_filter', 319],
    ['gemini/request-transformer/response-in-json.json', 'stop', 13],
    ['unit/real-responses/gemini/llm-v1-chat.json', 'stop', 142],
  ] as const) {
    it(`of Kong’s ${path} keep their text, end and count`, () => {
      const body = corpusJson(KONG + path) as { candidates: { content?: { parts: { text: string }[] } }[] };
      const response = geminiResponse(body, codecCall());
      expect(response.choices[0]?.message.content).to.equal(body.candidates[0]?.content?.parts[0]?.text ?? '');
      expect(response.choices[0]?.finish_reason).to.equal(finish);
      expect(response.usage?.total_tokens).to.equal(tokens);
      assertOpenAi('response', response);
    });
  }

  it('belong to requests equivalent to Kong’s', () => {
    const input = corpusJson(`${KONG}unit/requests/llm-v1-chat.json`) as ChatRequest;
    const wanted = corpusJson(`${KONG}unit/expected-requests/gemini/llm-v1-chat.json`) as GeminiRequest;
    const body = geminiRequest(input, codecCall({ model: 'gemini-pro' })).body as GeminiRequest;
    expect(body.contents).to.deep.equal(wanted.contents);
    expect(body.systemInstruction).to.deep.equal(wanted.systemInstruction);
  });
});
