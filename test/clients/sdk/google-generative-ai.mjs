// @google/generative-ai, the predecessor of @google/genai.
import { GoogleGenerativeAI, GoogleGenerativeAIFetchError } from '@google/generative-ai';
import * as is from './behaviours.mjs';

const modelOf = ({ key = is.key, model = is.MODEL, ...rest } = {}) =>
  new GoogleGenerativeAI(key).getGenerativeModel({ model, ...rest }, { baseUrl: is.base });
const model = modelOf();
const send = async (contents, rest) => (await modelOf(rest).generateContent(contents)).response;
const { additionalProperties: _, ...parameters } = is.CITY_SCHEMA;
const tools = [{ functionDeclarations: [{ name: 'get_weather', description: 'The weather of a city.', parameters }] }];
const inline = (mimeType, data) => ({ inlineData: { mimeType, data } });

/** Two calls, their results, and the model's response to them. */
async function useTools(requestOf) {
  const chat = modelOf({ tools }).startChat();
  const first = await requestOf(chat, 'What is the weather?');
  const parts = first.functionCalls().map(({ name, args }) => ({
    functionResponse: { name, response: { output: is.WEATHER[args.city] } },
  }));
  const text = (await requestOf(chat, parts)).text();
  is.equal([/Paris is .*sunny/.test(text), /Rome is .*wet/.test(text)], [true, true], 'the pairing of calls');
}

await is.report({
  async chat() {
    const response = await send('Say hello');
    is.equal([response.text(), response.usageMetadata.totalTokenCount], [is.HELLO, 110], 'the response');
  },
  async stream() {
    const { stream, response } = await model.generateContentStream('Say hello');
    let text = '';
    for await (const chunk of stream) text += chunk.text();
    is.equal([text, (await response).usageMetadata.totalTokenCount], [is.HELLO, 110], 'the text');
  },
  tools: () => useTools(async (chat, parts) => (await chat.sendMessage(parts)).response),
  'tools, streamed': () => useTools(async (chat, parts) => (await chat.sendMessageStream(parts)).response),
  async structured() {
    const { additionalProperties: __, ...responseSchema } = is.PERSON_SCHEMA;
    const generationConfig = { responseMimeType: 'application/json', responseSchema };
    is.equal(JSON.parse((await send('A person as JSON', { generationConfig })).text()), is.PERSON, 'the object');
  },
  async image() {
    is.equal((await send([{ text: 'The image?' }, inline('image/png', is.PNG)])).text(), is.IMAGE, 'the text');
  },
  async document() {
    const parts = [{ text: 'The document?' }, inline('application/pdf', is.PDF)];
    is.equal((await send(parts)).text(), is.DOCUMENT, 'the text');
  },
  async errors() {
    const cases = [
      [{ key: 'tg_wrong' }, 401],
      [{ model: 'missing/none' }, 404],
      [{ generationConfig: { temperature: 'hot' } }, 400],
      [{ model: `${is.provider}/always-limited` }, 429],
      [{ model: `${is.provider}/broken` }, 503],
    ];
    for (const [rest, status] of cases) {
      const error = await is.thrownBy(() => send('Hi', rest));
      is.equal([error instanceof GoogleGenerativeAIFetchError, error.status], [true, status], 'the error');
    }
    await is.thrownBy(async () => {
      for await (const _ of (await model.generateContentStream('Break off')).stream);
    });
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const controller = new AbortController();
      try {
        const { signal } = controller;
        const { stream, response } = await model.generateContentStream('Count slowly', { signal });
        response.catch(() => {});
        for await (const chunk of stream) if (chunk.text()) controller.abort();
      } catch {
        // The SDK throws an abort error.
      }
    }),
  async count() {
    const { totalTokens } = await model.countTokens('Say hello');
    if (!(totalTokens > 0 && totalTokens < 100)) throw new Error(`it counts ${totalTokens} tokens`);
  },
});
