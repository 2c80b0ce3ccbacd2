import { expect } from 'chai';
import {
  type ChatRequest,
  isObject,
  readArray,
  readObject,
  type SseEvent,
  StreamFailure,
} from '../../../../contract/index.ts';
import { anthropicFailure } from '../../../../plugins/formats/anthropic/errors.ts';
import { anthropicResponse, anthropicStream } from '../../../../plugins/formats/anthropic/read-response.ts';
import type { AnthropicRequest } from '../../../../plugins/formats/anthropic/types.ts';
import { anthropicRequest } from '../../../../plugins/formats/anthropic/write-request.ts';
import { corpusFiles, corpusJson, corpusLines, corpusText } from '../../../support/corpus.ts';
import { codecCall, collect, decode } from '../../../support/formats/codec.ts';
import { assertOpenAi } from '../../../support/formats/openai-schemas.ts';

const VERCEL = 'vercel-ai/packages/anthropic/src/__fixtures__/';
const KONG = 'kong-ai-proxy/spec/fixtures/ai-proxy/';

/** Stream that the recorder spliced from two: it must fail. */
const SPLICED = 'spliced-message-start.chunks.txt';

function textOf(message: unknown): string {
  const blocks = readArray(readObject(message)['content']).filter(isObject);
  return blocks.map(({ type, text }) => (type === 'text' ? text : '')).join('');
}

/** Some files contain the responses of several steps in sequence; each was a separate stream. */
function responsesOf(path: string): readonly (readonly SseEvent[])[] {
  const responses: SseEvent[][] = [[]];
  for (const event of corpusLines(path)) {
    responses.at(-1)?.push(event);
    if (event.data.includes('"message_stop"')) responses.push([]);
  }
  return responses.filter(({ length }) => length > 0);
}

describe('recorded anthropic answers', () => {
  for (const name of corpusFiles(VERCEL, '.json')) {
    it(`of ${name} keep their text and count`, () => {
      const message = corpusJson(VERCEL + name);
      const response = anthropicResponse(message, codecCall());
      expect(response.choices[0]?.message.content ?? '').to.equal(textOf(message));
      expect(response.usage?.total_tokens).to.be.greaterThan(0);
      assertOpenAi('response', response);
    });
  }

  for (const name of corpusFiles(VERCEL, '.chunks.txt').filter((file) => file !== SPLICED)) {
    it(`of ${name} end once, counted, with calls that parse`, () => {
      for (const response of responsesOf(VERCEL + name)) {
        const { chunks, complete } = decode(anthropicStream(codecCall()), response);
        const whole = collect(chunks);
        expect([whole.roles, whole.finish.length, complete]).to.deep.equal([1, 1, true]);
        expect(chunks.at(-1)?.usage?.total_tokens).to.be.at.least(0);
        for (const call of whole.calls) expect(JSON.parse(call.arguments)).to.be.an('object');
        for (const chunk of chunks) assertOpenAi('chunk', chunk);
      }
    });
  }

  it(`of ${SPLICED} fail, as half of them cannot be taken back`, () => {
    expect(() => decode(anthropicStream(codecCall()), corpusLines(VERCEL + SPLICED))).to.throw(StreamFailure);
  });

  for (const name of ['good', 'no_usage_response', 'malformed_usage_response']) {
    it(`of Kong’s ${name}.json keep their text`, () => {
      const response = anthropicResponse(
        corpusJson(`${KONG}anthropic/llm-v1-chat/responses/${name}.json`),
        codecCall(),
      );
      expect(response.choices[0]?.message.content).to.equal('The sum of 1 + 1 is 2.');
      expect(response.usage === undefined).to.equal(name !== 'good');
      assertOpenAi('response', response);
    });
  }

  it('of Kong’s bad_upstream_response.json fail', () => {
    const body = corpusJson(`${KONG}anthropic/llm-v1-chat/responses/bad_upstream_response.json`);
    expect(() => anthropicResponse(body, codecCall())).to.throw(StreamFailure);
  });

  for (const [name, status, expected] of [
    ['bad_request.json', 400, 'invalid_request'],
    ['unauthorized.json', 401, 'authentication'],
    ['internal_server_error.html', 500, 'upstream_error'],
  ] as const) {
    it(`of Kong’s ${name} are classified as ${expected}`, () => {
      const text = corpusText(`${KONG}anthropic/llm-v1-chat/responses/${name}`);
      const body: unknown = name.endsWith('.json') ? JSON.parse(text) : text;
      expect(anthropicFailure(status, body, {}).class).to.equal(expected);
    });
  }

  it('belong to requests equivalent to Kong’s', () => {
    const input = corpusJson(`${KONG}unit/requests/llm-v1-chat.json`) as ChatRequest;
    const wanted = corpusJson(`${KONG}unit/expected-requests/anthropic/llm-v1-chat.json`) as {
      messages: { role: string; content: string }[];
      system: string;
    };
    const body = anthropicRequest(input, codecCall({ model: 'claude-2.1' })).body as AnthropicRequest;
    expect(body.system?.map(({ text }) => text)).to.deep.equal([wanted.system]);
    expect(body.messages.map(({ role, content }) => [role, textOf({ content })])).to.deep.equal(
      wanted.messages.map(({ role, content }) => [role, content]),
    );
  });
});
