// openai 4 to 7, and SDKs generated like it. CLIENT is `chat`, `responses`, either with the prefix `azure-`, or
// `groq-chat`.
import * as is from './behaviours.mjs';

const { MODEL } = is;
const isAzure = is.client.startsWith('azure-');
const isGroq = is.client === 'groq-chat';
const OpenAI = (await import(isGroq ? 'groq-sdk' : 'openai')).default;
const Client = isAzure ? (await import('openai')).AzureOpenAI : OpenAI;
const place = isAzure
  ? { endpoint: is.base, apiVersion: '2024-10-21' }
  : { baseURL: isGroq ? is.base : `${is.base}/v1` };
const options = { ...place, apiKey: is.key, maxRetries: 0 };
const openai = new Client(options);
const weather = (city) => is.WEATHER[city];
const format = { name: 'person', strict: true, schema: is.PERSON_SCHEMA };
const tool = { name: 'get_weather', description: 'The weather of a city.', parameters: is.CITY_SCHEMA, strict: true };
const requestOf = (text, rest = {}) => ({ model: MODEL, messages: [{ role: 'user', content: text }], ...rest });
const reply = (text, rest = {}) => ({ model: MODEL, input: text, ...rest });
const user = (...content) => [{ role: 'user', content }];

const chat = {
  send: (text, rest, through = openai) => through.chat.completions.create(requestOf(text, rest)),
  async chat() {
    const { choices, usage } = await chat.send('Say hello');
    is.equal([choices[0].message.content, usage.total_tokens], [is.HELLO, 110], 'the message');
  },
  async stream() {
    let text = '';
    for await (const { choices } of await chat.send('Say hello', { stream: true }))
      text += choices[0]?.delta.content ?? '';
    is.equal(text, is.HELLO, 'the text');
  },
  async tools() {
    const tools = [{ type: 'function', function: tool }];
    const messages = [{ role: 'user', content: 'What is the weather?' }];
    const { message } = (await chat.send('', { messages, tools })).choices[0];
    messages.push(message);
    for (const { id, function: called } of message.tool_calls)
      messages.push({ role: 'tool', tool_call_id: id, content: weather(JSON.parse(called.arguments).city) });
    is.equal((await chat.send('', { messages, tools })).choices[0].message.content, is.SUMMARY, 'the message');
  },
  async streamedTools() {
    const tools = [{ type: 'function', function: tool }];
    const messages = [{ role: 'user', content: 'What is the weather?' }];
    const calls = [];
    for await (const { choices } of await chat.send('', { messages, tools, stream: true }))
      for (const { index, id, function: called } of choices[0]?.delta.tool_calls ?? []) {
        calls[index] ??= { id, type: 'function', function: { name: called.name, arguments: '' } };
        calls[index].function.arguments += called.arguments ?? '';
      }
    messages.push({ role: 'assistant', content: null, tool_calls: calls });
    for (const { id, function: called } of calls)
      messages.push({ role: 'tool', tool_call_id: id, content: weather(JSON.parse(called.arguments).city) });
    let text = '';
    for await (const { choices } of await chat.send('', { messages, tools, stream: true }))
      text += choices[0]?.delta.content ?? '';
    is.equal(text, is.SUMMARY, 'the text');
  },
  async structured() {
    const { choices } = await chat.send('A person as JSON', {
      response_format: { type: 'json_schema', json_schema: format },
    });
    is.equal(JSON.parse(choices[0].message.content), is.PERSON, 'the object');
  },
  async image() {
    const url = `data:image/png;base64,${is.PNG}`;
    const messages = user({ type: 'text', text: 'The image?' }, { type: 'image_url', image_url: { url } });
    is.equal((await chat.send('', { messages })).choices[0].message.content, is.IMAGE, 'the message');
  },
  async document() {
    const file = { filename: 'a.pdf', file_data: `data:application/pdf;base64,${is.PDF}` };
    const messages = user({ type: 'text', text: 'The document?' }, { type: 'file', file });
    is.equal((await chat.send('', { messages })).choices[0].message.content, is.DOCUMENT, 'the message');
  },
  bad: { messages: 'none' },
  textOf: (chunk) => chunk.choices[0]?.delta.content,
};

