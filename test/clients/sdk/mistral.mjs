// @mistralai/mistralai, whose chat is OpenAI's with names in camelCase.
import { Mistral } from '@mistralai/mistralai';
import * as is from './behaviours.mjs';

const create = (rest = {}) =>
  new Mistral({ serverURL: is.base, apiKey: is.key, retryConfig: { strategy: 'none' }, ...rest });
const mistral = create();
const user = (content) => [{ role: 'user', content }];
const send = (messages, rest = {}, through = mistral) => through.chat.complete({ model: is.MODEL, messages, ...rest });
/** Text of a content, which is a list if the model has thought. */
const wordsOf = (content) =>
  Array.isArray(content)
    ? content.flatMap(({ type, text }) => (type === 'text' ? [text] : [])).join('')
    : (content ?? '');
const textOf = ({ choices }) => wordsOf(choices[0].message.content);
const tools = [
  {
    type: 'function',
    function: { name: 'get_weather', description: 'The weather of a city.', parameters: is.CITY_SCHEMA },
  },
];

async function resolveCalls(messages, calls) {
  const results = calls.map(({ id, function: called }) => {
    const { city } = typeof called.arguments === 'string' ? JSON.parse(called.arguments) : called.arguments;
    return { role: 'tool', toolCallId: id, name: called.name, content: is.WEATHER[city] };
  });
  is.equal(textOf(await send([...messages, ...results], { tools })), is.SUMMARY, 'the message');
}

await is.report({
  async chat() {
    const result = await send(user('Say hello'));
    is.equal([textOf(result), result.usage.totalTokens], [is.HELLO, 110], 'the message');
  },
  async stream() {
    let text = '';
    let usage;
    for await (const { data } of await mistral.chat.stream({ model: is.MODEL, messages: user('Say hello') })) {
      text += wordsOf(data.choices[0].delta.content);
      usage = data.usage ?? usage;
    }
    is.equal([text, usage.totalTokens], [is.HELLO, 110], 'the text and the usage');
  },
  async tools() {
    const messages = user('What is the weather?');
    const { message } = (await send(messages, { tools })).choices[0];
    await resolveCalls([...messages, message], message.toolCalls);
  },
  async 'tools, streamed'() {
    const calls = [];
    const messages = user('What is the weather?');
    for await (const { data } of await mistral.chat.stream({ model: is.MODEL, messages, tools }))
      calls.push(...(data.choices[0].delta.toolCalls ?? []));
    is.equal(calls.length, 2, 'the number of calls');
    await resolveCalls([...messages, { role: 'assistant', toolCalls: calls }], calls);
  },
  async structured() {
    const jsonSchema = { name: 'person', strict: true, schemaDefinition: is.PERSON_SCHEMA };
    const responseFormat = { type: 'json_schema', jsonSchema };
    is.equal(JSON.parse(textOf(await send(user('A person as JSON'), { responseFormat }))), is.PERSON, 'the object');
  },
  async image() {
    const image = { type: 'image_url', imageUrl: `data:image/png;base64,${is.PNG}` };
    is.equal(textOf(await send(user([{ type: 'text', text: 'The image?' }, image]))), is.IMAGE, 'the message');
  },
  async document() {
    const document = { type: 'document_url', documentUrl: `data:application/pdf;base64,${is.PDF}` };
    is.equal(textOf(await send(user([{ type: 'text', text: 'The document?' }, document]))), is.DOCUMENT, 'the message');
  },
  async errors() {
    const cases = [
      [() => send(user('Hi'), {}, create({ apiKey: 'tg_wrong' })), 401],
      [() => send(user('Hi'), { model: 'missing/none' }), 404],
      [() => send(user('Hi'), { temperature: 99 }), 400],
      [() => send(user('Hi'), { model: `${is.provider}/always-limited` }), 429],
      [() => send(user('Hi'), { model: `${is.provider}/broken` }), 503],
    ];
    for (const [run, status] of cases) is.equal((await is.thrownBy(run)).statusCode, status, 'the error');
    await is.thrownBy(async () => {
      for await (const _ of await mistral.chat.stream({ model: is.MODEL, messages: user('Break off') }));
    });
    const backoff = { initialInterval: 1, maxInterval: 10, exponent: 1.5, maxElapsedTime: 20_000 };
    const patient = create({ retryConfig: { strategy: 'backoff', backoff, retryConnectionErrors: false } });
    await is.waits(() => send(user('Say hello'), { model: is.limitedOnce() }, patient), 950, 3000);
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const controller = new AbortController();
      try {
        const stream = await mistral.chat.stream(
          { model: is.MODEL, messages: user('Count slowly') },
          { fetchOptions: { signal: controller.signal } },
        );
        for await (const { data } of stream) if (data.choices[0]?.delta.content) controller.abort();
      } catch {
        // The SDK throws an abort error.
      }
    }),
  async models() {
    const ids = ((await mistral.models.list()).data ?? []).map(({ raw }) => raw?.id);
    if (!ids.includes('gpt-5.5')) throw new Error(`the list has ${ids.slice(0, 5)}`);
  },
});
