// Operations of @google/genai other than chat.
import { GoogleGenAI } from '@google/genai';
import * as is from './behaviours.mjs';

const ai = new GoogleGenAI({ apiKey: is.key, httpOptions: { baseUrl: is.base } });

await is.report({
  async embeddings() {
    for (const model of ['gemini/gemini-embedding-001', is.VECTOR_MODEL]) {
      const { embeddings } = await ai.models.embedContent({ model, contents: is.TEXTS });
      is.equal(
        embeddings.map(({ values }) => values),
        is.VECTORS,
        'the vectors',
      );
    }
  },
  async files() {
    const { status, message } = await is.thrownBy(() =>
      ai.files.upload({ file: new Blob(['{}'], { type: 'application/jsonl' }) }),
    );
    // Rethrown as a problem, because an intended refusal must be reported.
    if (status === 404 && /Send the requests as/.test(message)) throw new Error(message);
  },
  async batches() {
    const src = [{ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], config: { maxOutputTokens: 10 } }];
    const { name } = await ai.batches.create({ model: 'gemini/gemini-3.8-flash', src });
    const { state, dest } = await ai.batches.get({ name });
    const [{ response }] = dest.inlinedResponses;
    is.equal([state, response.candidates[0].content.parts[0].text], ['JOB_STATE_SUCCEEDED', is.HELLO], 'the batch');
    const names = [];
    for await (const job of await ai.batches.list()) names.push(job.name);
    is.equal(names, [name], 'the list');
  },
});
