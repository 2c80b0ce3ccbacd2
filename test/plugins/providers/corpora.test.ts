/** Responses recorded by other projects, decoded by our codecs. */
import { expect } from 'chai';
import { type Plugin, StreamFailure } from '../../../contract/index.ts';
import azure from '../../../plugins/providers/azure.ts';
import mistral from '../../../plugins/providers/mistral.ts';
import openai from '../../../plugins/providers/openai.ts';
import { assertResponse, readChunks } from '../../conformance/provider-shape.ts';
import { CALL, decodeStream, setUpProvider } from '../../conformance/provider-subject.ts';
import { corpusJson, corpusText } from '../../support/corpus.ts';
import { assertOpenAi } from '../../support/formats/openai-schemas.ts';

const VERCEL = 'vercel-ai/packages/openai/src/';
const KONG = 'kong-ai-proxy/spec/fixtures/ai-proxy/';

/** Chat responses, and a word in each. */
const PROVIDERS: readonly (readonly [Plugin, string, string])[] = [
  [openai, `${VERCEL}chat/__fixtures__/openai-text.json`, 'Galaxy Day'],
  [openai, `${KONG}openai/llm-v1-chat/responses/good.json`, 'The sum of 1 + 1 is 2.'],
  [openai, `${KONG}openai/request-transformer/response-in-json.json`, ''],
  [openai, `${KONG}openai/request-transformer/response-with-instructions.json`, ''],
  [openai, `${KONG}openai/request-transformer/response-with-bad-instructions.json`, ''],
  [openai, `${KONG}openai/request-transformer/response-not-json.json`, ''],
  [azure, `${KONG}azure/request-transformer/response-in-json.json`, ''],
  [mistral, `${KONG}mistral/llm-v1-chat/responses/good.json`, ''],
];

/** Streams with one JSON chunk per line, as the AI SDK records them. */
const STREAMS: readonly (readonly [Plugin, string, string])[] = [
  [openai, `${VERCEL}chat/__fixtures__/openai-text.chunks.txt`, 'Holiday'],
  [azure, `${VERCEL}chat/__fixtures__/azure-model-router.1.chunks.txt`, 'Capital of Denmark'],
];

const ERRORS: readonly (readonly [string, number, string])[] = [
  [`${VERCEL}chat/__fixtures__/reasoning-model-legacy-parameter-error.json`, 400, 'invalid_request'],
  [`${KONG}openai/llm-v1-chat/responses/unauthorized.json`, 401, 'authentication'],
  [`${KONG}openai/llm-v1-chat/responses/bad_request.json`, 400, 'invalid_request'],
  [`${KONG}openai/llm-v1-chat/responses/internal_server_error.html`, 500, 'upstream_error'],
];

function providerOf(plugin: Plugin) {
  const provider = setUpProvider(plugin, plugin.name === 'azure' ? { resource: 'acme' } : {});
  if (!provider.chat) throw new Error('no chat');
  return { ...provider, chat: provider.chat };
}

describe('recorded answers', () => {
  for (const [plugin, name, words] of PROVIDERS) {
    it(`become OpenAI’s shape through ${plugin.name}: ${name}`, () => {
      const response = providerOf(plugin).chat.response(corpusJson(name), CALL);
      assertResponse(response);
      assertOpenAi('response', response);
      expect(response.choices[0]?.message.content ?? '').to.include(words);
    });
  }

  for (const [plugin, name, words] of STREAMS) {
    it(`become OpenAI’s chunks through ${plugin.name}: ${name}`, () => {
      const sse = corpusText(name)
        .trim()
        .split('\n')
        .map((line) => `data: ${line}\n\n`);
      const { chunks, complete } = decodeStream(providerOf(plugin), [
        new TextEncoder().encode(`${sse.join('')}data: [DONE]\n\n`),
      ]);
      const { choices, usage } = readChunks(chunks);
      for (const chunk of chunks) assertOpenAi('chunk', chunk);
      expect(complete).to.equal(true);
      expect(choices[0]).to.deep.include({ finish_reason: 'stop' });
      expect(choices[0]?.content).to.include(words);
      expect(usage?.total_tokens).to.be.greaterThan(0);
    });
  }

  for (const [name, status, is] of ERRORS) {
    it(`are classified as ${is}: ${name}`, () => {
      const text = corpusText(name);
      const body: unknown = name.endsWith('.json') ? JSON.parse(text) : text;
      expect(providerOf(openai).error(status, body, {}).class).to.equal(is);
    });
  }

  it('that are broken are failures, not crashes', () => {
    const body: unknown = corpusJson(`${KONG}openai/llm-v1-chat/responses/bad_upstream_response.json`);
    expect(() => providerOf(openai).chat.response(body, CALL)).to.throw(StreamFailure);
  });

  it('of embeddings keep every number', () => {
    const { embed } = providerOf(openai);
    const body = corpusJson(`${KONG}openai/llm-v1-embeddings/responses/good.json`) as {
      data: readonly { embedding: unknown }[];
    };
    const response = embed?.response(body, { model: 'm', input: 'x' }, CALL);
    assertOpenAi('embeddings', response);
    expect(response?.data.map(({ embedding }) => embedding)).to.deep.equal(body.data.map(({ embedding }) => embedding));
  });
});
