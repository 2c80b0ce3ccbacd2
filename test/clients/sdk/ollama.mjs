// ollama, through the gateway's Ollama routes.
import { Ollama } from 'ollama';
import * as is from './behaviours.mjs';

const create = (key = is.key) => new Ollama({ host: is.base, headers: { authorization: `Bearer ${key}` } });
const ollama = create();
const user = (content, rest = {}) => [{ role: 'user', content, ...rest }];
const send = (messages, rest = {}, through = ollama) => through.chat({ model: is.MODEL, messages, ...rest });
const tools = [
  {
    type: 'function',
    function: { name: 'get_weather', description: 'The weather of a city.', parameters: is.CITY_SCHEMA },
  },
];

await is.report({
  async chat() {
    const { message, prompt_eval_count: read, eval_count: written } = await send(user('Say hello'));
    is.equal([message.content, read, written], [is.HELLO, 100, 10], 'the response');
    const { response } = await ollama.generate({ model: is.MODEL, prompt: 'Say hello' });
    is.equal(response, is.HELLO, 'the response to a prompt');
  },
  async stream() {
    let text = '';
    let last;
    // oxlint-disable-next-line typescript/await-thenable -- a stream is asked for
    for await (const part of await send(user('Say hello'), { stream: true })) {
      text += part.message.content;
      last = part;
    }
    is.equal([text, last.done_reason, last.eval_count], [is.HELLO, 'stop', 10], 'the stream');
  },
  async tools() {
    const messages = user('What is the weather?');
    const { message } = await send(messages, { tools });
    messages.push(message);
    for (const { function: called } of message.tool_calls)
      messages.push({ role: 'tool', tool_name: called.name, content: is.WEATHER[called.arguments.city] });
    is.equal((await send(messages, { tools })).message.content, is.SUMMARY, 'the response');
  },
  async 'tools, streamed'() {
    const messages = user('What is the weather?');
    const read = async () => {
      const parts = [];
      // oxlint-disable-next-line typescript/await-thenable -- a stream is asked for
      for await (const { message } of await send(messages, { tools, stream: true })) parts.push(message);
      return parts;
    };
    const calls = (await read()).flatMap(({ tool_calls: called = [] }) => called);
    messages.push({ role: 'assistant', content: '', tool_calls: calls });
    for (const { function: called } of calls)
      messages.push({ role: 'tool', tool_name: called.name, content: is.WEATHER[called.arguments.city] });
    is.equal((await read()).map(({ content }) => content).join(''), is.SUMMARY, 'the text');
  },
  async structured() {
    const { message } = await send(user('A person as JSON'), { format: is.PERSON_SCHEMA });
    is.equal(JSON.parse(message.content), is.PERSON, 'the object');
  },
  async image() {
    is.equal((await send(user('The image?', { images: [is.PNG] }))).message.content, is.IMAGE, 'the response');
  },
  async errors() {
    const cases = [
      [() => send(user('Hi'), {}, create('tg_wrong')), 401],
      [() => send(user('Hi'), { model: 'missing/none' }), 404],
      [() => send('none'), 400],
      [() => send(user('Hi'), { model: `${is.provider}/always-limited` }), 429],
      [() => send(user('Hi'), { model: `${is.provider}/broken` }), 503],
    ];
    for (const [run, status] of cases) {
      const error = await is.thrownBy(run);
      is.equal([error.name, error.status_code, error.message.length > 0], ['ResponseError', status, true], 'the error');
    }
    await is.thrownBy(async () => {
      // oxlint-disable-next-line typescript/await-thenable -- a stream is asked for
      for await (const _ of await send(user('Break off'), { stream: true }));
    });
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const stream = await send(user('Count slowly'), { stream: true });
      try {
        // oxlint-disable-next-line typescript/await-thenable -- a stream is asked for
        for await (const { message } of stream) if (message.content) stream.abort();
      } catch {
        // The SDK throws an abort error.
      }
    }),
  async models() {
    const names = (await ollama.list()).models.map(({ name }) => name);
    if (!names.includes('gpt-5.5')) throw new Error(`the list has ${names.slice(0, 5)}`);
    is.equal((await ollama.show({ model: 'gpt-5.5' })).capabilities.includes('completion'), true, 'that it completes');
  },
});
