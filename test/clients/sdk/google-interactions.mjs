// The Interactions API through @google/genai.
import { GoogleGenAI } from '@google/genai';
import * as is from './behaviours.mjs';

const ai = (apiKey = is.key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: is.base } });
const send = (input, more = {}, through = ai(), options = {}) =>
  through.interactions.create({ model: is.MODEL, input, ...more }, options);
const streamed = (input, more = {}) => ai().interactions.create({ model: is.MODEL, input, ...more, stream: true });
const tools = [
  { type: 'function', name: 'get_weather', description: 'The weather of a city.', parameters: is.CITY_SCHEMA },
];
const NO_RETRIES = { retries: { strategy: 'none' } };

await is.report({
  async chat() {
    const { output_text: text, usage, status } = await send('Say hello');
    is.equal([text, usage.total_tokens, status], [is.HELLO, 110, 'completed'], 'the interaction');
  },
  async stream() {
    let text = '';
    let last;
    for await (const event of await streamed('Say hello')) {
      if (event.event_type === 'step.delta' && event.delta.type === 'text') text += event.delta.text;
      if (event.event_type === 'interaction.completed') last = event.interaction;
    }
    is.equal([text, last.usage.total_tokens, last.status], [is.HELLO, 110, 'completed'], 'the text');
  },
  async tools() {
    const first = await send('What is the weather?', { tools });
    is.equal(first.status, 'requires_action', 'the status');
    const results = first.steps
      .filter(({ type }) => type === 'function_call')
      .map(({ id, name, arguments: { city } }) => ({
        ...{ type: 'function_result', call_id: id, name, result: is.WEATHER[city] },
      }));
    const { output_text: text } = await send(results, { tools, previous_interaction_id: first.id });
    is.equal(text, is.SUMMARY, 'the text');
  },
  async 'tools, streamed'() {
    const finish = async (input, more) => {
      let last;
      let text = '';
      const calls = [];
      for await (const event of await streamed(input, { tools, ...more })) {
        if (event.event_type === 'step.start' && event.step.type === 'function_call')
          calls[event.index] = { ...event.step, text: '' };
        if (event.event_type === 'step.delta' && event.delta.type === 'text') text += event.delta.text;
        if (event.event_type === 'step.delta' && event.delta.type === 'arguments_delta')
          calls[event.index].text += event.delta.arguments;
        if (event.event_type === 'interaction.completed') last = event.interaction;
      }
      return { last, text, calls: calls.filter(Boolean) };
    };
    const first = await finish('What is the weather?');
    const results = first.calls.map(({ id, name, text, arguments: whole }) => ({
      ...{ type: 'function_result', call_id: id, name },
      result: is.WEATHER[(text === '' ? whole : JSON.parse(text)).city],
    }));
    const { text } = await finish(results, { previous_interaction_id: first.last.id });
    is.equal(text, is.SUMMARY, 'the text');
  },
  async structured() {
    const response_format = { type: 'text', mime_type: 'application/json', schema: is.PERSON_SCHEMA };
    is.equal(JSON.parse((await send('A person as JSON', { response_format })).output_text), is.PERSON, 'the object');
  },
  async image() {
    const image = { type: 'image', mime_type: 'image/png', data: is.PNG };
    is.equal((await send([{ type: 'text', text: 'The image?' }, image])).output_text, is.IMAGE, 'the text');
  },
  async document() {
    const document = { type: 'document', mime_type: 'application/pdf', data: is.PDF };
    is.equal((await send([{ type: 'text', text: 'The document?' }, document])).output_text, is.DOCUMENT, 'the text');
  },
  async errors() {
    const cases = [
      [() => send('Hi', {}, ai('tg_wrong'), NO_RETRIES), 401],
      [() => send('Hi', { model: 'missing/none' }, ai(), NO_RETRIES), 404],
      [() => send('Hi', { background: true }, ai(), NO_RETRIES), 400],
      [() => send('Hi', { model: `${is.provider}/always-limited` }, ai(), NO_RETRIES), 429],
      [() => send('Hi', { model: `${is.provider}/broken` }, ai(), NO_RETRIES), 503],
      [() => ai().interactions.get('v1_nothing'), 404],
    ];
    for (const [run, status] of cases) is.equal((await is.thrownBy(run)).status, status, 'the status of the error');
    const types = [];
    for await (const { event_type: type } of await streamed('Break off')) types.push(type);
    is.equal(types.at(-1), 'error', 'the last event of a stream that breaks off');
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const stream = await streamed('Count slowly');
      for await (const event of stream) if (event.event_type === 'step.delta') break;
    }),
});
