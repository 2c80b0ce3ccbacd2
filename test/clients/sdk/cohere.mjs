// cohere-ai: rerank, the operation with Cohere's own route here. Chat and embeddings use OpenAI's routes.
import { CohereClientV2, CohereError } from 'cohere-ai';
import * as is from './behaviours.mjs';

const create = (token = is.key) => new CohereClientV2({ environment: is.base, token });
const documents = ['Rome is wet.', is.HELLO, 'Paris is sunny.'];
const send = (rest = {}, through = create()) =>
  through.rerank({ model: is.MODEL, query: 'Say hello', documents, topN: 2, ...rest }, { maxRetries: 0 });

await is.report({
  chat: () => create().chat({ model: is.MODEL, messages: [{ role: 'user', content: 'Say hello' }] }, { maxRetries: 0 }),
  async errors() {
    const cases = [
      [() => send({}, create('tg_wrong')), 401],
      [() => send({ model: 'missing/none' }), 404],
      [() => send({ documents: [] }), 400],
      [() => send({ model: `${is.provider}/always-limited` }), 429],
      [() => send({ model: `${is.provider}/broken` }), 503],
    ];
    for (const [run, status] of cases) {
      const error = await is.thrownBy(run);
      is.equal([error instanceof CohereError, error.statusCode], [true, status], 'the error');
    }
  },
  async rerank() {
    const { results } = await send();
    is.equal([results.length, documents[results[0].index]], [2, is.HELLO], 'the result');
  },
});