const responses = {
  send: (text, rest, through = openai) => through.responses.create(reply(text, rest)),
  async chat() {
    const { output_text: text, usage } = await responses.send('Say hello');
    is.equal([text, usage.total_tokens], [is.HELLO, 110], 'the response');
  },
  async stream() {
    let text = '';
    const stream = await responses.send('Say hello', { stream: true });
    // oxlint-disable-next-line typescript/await-thenable -- a stream is asked for
    for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta;
    is.equal(text, is.HELLO, 'the text');
  },
  async tools() {
    const tools = [{ type: 'function', ...tool }];
    const first = await responses.send('What is the weather?', { tools });
    const calls = first.output.filter(({ type }) => type === 'function_call');
    const input = calls.map(({ call_id, arguments: text }) => ({
      ...{ type: 'function_call_output', call_id, output: weather(JSON.parse(text).city) },
    }));
    const second = await responses.send(input, { tools, previous_response_id: first.id });
    is.equal(second.output_text, is.SUMMARY, 'the response');
  },
  async streamedTools() {
    const tools = [{ type: 'function', ...tool }];
    const first = await completed(await responses.send('What is the weather?', { tools, stream: true }));
    const input = first.output
      .filter(({ type }) => type === 'function_call')
      .map(({ call_id, arguments: text }) => ({
        ...{ type: 'function_call_output', call_id, output: weather(JSON.parse(text).city) },
      }));
    const second = await responses.send(input, { tools, previous_response_id: first.id, stream: true });
    const parts = (await completed(second)).output.flatMap(({ content = [] }) => content);
    is.equal(parts.map(({ text = '' }) => text).join(''), is.SUMMARY, 'the response');
  },
  async structured() {
    const { output_text: text } = await responses.send('A person as JSON', {
      text: { format: { type: 'json_schema', ...format } },
    });
    is.equal(JSON.parse(text), is.PERSON, 'the object');
  },
  async image() {
    const image_url = `data:image/png;base64,${is.PNG}`;
    const input = user({ type: 'input_text', text: 'The image?' }, { type: 'input_image', image_url, detail: 'auto' });
    is.equal((await responses.send(input)).output_text, is.IMAGE, 'the response');
  },
  async document() {
    const file = { filename: 'a.pdf', file_data: `data:application/pdf;base64,${is.PDF}` };
    const input = user({ type: 'input_text', text: 'The document?' }, { type: 'input_file', ...file });
    is.equal((await responses.send(input)).output_text, is.DOCUMENT, 'the response');
  },
  bad: { input: 7 },
  textOf: (event) => event.delta,
};

/** Response that a stream ends with. */
async function completed(stream) {
  let response;
  for await (const event of stream) if (event.type === 'response.completed') ({ response } = event);
  return response;
}

const own = is.client.endsWith('chat') ? chat : responses;

async function read(stream) {
  for await (const _ of stream);
}

/** A turn and its continuation on one websocket; openai 6 and later support it. */
async function talkOnWebsocket({ ResponsesWS }) {
  const socket = new ResponsesWS(openai);
  const turn = (rest) =>
    new Promise((resolve, reject) => {
      let text = '';
      socket.on('error', reject);
      socket.on('event', (event) => {
        if (event.type === 'response.output_text.delta') text += event.delta;
        if (event.type === 'response.completed') resolve({ text, id: event.response.id });
      });
      socket.send({ type: 'response.create', model: MODEL, store: false, ...rest });
    });
  const first = await turn({ input: 'Say hello' });
  is.equal(first.text, is.HELLO, 'the text');
  await turn({ input: 'Say hello', previous_response_id: first.id });
  socket.close();
}

const ws = is.client.endsWith('responses')
  ? await import('openai/resources/responses/ws').catch(() => undefined)
  : undefined;

await is.report({
  chat: own.chat,
  stream: own.stream,
  tools: own.tools,
  'tools, streamed': own.streamedTools,
  structured: own.structured,
  image: own.image,
  // Groq's SDK has no type for files.
  ...(!isGroq && { document: own.document }),
  async errors() {
    const cases = [
      [() => own.send('Hi', {}, new Client({ ...options, apiKey: 'tg_wrong' })), OpenAI.AuthenticationError, 401],
      [() => own.send('Hi', { model: 'missing/none' }), OpenAI.NotFoundError, 404],
      [() => own.send('Hi', own.bad), OpenAI.BadRequestError, 400],
      [() => own.send('Hi', { model: `${is.provider}/always-limited` }), OpenAI.RateLimitError, 429],
      [() => own.send('Hi', { model: `${is.provider}/broken` }), OpenAI.InternalServerError, 503],
    ];
    for (const [run, type, status] of cases) {
      const error = await is.thrownBy(run);
      is.equal([error.constructor.name, error.status], [type.name, status], 'the error');
    }
    const broken = await is.thrownBy(async () => read(await own.send('Break off', { stream: true })));
    if (!(broken instanceof OpenAI.APIError)) throw new Error(`a broken stream throws ${broken.constructor.name}`);
    const patient = new Client({ ...options, maxRetries: 1 });
    await is.waits(() => own.send('Say hello', { model: is.limitedOnce() }, patient), 950, 3000);
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const stream = await own.send('Count slowly', { stream: true });
      for await (const event of stream) if (own.textOf(event)) break;
      stream.controller.abort();
    }),
  async models() {
    const ids = [];
    if (isGroq) ids.push(...(await openai.models.list()).data.map(({ id }) => id));
    else for await (const { id } of openai.models.list()) ids.push(id);
    if (!ids.includes('gpt-5.5')) throw new Error(`the list has ${ids.slice(0, 5)}`);
    is.equal((await openai.models.retrieve('gpt-5.5')).id, 'gpt-5.5', 'the model');
  },
  ...(ws && { websocket: () => talkOnWebsocket(ws) }),
});
