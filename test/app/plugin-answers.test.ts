import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, pluginFile } from '../support/plugins/plugin-file.ts';

const MESSAGE = `{ role: 'assistant', content: 'wrong', refusal: null }`;
const choice = (message: string, finish = `'stop'`) =>
  `{ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message: ${message}, finish_reason: ${finish}, logprobs: null }] }`;
const chunk = (delta: string, finish = 'null') =>
  `{ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: ${delta}, finish_reason: ${finish}, logprobs: null }] }`;
const called = (more: string) => `{ role: 'assistant', content: null, refusal: null, tool_calls: [${more}] }`;

/** Wrong results of a codec: of its function, and what the record of the attempt names. */
const WHOLE: readonly (readonly [result: string, reason: string])[] = [
  ['undefined', 'chat.response() returned undefined; expected a response'],
  ['Promise.resolve(1)', 'chat.response() returned a promise; expected a response'],
  [`{ id: 'x', choices: [] }`, 'returned an array as choices; expected a list of choices'],
  [choice('undefined'), 'returned undefined as choices[0].message; expected a message'],
  [
    choice(`{ role: 'assistant', content: 5 }`),
    'returned a number as choices[0].message.content; expected a text or null',
  ],
  [
    choice(`{ role: 'assistant', content: [{ type: 'text', text: 'x' }] }`),
    'returned an array as choices[0].message.content',
  ],
  [choice(MESSAGE, `'done'`), 'returned "done" as choices[0].finish_reason; expected one of stop, length'],
  [
    choice(called(`{ id: 'c', type: 'function', function: { name: 'f', arguments: {} } }`), `'tool_calls'`),
    'returned an object as choices[0].message.tool_calls[0].function.arguments; expected JSON as a text',
  ],
  [
    choice(called(`{ type: 'function', function: { name: 'f', arguments: '{}' } }`), `'tool_calls'`),
    'returned undefined as choices[0].message.tool_calls[0].id; expected a text',
  ],
  [
    choice(MESSAGE).replace(/ \}$/, `, usage: { prompt_tokens: '5', completion_tokens: 1, total_tokens: 6 } }`),
    'returned "5" as usage.prompt_tokens; expected a number of tokens',
  ],
];

const STREAMED: readonly (readonly [result: string, reason: string])[] = [
  ['undefined', 'push() of a stream returned undefined as chunks; expected a list of chunks'],
  ['[undefined]', 'returned undefined as chunks[0]; expected a chunk'],
  [`[${chunk('{ content: 5 }')}]`, 'returned a number as chunks[0].choices[0].delta.content; expected a text or null'],
  [`[${chunk(`{ content: 'x' }`, 'undefined')}]`, 'returned undefined as chunks[0].choices[0].finish_reason'],
  [
    `[${chunk(`{ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: {} } }] }`)}]`,
    'chunks[0].choices[0].delta.tool_calls[0].function.arguments; expected JSON as a text',
  ],
];

const provider = (whole: string, streamed: string) =>
  pluginFile({
    name: 'acme',
    kind: 'provider',
    setup: `
      const transport = async () => ({ status: 200, headers: { 'content-type': config.stream ? 'text/event-stream' : 'application/json' },
        body: (async function* () { yield Buffer.from(config.stream ? 'data: {}\\n\\n' : '{}'); })() });
      api.provider({ baseUrl: 'http://127.0.0.1:9', models: [{ id: 'm' }], credential: { header: 'authorization', value: 'x', required: false },
        transport, error: () => ({ class: 'upstream_error', message: '' }),
        chat: {
          request: () => ({ path: '/x', body: {} }),
          response: () => (${whole}),
          stream: () => ({ push: () => (${streamed}), end: () => ({ chunks: [], complete: true }) }),
        } });`,
    more: `configSchema: { type: 'object', properties: { stream: { type: 'boolean' } } },`,
  });

describe('G70: a wrong answer of a plugin provider', () => {
  let gateway: TestGateway | undefined;
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  const start = async (text: string, stream: boolean): Promise<TestGateway> => {
    gateway = await startGateway(
      { providers: { echo: {}, acme: { plugin: './acme.mjs', stream } }, models: { fast: ['acme/m', 'echo/echo'] } },
      { files: { 'acme.mjs': text } },
    );
    return gateway;
  };
  const reasonsOf = (running: TestGateway): string => running.logText().replaceAll('\\"', '"');

  for (const [stream, cases] of [
    [false, WHOLE],
    [true, STREAMED],
  ] as const)
    for (const [result, reason] of cases)
      it(`${stream ? 'in a stream' : 'as a whole'} lets the next target serve, and is named: ${reason}`, async () => {
        const text = stream ? provider('undefined', result) : provider(result, '[]');
        const running = await start(text, stream);
        const response = await running.post(CHAT, chatOf('Hi there', { model: 'fast', stream }));
        const reply = await response.text();
        expect(response.status, reply).to.equal(200);
        expect(reply).to.include('there').and.not.include('wrong');
        expect(response.headers.get('x-tollgate-provider')).to.equal('echo');
        expect(reasonsOf(running)).to.include('plugin "acme": ').and.include(reason);
      });

  it('is an error of that provider if there is no other target', async () => {
    const running = await start(provider('undefined', '[]'), false);
    const response = await running.post(CHAT, chatOf('Hi', { model: 'acme/m' }));
    expect(response.status).to.equal(503);
    expect(await response.json()).to.have.nested.property('error.code', 'provider_unavailable');
  });

  it('ends a stream with an error where content comes after the finish reason', async () => {
    const late = `[${chunk(`{ role: 'assistant', content: 'Hi' }`)}, ${chunk('{}', `'stop'`)}, ${chunk(`{ content: 'surplus' }`)}]`;
    const running = await start(provider('undefined', late), true);
    const response = await (await running.post(CHAT, chatOf('Hi', { model: 'acme/m', stream: true }))).text();
    expect(response).not.to.include('surplus');
    expect(response).to.include('provider_unavailable');
    expect(reasonsOf(running)).to.include('expected no content after the finish reason');
  });
});
