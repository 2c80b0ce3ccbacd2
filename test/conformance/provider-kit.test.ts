import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import {
  type ChatCodec,
  type ChatRequest,
  definePlugin,
  type Plugin,
  type Provider,
  readObject,
} from '../../contract/index.ts';
import {
  type CompatibleRules,
  drop,
  emulate,
  openaiCompatible,
  pass,
  rename,
} from '../../plugins/providers/openai-compatible.ts';
import { useTempFolder } from '../support/folders.ts';
import { type KitFailure, runKit } from '../support/plugins/run-kit.ts';
import { testProvider } from './provider.ts';
import { setUpProvider } from './provider-subject.ts';

const LACKS = Object.fromEntries(
  ['cached tokens', 'log probabilities', 'parallel tool calls', 'reasoning content', 'reasoning tokens'].map(
    (feature) => [feature, 'it is made up'],
  ),
);
const FIELDS: CompatibleRules = { logprobs: drop(), top_logprobs: drop(), parallel_tool_calls: drop() };

const CALL = { id: 'a1', type: 'function', function: { name: 'f', arguments: '{}' } };
const USAGE = { usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 } };
const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }], ...(finish && USAGE) })}\n\n`;
const FIXTURES: Readonly<Record<string, unknown>> = {
  'chat.json': {
    choices: [
      { index: 0, message: { role: 'assistant', content: 'Good.', tool_calls: [CALL] }, finish_reason: 'tool_calls' },
    ],
    ...USAGE,
  },
  'chat.json.expected.json': { choices: [{ message: { content: 'Good.' }, finish_reason: 'tool_calls' }] },
  'stream.sse': [
    chunk({ role: 'assistant', content: 'Go' }),
    chunk({ content: 'od.' }),
    chunk({ tool_calls: [{ index: 0, ...CALL }] }, 'tool_calls'),
    'data: [DONE]\n\n',
  ].join(''),
  'stream.sse.expected.json': { choices: [{ content: 'Good.', finish_reason: 'tool_calls' }] },
};

type Change = (provider: Provider & { readonly chat: ChatCodec }) => Partial<Provider>;

/** Vendor with OpenAI's format, and other rules or another codec. */
function acme(fields: CompatibleRules = {}, change?: Change): Plugin<object, 'provider'> {
  const base = openaiCompatible({
    ...{ name: 'acme', baseUrl: 'https://acme.example/v1', listsModels: false, lacks: LACKS },
    fields: { ...FIELDS, ...fields },
  });
  return definePlugin({
    ...base,
    setup: (api, config) =>
      base.setup(
        {
          ...api,
          provider(provider) {
            const { chat } = provider;
            api.provider({ ...provider, ...(chat && change?.({ ...provider, chat })) });
          },
        },
        config,
      ),
  });
}

const codec =
  (change: (chat: ChatCodec) => Partial<ChatCodec>): Change =>
  ({ chat }) => ({ chat: { ...chat, ...change(chat) } });
const without =
  (...names: readonly string[]): Change =>
  ({ chat }) => ({
    fields: undefined as never,
    chat: {
      ...chat,
      request: (request, call) =>
        chat.request(
          Object.fromEntries(
            Object.entries(request).filter(([name]) => !names.includes(name)),
          ) as unknown as ChatRequest,
          call,
        ),
    },
  });

let all = '';

/** Defects of a provider, and the kit's test title that reports each. */
const WRONG: readonly (readonly [what: string, plugin: Plugin<object, 'provider'>, title: RegExp])[] = [
  ['emulates tools by nothing', acme({ tools: emulate('as text') }), /^emulates tools$/m],
  ['emulates tool_choice by nothing', acme({ tool_choice: emulate('as text') }), /^emulates tool_choice$/m],
  ['emulates response_format by nothing', acme({ response_format: emulate('x') }), /^emulates response_format$/m],
  [
    'emulates a schema by JSON of any kind',
    acme({ response_format: emulate('as JSON', () => ({ body: { response_format: { type: 'json_object' } } })) }),
    /^emulates response_format$/m,
  ],
  [
    'G71: sends names and descriptions of tools without what they take',
    acme({
      tools: emulate('by their names', (tools) => ({
        body: {
          tools: (tools as ChatRequest['tools'])?.map(({ function: called }) => [called?.name, called?.description]),
        },
      })),
    }),
    /^emulates tools$/m,
  ],
  [
    'G71: sends tools without the types of what they take',
    acme({
      tools: emulate('by their words', (tools) => ({
        body: {
          tools: (tools as ChatRequest['tools'])?.map(({ function: called }) => [
            ...[called?.name, called?.description],
            Object.keys(readObject(readObject(called?.parameters)['properties'])),
          ]),
        },
      })),
    }),
    /^emulates tools$/m,
  ],
  [
    'G71: omits a field in streams',
    acme(
      {},
      codec((chat) => ({
        request({ temperature, ...request }, call) {
          return chat.request(call.stream ? request : { ...request, ...(temperature && { temperature }) }, call);
        },
      })),
    ),
    /^is the same streamed and not, with temperature$/m,
  ],
  [
    'G71: changes what it is given',
    acme(
      {},
      codec((chat) => ({
        response(body, call) {
          (body as { choices: object[] }).choices.length = 1;
          return chat.response(body, call);
        },
      })),
    ),
    /OpenAI’s shape: chat\.json/,
  ],
  [
    'G71: reads less from a stream than from a response',
    acme(
      {},
      codec((chat) => ({
        stream(call) {
          const decoder = chat.stream(call);
          return {
            ...decoder,
            push: (event) =>
              decoder.push(event).map((chunk) => ({
                ...chunk,
                choices: chunk.choices.map(({ delta: { tool_calls: _, ...delta }, ...choice }) => ({
                  ...choice,
                  delta,
                })),
              })),
            end: () => decoder.end(),
          };
        },
      })),
    ),
    /says as much as chat\.json if its text is the same: stream\.sse/,
  ],
  [
    'sends the names of tools without what they take',
    acme({
      tools: emulate('by their names', (tools) => ({
        body: { tools: (tools as ChatRequest['tools'])?.map(({ function: called }) => called?.name) },
      })),
    }),
    /^emulates tools$/m,
  ],
  [
    'drops tools and calls that emulated',
    acme({ tools: emulate('as text', () => ({ dropped: true })) }),
    /^emulates tools$/m,
  ],
  ['renames a field and sends always the same', acme({ seed: rename('random_seed', 'x', () => 1) }), /^renames seed$/m],
  [
    'renames a field to another name than its table says',
    acme({ seed: rename('random_seed') }, ({ fields = { fields: {}, unknown: 'dropped' } }) => ({
      fields: { ...fields, fields: { ...fields.fields, seed: { rule: 'renamed', to: 'a.seed' } } },
    })),
    /^renames seed$/m,
  ],
  ['notes a change of a field and sends always the same', acme({ top_p: pass('rounded', () => 1) }), /^passes top_p$/m],
  [
    'has no table, and sends neither tools nor a choice',
    acme({}, without('tools', 'tool_choice')),
    /^passes tool_choice\npasses tools$/m,
  ],
  [
    'says every text twice',
    acme(
      {},
      codec((chat) => ({
        response(body, call) {
          const { choices, ...rest } = chat.response(body, call);
          const twice = choices.map(({ message, ...choice }) => ({
            ...choice,
            message: { ...message, content: `${message.content ?? ''}${message.content ?? ''}` },
          }));
          return { ...rest, choices: twice };
        },
      })),
    ),
    /OpenAI’s shape: chat\.json/,
  ],
  [
    'takes every end for a stop',
    acme(
      {},
      codec((chat) => ({
        response(body, call) {
          const { choices, ...rest } = chat.response(body, call);
          return { ...rest, choices: choices.map((choice) => ({ ...choice, finish_reason: 'stop' as const })) };
        },
      })),
    ),
    /OpenAI’s shape: chat\.json/,
  ],
  [
    'keeps what streams say in one place',
    acme(
      {},
      codec((chat) => ({
        stream(call) {
          const decoder = chat.stream(call);
          all = '';
          return {
            ...decoder,
            push: (event) =>
              [...decoder.push(event)].map((one) => ({
                ...one,
                choices: one.choices.map((choice) => {
                  all += choice.delta.content ?? '';
                  return choice.finish_reason ? { ...choice, delta: { ...choice.delta, content: all } } : choice;
                }),
              })),
            end: () => decoder.end(),
          };
        },
      })),
    ),
    /a concurrent stream/,
  ],
  [
    'writes to the console',
    acme(
      {},
      codec((chat) => ({
        request(request, call) {
          console.warn(request.model);
          return chat.request(request, call);
        },
      })),
    ),
    /nothing to the console/,
  ],
  [
    'takes its options from the environment',
    acme({}, ({ baseUrl }) => ({ baseUrl: process.env['ACME_URL'] ?? baseUrl })),
    /reads no environment variable/,
  ],
];

describe('the kit for providers', () => {
  const folder = useTempFolder('provider-kit');
  const write = (into: string, files: Readonly<Record<string, unknown>>): URL => {
    mkdirSync(path.join(folder, into), { recursive: true });
    for (const [name, value] of Object.entries(files))
      writeFileSync(path.join(folder, into, name), typeof value === 'string' ? value : JSON.stringify(value));
    return pathToFileURL(`${folder}/${into}/`);
  };
  const failures = (plugin: Plugin<object, 'provider'>, fixtures: URL): Promise<readonly KitFailure[]> =>
    runKit((runner) => testProvider({ plugin, fixtures, runner }));

  it('finds nothing wrong with a provider that is right', async () => {
    expect(await failures(acme(), write('right', FIXTURES))).to.deep.equal([]);
  });

  it('finds nothing wrong with rules that say what is done', async () => {
    const fields: CompatibleRules = {
      ...{ seed: rename('random_seed'), tool_choice: drop(), store: drop() },
      reasoning_effort: emulate('a budget', (effort) => ({ body: { budget: effort === 'low' ? 1 : 9 } })),
      top_p: pass('in percent', (share) => Number(share) * 100),
    };
    expect(await failures(acme(fields), write('right', FIXTURES))).to.deep.equal([]);
  });

  for (const [what, plugin, title] of WRONG)
    it(`finds a provider that ${what}`, async () => {
      const failed = await failures(plugin, write('right', FIXTURES));
      expect(failed.map((failure) => failure.title).join('\n')).to.match(title);
    });

  it('says what arrives of a field, or does not', async () => {
    const fields: CompatibleRules = { tools: emulate('x'), seed: rename('random_seed', 'x', () => 1) };
    const failed = await failures(acme(fields), write('right', FIXTURES));
    expect(failed).to.deep.include.members([
      {
        title: 'emulates tools',
        message: 'tools is emulated, says the table, but the request is the same without it',
      },
      { title: 'renames seed', message: 'random_seed is [1] whatever seed says: [7,8]' },
    ]);
  });

  const BROKEN: readonly (readonly [what: string, files: Readonly<Record<string, unknown>>, message: RegExp])[] = [
    ['a response that is not JSON', { 'chat.json': '{"choices":' }, /^the fixture chat\.json is not JSON: /m],
    [
      'an expectation that is not',
      { 'chat.json.expected.json': '{' },
      /^the fixture chat\.json\.expected\.json is not JSON: /m,
    ],
    [
      'errors that are no list',
      { 'errors.json': {} },
      /^the fixture errors\.json has to be a list of \{ name, status, body, class \}$/m,
    ],
    [
      'an error without a class',
      { 'errors.json': [{ name: 'busy', status: 429, body: {} }] },
      /^the fixture errors\.json has no class in its row 1$/m,
    ],
  ];
  for (const [what, files, message] of BROKEN)
    it(`says what is wrong with fixtures of ${what}, in a test that fails, and runs the others`, async () => {
      const failed = await failures(acme(), write(what.replaceAll(' ', '-'), { ...FIXTURES, ...files }));
      expect(failed.map((failure) => failure.message).join('\n')).to.match(message);
    });

  for (const file of ['chat.json', 'stream.sse'])
    it(`G71: fails ${file} without an expectation, as a to-do with the result`, async () => {
      const { [`${file}.expected.json`]: _, ...files } = FIXTURES;
      const failed = await failures(acme(), write(`without-${file}`, files));
      expect(failed.map(({ message }) => message)).to.have.length(1);
      expect(failed[0]?.message).to.include(`to do: write ${file}.expected.json`).and.include('"Good."');
    });

  it('tests a codec that returns a promise of its request by `request`, and compares both', async () => {
    const fixtures = write('right', FIXTURES);
    const request = setUpProvider(acme(), { apiKey: 'x' }).chat?.request;
    const promising = acme(
      {},
      codec((chat) => ({ request: async (input, call) => await chat.request(input, call) })),
    );
    const run = (given: typeof request): Promise<readonly KitFailure[]> =>
      runKit((runner) => testProvider({ plugin: promising, fixtures, runner, ...(given && { request: given }) }));
    expect(await run(request)).to.deep.equal([]);
    const other = (await run(() => ({ path: '/other', body: {} }))).map(({ title }) => title);
    expect(other).to.include('resolves its request to the one that `request` writes');
    expect((await run(undefined)).map(({ message }) => message).join()).to.include('give the kit `request`');
  });

  it('runs under node:test, which has no globals, and fails there where a provider is wrong @slow', async () => {
    const fixtures = write('right', FIXTURES);
    const run = (name: string, emulated: string): Promise<{ readonly code: number | null; readonly text: string }> => {
      const file = path.join(folder, `${name}.test.mts`);
      const at = (module: string): string => JSON.stringify(path.join(PACKAGE_ROOT, module));
      writeFileSync(
        file,
        `import * as runner from 'node:test';
