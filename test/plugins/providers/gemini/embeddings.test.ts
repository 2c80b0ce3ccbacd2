import { expect } from 'chai';
import { StreamFailure } from '../../../../contract/index.ts';
import { geminiEmbedRequest, geminiEmbedResponse } from '../../../../plugins/providers/gemini.ts';
import { base64ToFloats, type EmbeddingRequest } from '../../../../plugins/providers/kit/index.ts';
import { codecCall } from '../../../support/formats/codec.ts';

const call = codecCall({ model: 'gemini-embedding-001' });
const requestOf = (fields: Partial<EmbeddingRequest>): EmbeddingRequest => ({
  model: 'gemini-embedding-001',
  input: 'Hi',
  ...fields,
});

describe('gemini embeddings', () => {
  it('request one text with embedContent', () => {
    expect(geminiEmbedRequest(requestOf({ dimensions: 768, task_type: 'RETRIEVAL_QUERY' }), call)).to.deep.equal({
      path: '/models/gemini-embedding-001:embedContent',
      body: {
        model: 'models/gemini-embedding-001',
        content: { parts: [{ text: 'Hi' }] },
        taskType: 'RETRIEVAL_QUERY',
        outputDimensionality: 768,
      },
    });
  });

  it('request several texts with batchEmbedContents', () => {
    const { path, body } = geminiEmbedRequest(requestOf({ input: ['a', 'b'] }), call);
    expect(path).to.equal('/models/gemini-embedding-001:batchEmbedContents');
    expect((body as { requests: unknown[] }).requests).to.have.length(2);
  });

  for (const [input, param] of [
    [[1, 2], 'input[0]'],
    [[[1, 2]], 'input[0]'],
    ['', 'input'],
    [['a', ''], 'input[1]'],
    [[], 'input'],
  ] as const) {
    it(`refuse the input ${JSON.stringify(input)}`, () => {
      expect(() => geminiEmbedRequest(requestOf({ input }), call))
        .to.throw()
        .with.property('param', param);
    });
  }

  it('are returned as unit vectors with the vendor’s token count', () => {
    const body = { embeddings: [{ values: [3, 4] }, { values: [0, 0] }], usageMetadata: { promptTokenCount: 5 } };
    expect(geminiEmbedResponse(body, requestOf({ input: ['a', 'b'] }), call)).to.deep.equal({
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: [0.6, 0.8] },
        { object: 'embedding', index: 1, embedding: [0, 0] },
      ],
      model: 'gemini-embedding-001',
      usage: { prompt_tokens: 5, total_tokens: 5 },
    });
  });

  it('are returned as base64 of little-endian floats on request', () => {
    const body = { embedding: { values: [0, -1] } };
    const { data } = geminiEmbedResponse(body, requestOf({ encoding_format: 'base64' }), call);
    expect(base64ToFloats(String(data[0]?.embedding))).to.deep.equal([0, -1]);
  });

  it('mark the tokens as estimated if the vendor reports none', () => {
    const { usage } = geminiEmbedResponse({ embedding: { values: [1] } }, requestOf({ input: '12345678' }), call);
    expect(usage).to.deep.equal({ prompt_tokens: 2, total_tokens: 2, estimated: true });
  });

  for (const [title, body] of [
    ['too few vectors', { embeddings: [] }],
    ['a vector of texts', { embedding: { values: ['x'] } }],
    ['nothing', null],
  ] as const) {
    it(`fail on ${title}`, () => {
      expect(() => geminiEmbedResponse(body, requestOf({}), call)).to.throw(StreamFailure);
    });
  }
});
