// @google/genai.
import { ApiError, GoogleGenAI } from '@google/genai';
import * as is from './behaviours.mjs';

const create = (apiKey = is.key, httpOptions = {}) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: is.base, ...httpOptions } });
const ai = create();
const send = (contents, config = {}, through = ai, model = is.MODEL) =>
  through.models.generateContent({ model, contents, config });
const tools = [
  {
    functionDeclarations: [
      { name: 'get_weather', description: 'The weather of a city.', parametersJsonSchema: is.CITY_SCHEMA },
    ],
  },
];
const inline = (mimeType, data) => ({ inlineData: { mimeType, data } });

await is.report({
  async chat() {
    const { text, usageMetadata: usage, candidates } = await send('Say hello');
    is.equal([text, usage.totalTokenCount, candidates[0].finishReason], [is.HELLO, 110, 'STOP'], 'the response');
  },
  async stream() {
    let text = '';
    let last;
    for await (const chunk of await ai.models.generateContentStream({ model: is.MODEL, contents: 'Say hello' })) {
      text += chunk.text ?? '';
      last = chunk;
    }
    is.equal([text, last.usageMetadata.totalTokenCount], [is.HELLO, 110], 'the text');
  },
  async tools() {
    const contents = [{ role: 'user', parts: [{ text: 'What is the weather?' }] }];
    const { functionCalls, candidates } = await send(contents, { tools });
    const parts = functionCalls.map(({ id, name, args }) => ({
      functionResponse: { id, name, response: { output: is.WEATHER[args.city] } },
    }));
    contents.push(candidates[0].content, { role: 'user', parts });
    const { text } = await send(contents, { tools });
    for (const weather of Object.values(is.WEATHER))
      if (!text.includes(weather)) throw new Error(`the text is ${text}`);
    is.equal(/Paris is [^,]*sunny.*Rome is .*wet/.test(text), true, 'the pairing of calls and results');
  },
  async 'tools, streamed'() {
    const contents = [{ role: 'user', parts: [{ text: 'What is the weather?' }] }];
    const partsOf = async () => {
      const parts = [];
      const stream = await ai.models.generateContentStream({ model: is.MODEL, contents, config: { tools } });
      for await (const { candidates } of stream) parts.push(...(candidates?.[0]?.content?.parts ?? []));
      return parts;
    };
    const said = await partsOf();
    const results = said.flatMap(({ functionCall: call }) =>
      call
        ? [{ functionResponse: { id: call.id, name: call.name, response: { output: is.WEATHER[call.args.city] } } }]
        : [],
    );
    contents.push({ role: 'model', parts: said }, { role: 'user', parts: results });
    const text = (await partsOf()).map(({ text: words = '', thought }) => (thought ? '' : words)).join('');
    is.equal(/Paris is [^,]*sunny.*Rome is .*wet/.test(text), true, 'the pairing of calls and results');
  },
  async structured() {
    const config = { responseMimeType: 'application/json', responseJsonSchema: is.PERSON_SCHEMA };
    is.equal(JSON.parse((await send('A person as JSON', config)).text), is.PERSON, 'the object');
  },
  async image() {
    is.equal((await send([{ text: 'The image?' }, inline('image/png', is.PNG)])).text, is.IMAGE, 'the text');
  },
  async document() {
    is.equal(
      (await send([{ text: 'The document?' }, inline('application/pdf', is.PDF)])).text,
      is.DOCUMENT,
      'the text',
    );
  },
  async errors() {
    const cases = [
      [() => send('Hi', {}, create('tg_wrong')), 401],
      [() => send('Hi', {}, ai, 'missing/none'), 404],
      [() => send('Hi', { temperature: 'hot' }), 400],
      [() => send('Hi', {}, ai, `${is.provider}/always-limited`), 429],
      [() => send('Hi', {}, ai, `${is.provider}/broken`), 503],
    ];
    for (const [run, status] of cases) {
      const error = await is.thrownBy(run);
      is.equal([error instanceof ApiError, error.status], [true, status], 'the error');
    }
    await is.thrownBy(async () => {
      for await (const _ of await ai.models.generateContentStream({ model: is.MODEL, contents: 'Break off' }));
    });
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const controller = new AbortController();
      const config = { abortSignal: controller.signal };
      try {
        const stream = await ai.models.generateContentStream({ model: is.MODEL, contents: 'Count slowly', config });
        for await (const chunk of stream) if (chunk.text) controller.abort();
      } catch {
        // The SDK throws an abort error.
      }
    }),
  async models() {
    const names = [];
    for await (const { name } of await ai.models.list()) names.push(name);
    if (!names.includes('models/gemini-3.8-flash')) throw new Error(`the list has ${names.slice(0, 5)}`);
  },
  async count() {
    const { totalTokens } = await ai.models.countTokens({ model: is.MODEL, contents: 'Say hello' });
    if (!(totalTokens > 0 && totalTokens < 100)) throw new Error(`it counts ${totalTokens} tokens`);
  },
});
