// LangChain. CLIENT is `chat`, `responses` (both of @langchain/openai), `messages` (@langchain/anthropic) or `gemini`
// (@langchain/google-genai).
import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatGoogleGenerativeAI } from '@langchain/google-genai';
import { ChatOpenAI } from '@langchain/openai';
import * as is from './behaviours.mjs';

// LangChain's Google client sends pictures and documents only to models whose names it knows.
const MODEL = is.client === 'gemini' ? 'gemini-3.8-flash' : is.MODEL;
const common = { model: MODEL, apiKey: is.key, maxRetries: 0 };
const ofOpenai = (fields) =>
  new ChatOpenAI({
    ...{ ...common, configuration: { baseURL: `${is.base}/v1` } },
    ...{ useResponsesApi: is.client === 'responses', ...fields },
  });
const create = {
  chat: ofOpenai,
  responses: ofOpenai,
  messages: (fields) => new ChatAnthropic({ ...common, anthropicApiUrl: is.base, ...fields }),
  gemini: (fields) => new ChatGoogleGenerativeAI({ ...common, baseUrl: is.base, ...fields }),
}[is.client];
const model = create();
const tools = [
  {
    type: 'function',
    function: { name: 'get_weather', description: 'The weather of a city.', parameters: is.CITY_SCHEMA },
  },
];
const say = (...content) => [new HumanMessage({ content })];

/** Two calls, their results, and the model's response to them. */
async function useTools(requestOf) {
  const bound = model.bindTools(tools);
  const messages = [new HumanMessage('What is the weather?')];
  const first = await requestOf(bound, messages);
  messages.push(first);
  for (const { id, args } of first.tool_calls)
    messages.push(new ToolMessage({ tool_call_id: id, content: is.WEATHER[args.city] }));
  // In Google's format a result is an object.
  const reported = (await requestOf(bound, messages)).text.replaceAll(/\{result:(\w+)\}/g, '$1');
  is.equal(reported, is.SUMMARY, 'the message');
}

await is.report({
  async chat() {
    const { text, usage_metadata: usage } = await model.invoke('Say hello');
    is.equal([text, usage.total_tokens], [is.HELLO, 110], 'the message');
  },
  async stream() {
    let whole;
    for await (const chunk of await model.stream('Say hello')) whole = whole ? whole.concat(chunk) : chunk;
    is.equal([whole.text, whole.usage_metadata.output_tokens], [is.HELLO, 10], 'the message');
  },
  tools: () => useTools((bound, messages) => bound.invoke(messages)),
  'tools, streamed': () =>
    useTools(async (bound, messages) => {
      let whole;
      for await (const chunk of await bound.stream(messages)) whole = whole ? whole.concat(chunk) : chunk;
      return whole;
    }),
  async structured() {
    const schema = { title: 'person', ...is.PERSON_SCHEMA };
    const structured = model.withStructuredOutput(schema, { name: 'person', method: 'jsonSchema' });
    is.equal(await structured.invoke('A person as JSON'), is.PERSON, 'the object');
  },
  async image() {
    const image = { type: 'image', source_type: 'base64', mime_type: 'image/png', data: is.PNG };
    is.equal((await model.invoke(say({ type: 'text', text: 'The image?' }, image))).text, is.IMAGE, 'the message');
  },
  async document() {
    const metadata = { filename: 'a.pdf' };
    const file = { type: 'file', source_type: 'base64', mime_type: 'application/pdf', data: is.PDF, metadata };
    is.equal((await model.invoke(say({ type: 'text', text: 'The document?' }, file))).text, is.DOCUMENT, 'the message');
  },
  async errors() {
    const cases = [
      [{ apiKey: 'tg_wrong' }, 401],
      [{ model: 'missing/none' }, 404],
      [{ model: `${is.provider}/always-limited` }, 429],
      [{ model: `${is.provider}/broken` }, 503],
    ];
    for (const [fields, status] of cases)
      is.equal((await is.thrownBy(() => create(fields).invoke('Hi'))).status, status, 'the status');
    await is.thrownBy(async () => {
      for await (const _ of await model.stream('Break off'));
    });
    await is.waits(() => create({ model: is.limitedOnce(), maxRetries: 1 }).invoke('Say hello'), 950, 4500);
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const controller = new AbortController();
      try {
        for await (const chunk of await model.stream('Count slowly', { signal: controller.signal }))
          if (chunk.text) controller.abort();
      } catch {
        // LangChain throws an abort error.
      }
    }),
});
