// @openai/agents, which uses Responses by default.
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { z } from 'zod';
import * as is from './behaviours.mjs';

const create = (apiKey = is.key) =>
  new Runner({ modelProvider: new OpenAIProvider({ baseURL: `${is.base}/v1`, apiKey }), tracingDisabled: true });
const runner = create();
const getWeather = tool({
  ...{ name: 'get_weather', description: 'The weather of a city.', parameters: z.object({ city: z.string() }) },
  execute: async ({ city }) => is.WEATHER[city],
});
const agent = (fields = {}) => new Agent({ name: 'Agent', instructions: 'Help.', model: is.MODEL, ...fields });
const user = (...content) => [{ type: 'message', role: 'user', content }];

await is.report({
  async chat() {
    is.equal((await runner.run(agent(), 'Say hello')).finalOutput, is.HELLO, 'the output');
  },
  async stream() {
    const result = await runner.run(agent(), 'Say hello', { stream: true });
    let text = '';
    for await (const delta of result.toTextStream()) text += delta;
    await result.completed;
    is.equal([text, result.finalOutput], [is.HELLO, is.HELLO], 'the output');
  },
  async tools() {
    const weather = agent({ tools: [getWeather] });
    is.equal((await runner.run(weather, 'What is the weather?')).finalOutput, is.SUMMARY, 'the output');
  },
  async 'tools, streamed'() {
    const weather = agent({ tools: [getWeather] });
    const result = await runner.run(weather, 'What is the weather?', { stream: true });
    await result.completed;
    is.equal(result.finalOutput, is.SUMMARY, 'the streamed output');
  },
  async structured() {
    const outputType = z.object({ name: z.string(), age: z.number() });
    is.equal((await runner.run(agent({ outputType }), 'A person as JSON')).finalOutput, is.PERSON, 'the output');
  },
  async image() {
    const image = { type: 'input_image', image: `data:image/png;base64,${is.PNG}` };
    const { finalOutput } = await runner.run(agent(), user({ type: 'input_text', text: 'The image?' }, image));
    is.equal(finalOutput, is.IMAGE, 'the output');
  },
  async document() {
    const file = { type: 'input_file', file: `data:application/pdf;base64,${is.PDF}`, filename: 'a.pdf' };
    const { finalOutput } = await runner.run(agent(), user({ type: 'input_text', text: 'The document?' }, file));
    is.equal(finalOutput, is.DOCUMENT, 'the output');
  },
  async errors() {
    const cases = [
      [() => create('tg_wrong').run(agent(), 'Hi'), 401],
      [() => runner.run(agent({ model: 'missing/none' }), 'Hi'), 404],
      [() => runner.run(agent({ model: `${is.provider}/broken` }), 'Hi'), 503],
    ];
    for (const [run, status] of cases) is.equal((await is.thrownBy(run)).status, status, 'the status');
    await is.thrownBy(async () => {
      const result = await runner.run(agent(), 'Break off', { stream: true });
      await result.completed;
    });
    await is.waits(() => runner.run(agent({ model: is.limitedOnce() }), 'Say hello'), 950, 3000);
  },
  abort: () =>
    is.closesAtVendor(async () => {
      const controller = new AbortController();
      const result = await runner.run(agent(), 'Count slowly', { stream: true, signal: controller.signal });
      result.completed.catch(() => {});
      for await (const delta of result.toTextStream()) if (delta) break;
      controller.abort();
    }),
});
