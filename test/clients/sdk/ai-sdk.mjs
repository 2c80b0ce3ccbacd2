// Vercel's AI SDK 5 to 7. CLIENT is `openai` (Responses, its default), `anthropic`, `google` or `openai-compatible`.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import * as ai from 'ai';
import { z } from 'zod';
import * as is from './behaviours.mjs';

const { generateText, streamText, generateObject, tool, jsonSchema, APICallError } = ai;
const create = {
  openai: createOpenAI,
  anthropic: createAnthropic,
  google: createGoogleGenerativeAI,
  'openai-compatible': createOpenAICompatible,
}[is.client];
const options = {
  name: 'tollgate',
  baseURL: `${is.base}/${is.client === 'google' ? 'v1beta' : 'v1'}`,
  apiKey: is.key,
  supportsStructuredOutputs: true,
  includeUsage: true,
};
const provider = create(options);
const model = provider(is.MODEL);
const person = z.object({ name: z.string(), age: z.number() });
const stopWhen = (ai.stepCountIs ?? ai.isStepCount)(3);
const tools = {
  get_weather: tool({
    description: 'The weather of a city.',
    inputSchema: jsonSchema(is.CITY_SCHEMA),
    execute: async ({ city }) => is.WEATHER[city],
  }),
};
const user = (...content) => [{ role: 'user', content }];

/** All parts of a stream; errors are parts. */
async function partsOf(result) {
  const parts = [];
  for await (const part of result.fullStream ?? result.stream) parts.push(part);
  return parts;
}

/** Error of one attempt. */
const failing = (given, rest = {}) =>
  is.thrownBy(() => generateText({ model: given, prompt: 'Hi', maxRetries: 0, ...rest }));

/** In Google's format a result is an object that contains the tool's name. */
const reportOf = (reported) => reported.replaceAll(/\{name:get_weather,content:(\w+)\}/g, '$1');

await is.report({
  async chat() {
    const { text, usage, finishReason } = await generateText({ model, prompt: 'Say hello' });
    is.equal([text, finishReason, usage.totalTokens], [is.HELLO, 'stop', 110], 'the result');
  },
  async stream() {
    const result = streamText({ model, prompt: 'Say hello' });
    let text = '';
    for await (const delta of result.textStream) text += delta;
    const { outputTokens } = await (result.totalUsage ?? result.usage);
    is.equal([text, outputTokens], [is.HELLO, 10], 'the result');
  },
  async tools() {
    const { text, steps } = await generateText({ model, prompt: 'What is the weather?', tools, stopWhen });
    is.equal([reportOf(text), steps[0].toolCalls.length, steps.length], [is.SUMMARY, 2, 2], 'the result');
  },
  async 'tools, streamed'() {
    const streamed = streamText({ model, prompt: 'What is the weather?', tools, stopWhen });
    is.equal(reportOf(await streamed.text), is.SUMMARY, 'the streamed text');
  },
  async structured() {
    if (generateObject) {
      const { object } = await generateObject({ model, schema: person, prompt: 'A person as JSON' });
      is.equal(object, is.PERSON, 'the object');
    }
    const { output, experimental_output: early } = await generateText({
      ...{ model, prompt: 'A person as JSON' },
      [ai.Output && 'output']: ai.Output.object({ schema: person }),
      experimental_output: ai.Output.object({ schema: person }),
    });
    is.equal(output ?? early, is.PERSON, 'the output');
  },
  async image() {
    const image = { type: 'image', image: is.PNG, mediaType: 'image/png' };
    const { text } = await generateText({ model, messages: user({ type: 'text', text: 'The image?' }, image) });
    is.equal(text, is.IMAGE, 'the text');
  },
  async document() {
    const file = { type: 'file', data: is.PDF, mediaType: 'application/pdf', filename: 'a.pdf' };
    const { text } = await generateText({ model, messages: user({ type: 'text', text: 'The document?' }, file) });
    is.equal(text, is.DOCUMENT, 'the text');
  },
  async errors() {
    const cases = [
      [create({ ...options, apiKey: 'tg_wrong' })(is.MODEL), 401, false],
      [provider('missing/none'), 404, false],
      [provider(`${is.provider}/always-limited`), 429, true],
      [provider(`${is.provider}/broken`), 503, true],
    ];
    for (const [given, status, isRetryable] of cases) {
      const error = await failing(given);
      if (!APICallError.isInstance(error)) throw new Error(`${status} throws ${error.name}: ${error.message}`);
      is.equal([error.statusCode, error.isRetryable], [status, isRetryable], 'the error');
      if (!error.message || /^(?:Not Found|Unauthorized)$/.test(error.message))
        throw new Error('the message is not ours');
    }
    // A connection that closes, as in Google's format, is an error of the iteration.
    const broken = await partsOf(streamText({ model, prompt: 'Break off', maxRetries: 0, onError() {} })).catch(
      (error) => {
        if (!APICallError.isInstance(error)) throw error;
        return [{ type: 'error' }];
      },
    );
    if (!broken.some(({ type }) => type === 'error'))
      throw new Error(`a broken stream ends with ${broken.at(-1).type}`);
    const limited = provider(is.limitedOnce());
    await is.waits(() => generateText({ model: limited, prompt: 'Say hello', maxRetries: 1 }), 950, 3000);
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const controller = new AbortController();
      const result = streamText({ model, prompt: 'Count slowly', abortSignal: controller.signal, onError() {} });
      for await (const part of result.fullStream ?? result.stream) if (part.type === 'text-delta') controller.abort();
    }),
});
