// @anthropic-ai/sdk.
import Anthropic from '@anthropic-ai/sdk';
import * as is from './behaviours.mjs';

const options = { baseURL: is.base, apiKey: is.key, maxRetries: 0 };
const anthropic = new Anthropic(options);
const body = (content, rest = {}) => ({
  model: is.MODEL,
  max_tokens: 500,
  messages: [{ role: 'user', content }],
  ...rest,
});
const send = (content, rest, through = anthropic) => through.messages.create(body(content, rest));
const textOf = ({ content }) => content.flatMap(({ type, text }) => (type === 'text' ? [text] : [])).join('');
const source = (media_type, data) => ({ type: 'base64', media_type, data });

/** Two calls, their results, and the model's response to them. */
async function useTools(requestOf) {
  const tools = [{ name: 'get_weather', description: 'The weather of a city.', input_schema: is.CITY_SCHEMA }];
  const messages = [{ role: 'user', content: 'What is the weather?' }];
  const first = await requestOf({ messages, tools });
  is.equal(first.stop_reason, 'tool_use', 'the stop reason');
  const results = first.content
    .filter(({ type }) => type === 'tool_use')
    .map(({ id, input }) => ({
      ...{ type: 'tool_result', tool_use_id: id, content: is.WEATHER[input.city] },
    }));
  messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: results });
  is.equal(textOf(await requestOf({ messages, tools })), is.SUMMARY, 'the message');
}

await is.report({
  async chat() {
    const message = await send('Say hello');
    is.equal([textOf(message), message.stop_reason], [is.HELLO, 'end_turn'], 'the message');
    is.equal([message.usage.input_tokens, message.usage.output_tokens], [100, 10], 'the usage');
  },
  async stream() {
    const stream = anthropic.messages.stream(body('Say hello'));
    let text = '';
    stream.on('text', (delta) => {
      text += delta;
    });
    const message = await stream.finalMessage();
    is.equal([text, textOf(message), message.usage.output_tokens], [is.HELLO, is.HELLO, 10], 'the message');
  },
  tools: () => useTools((rest) => send('', rest)),
  'tools, streamed': () => useTools((rest) => anthropic.messages.stream(body('', rest)).finalMessage()),
  async structured() {
    const format = { type: 'json_schema', schema: is.PERSON_SCHEMA };
    is.equal(
      JSON.parse(textOf(await send('A person as JSON', { output_config: { format } }))),
      is.PERSON,
      'the object',
    );
  },
  async image() {
    const content = [
      { type: 'text', text: 'The image?' },
      { type: 'image', source: source('image/png', is.PNG) },
    ];
    is.equal(textOf(await send(content)), is.IMAGE, 'the message');
  },
  async document() {
    const content = [
      { type: 'document', source: source('application/pdf', is.PDF) },
      { type: 'text', text: 'The document?' },
    ];
    is.equal(textOf(await send(content)), is.DOCUMENT, 'the message');
  },
  async errors() {
    const cases = [
      [
        () => send('Hi', {}, new Anthropic({ ...options, apiKey: 'tg_wrong' })),
        'AuthenticationError',
        401,
        'authentication_error',
      ],
      [() => send('Hi', { model: 'missing/none' }), 'NotFoundError', 404, 'not_found_error'],
      [() => send('Hi', { messages: 'none' }), 'BadRequestError', 400, 'invalid_request_error'],
      [() => send('Hi', { model: `${is.provider}/always-limited` }), 'RateLimitError', 429, 'rate_limit_error'],
      [() => send('Hi', { model: `${is.provider}/broken` }), 'ServiceUnavailableError', 503, 'api_error'],
    ];
    for (const [run, name, status, type] of cases) {
      const error = await is.thrownBy(run);
      is.equal([error.constructor.name, error.status, error.error?.error?.type], [name, status, type], 'the error');
      if (!error.requestID) throw new Error('the error has no request id');
    }
    const broken = await is.thrownBy(() => anthropic.messages.stream(body('Break off')).finalMessage());
    if (!(broken instanceof Anthropic.APIError)) throw new Error(`a broken stream throws ${broken.constructor.name}`);
    const patient = new Anthropic({ ...options, maxRetries: 1 });
    await is.waits(() => send('Say hello', { model: is.limitedOnce() }, patient), 950, 3000);
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const stream = await send('Count slowly', { stream: true });
      for await (const event of stream) if (event.type === 'content_block_delta') break;
      stream.controller.abort();
    }),
  async models() {
    const ids = [];
    for await (const { id, display_name: name, type } of anthropic.models.list())
      ids.push(name && type === 'model' ? id : '');
    if (!ids.includes('claude-opus-5-5')) throw new Error(`the list has ${ids.slice(0, 5)}`);
    is.equal((await anthropic.models.retrieve('claude-opus-5-5')).id, 'claude-opus-5-5', 'the model');
  },
  async count() {
    const { model, messages } = body('Say hello');
    const { input_tokens: count } = await anthropic.messages.countTokens({ model, messages });
    if (!(count > 0 && count < 100)) throw new Error(`it counts ${count} tokens`);
  },
});