import { testProvider } from ${at('test/conformance/index.ts')};
import { drop, emulate, openaiCompatible } from ${at('plugins/providers/openai-compatible.ts')};

const fields = { logprobs: drop(), top_logprobs: drop(), parallel_tool_calls: drop(), ${emulated} };
const plugin = openaiCompatible({
  ...{ name: 'acme', baseUrl: 'https://acme.example/v1', listsModels: false, fields },
  lacks: ${JSON.stringify(LACKS)},
});
testProvider({ plugin, fixtures: new URL(${JSON.stringify(fixtures.href)}), runner });
`,
      );
      const args = ['--import', import.meta.resolve('tsx/esm'), '--test', '--test-reporter', 'tap', file];
      return new Promise((resolve) => {
        execFile(
          process.execPath,
          args,
          { cwd: PACKAGE_ROOT, env: { PATH: process.env['PATH'] }, timeout: 60_000 },
          (error, text) => resolve({ code: error === null ? 0 : ((error.code as number | undefined) ?? null), text }),
        );
      });
    };
    const right = await run('right', 'seed: drop()');
    expect(right.code, right.text.slice(-2000)).to.equal(0);
    expect(Number(/^# pass (\d+)$/m.exec(right.text)?.[1])).to.be.greaterThan(100);
    const wrong = await run('wrong', "tools: emulate('as text')");
    expect(wrong.code).to.equal(1);
    expect(wrong.text).to.match(/not ok \d+ - emulates tools$/m);
  });

  it('says when a plugin cannot be set up', async () => {
    const plugin = definePlugin({
      ...acme(),
      setup() {
        throw new Error('no region');
      },
    });
    const failed = await failures(plugin, write('right', FIXTURES));
    expect(failed).to.deep.equal([{ title: 'has all that its tests need', message: 'no region' }]);
  });
});
