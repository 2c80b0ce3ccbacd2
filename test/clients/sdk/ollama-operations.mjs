// Operations of ollama other than chat.
import { Ollama } from 'ollama';
import * as is from './behaviours.mjs';

const ollama = new Ollama({ host: is.base, headers: { authorization: `Bearer ${is.key}` } });

await is.report({
  async embeddings() {
    const { embeddings } = await ollama.embed({ model: is.VECTOR_MODEL, input: is.TEXTS });
    is.equal(embeddings, is.VECTORS, 'the vectors');
  },
});
