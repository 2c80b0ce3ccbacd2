// LlamaIndex with @llamaindex/openai.
import { OpenAI } from '@llamaindex/openai';
import { tool } from 'llamaindex';
import * as is from './behaviours.mjs';

const create = (fields = {}) =>
  new OpenAI({ model: is.MODEL, apiKey: is.key, baseURL: `${is.base}/v1`, maxRetries: 0, ...fields });
const llm = create();
const user = (content) => [{ role: 'user', content }];
const getWeather = tool({
  ...{ name: 'get_weather', description: 'The weather of a city.', parameters: is.CITY_SCHEMA },
  execute: ({ city }) => is.WEATHER[city],
});

await is.report({
  async chat() {
    is.equal((await llm.chat({ messages: user('Say hello') })).message.content, is.HELLO, 'the message');
  },
  async stream() {
    let text = '';
    for await (const { delta } of await llm.chat({ messages: user('Say hello'), stream: true })) text += delta;
    is.equal(text, is.HELLO, 'the text');
  },
  async tools() {
    const { newMessages, toolCalls } = await llm.exec({ messages: user('What is the weather?'), tools: [getWeather] });
    is.equal(toolCalls.length, 2, 'the number of calls');
    const messages = [...user('What is the weather?'), ...newMessages];
    is.equal((await llm.chat({ messages, tools: [getWeather] })).message.content, is.SUMMARY, 'the message');
  },
  async 'tools, streamed'() {
    const messages = user('What is the weather?');
    const { stream, newMessages } = await llm.exec({ messages, tools: [getWeather], stream: true });
    for await (const _ of stream);
    let text = '';
    const next = [...messages, ...newMessages()];
    for await (const { delta } of await llm.chat({ messages: next, tools: [getWeather], stream: true })) text += delta;
    is.equal(text, is.SUMMARY, 'the text');
  },
  async structured() {
    const responseFormat = {
      type: 'json_schema',
      json_schema: { name: 'person', strict: true, schema: is.PERSON_SCHEMA },
    };
    const { message } = await llm.chat({ messages: user('A person as JSON'), responseFormat });
    is.equal(JSON.parse(message.content), is.PERSON, 'the object');
  },
  async image() {
    const url = `data:image/png;base64,${is.PNG}`;
    const content = [
      { type: 'text', text: 'The image?' },
      { type: 'image_url', image_url: { url } },
    ];
    is.equal((await llm.chat({ messages: user(content) })).message.content, is.IMAGE, 'the message');
  },
  async document() {
    const content = [
      { type: 'text', text: 'The document?' },
      { type: 'file', data: is.PDF, mimeType: 'application/pdf' },
    ];
    is.equal((await llm.chat({ messages: user(content) })).message.content, is.DOCUMENT, 'the message');
  },
  async errors() {
    const cases = [
      [{ apiKey: 'tg_wrong' }, 401],
      [{ model: 'missing/none' }, 404],
      [{ model: `${is.provider}/always-limited` }, 429],
      [{ model: `${is.provider}/broken` }, 503],
    ];
    for (const [fields, status] of cases)
      is.equal((await is.thrownBy(() => create(fields).chat({ messages: user('Hi') }))).status, status, 'the status');
    await is.thrownBy(async () => {
      for await (const _ of await llm.chat({ messages: user('Break off'), stream: true }));
    });
    const patient = create({ model: is.limitedOnce(), maxRetries: 1 });
    await is.waits(() => patient.chat({ messages: user('Say hello') }), 950, 3000);
  },
  abort: () =>
    is.closesAtVendor(async () => {
      for await (const { delta } of await llm.chat({ messages: user('Count slowly'), stream: true })) if (delta) break;
    }),
});
