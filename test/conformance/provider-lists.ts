import assert from 'node:assert/strict';
import { StreamFailure } from '../../contract/index.ts';
import { base64ToFloats } from '../../plugins/providers/kit/index.ts';
import { itShows } from './cells.ts';
import { testOpenCell } from './provider-features.ts';
import { assertExpected } from './provider-shape.ts';
import { CALL, type ProviderSubject } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** Tests embeddings in both encodings, and the vendor's model list. */
export function testLists(subject: ProviderSubject): void {
  const { describe, it } = findRunner();
  const {
    name,
    provider: { embed, listModels },
    kit,
    fixtures,
  } = subject;
  const shows = (feature: string, title: string, body: () => void) =>
    itShows(it, { provider: name, feature, says: 'verified' }, title, body);

  const lacks = (feature: string) =>
    itShows(it, { provider: name, feature, says: 'not offered' }, `offers no ${feature}`, () => {
      assert.ok(!(feature === 'model list' ? listModels : embed));
    });
  if (!embed) {
    lacks('embeddings');
    lacks('embeddings as base64');
  } else {
    describe('embeddings', () => {
      const input = { model: CALL.model, input: ['one', 'two'] };
      it('contain the texts and the model', () => {
        const sent = JSON.stringify(embed.request(input, CALL));
        for (const words of ['one', 'two', CALL.model]) assert.ok(sent.includes(words));
      });
      const responses = fixtures('embeddings', '.json');
      if (responses.length === 0) testOpenCell(subject, 'embeddings', 'put one into embeddings*.json');
      for (const fixture of responses) {
        const { name: file, text } = fixture;
        shows('embeddings', `come as numbers: ${file}`, () => {
          const response = embed.response(JSON.parse(text), { ...input, encoding_format: 'float' }, CALL);
          kit.validate?.embeddings?.(response);
          for (const { embedding } of response.data) assert.ok(Array.isArray(embedding) && embedding.length > 0);
          assertExpected(response, fixture);
        });
        shows('embeddings as base64', `come as base64 of the same numbers: ${file}`, () => {
          const numbers = embed.response(JSON.parse(text), { ...input, encoding_format: 'float' }, CALL);
          const packed = embed.response(JSON.parse(text), { ...input, encoding_format: 'base64' }, CALL);
          packed.data.forEach(({ embedding }, at) => {
            assert.ok(typeof embedding === 'string');
            const wanted = Float32Array.from(numbers.data[at]?.embedding as readonly number[]);
            assert.deepEqual(Float32Array.from(base64ToFloats(embedding)), wanted);
          });
        });
      }
      for (const body of [null, {}, { data: 1 }, { error: { message: 'no' } }]) {
        it(`that are ${JSON.stringify(body)} are a failure, not a crash`, () => {
          assert.throws(() => embed.response(body, input, CALL), StreamFailure);
        });
      }
    });
  }

  if (!listModels) {
    lacks('model list');
  } else {
    describe('the list of models', () => {
      it('is requested with GET, below the base URL', () => {
        const { method = 'GET', path } = listModels.request();
        assert.equal(method, 'GET');
        assert.match(path, /^\//);
      });
      const responses = fixtures('models', '.json');
      if (responses.length === 0) testOpenCell(subject, 'model list', 'put one into models*.json');
      for (const fixture of responses) {
        shows('model list', `is read: ${fixture.name}`, () => {
          const ids = listModels.response(JSON.parse(fixture.text)).map(({ id }) => id);
          assert.ok(ids.length > 0 && ids.every((id) => typeof id === 'string' && id !== ''));
          assertExpected({ ids }, fixture);
        });
      }
      it('is empty for an invalid response', () => {
        for (const body of [null, 'no', {}, { data: null }, [null, {}]])
          assert.deepEqual(listModels.response(body), []);
      });
    });
  }
}
