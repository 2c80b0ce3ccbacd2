import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import {
  type ChatChunk,
  type DialectContext,
  type DialectDefinition,
  type DialectStream,
  definePlugin,
  GatewayError,
} from '../../contract/index.ts';
import { useTempFolder } from '../support/folders.ts';
import { type KitFailure, runKit } from '../support/plugins/run-kit.ts';
import { type DialectKit, testDialect } from './dialect.ts';

interface Body {
  readonly model: string;
  readonly say: string;
  readonly stream?: boolean;
}

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** Small correct dialect; `change` breaks it. */
function small(change: Partial<DialectDefinition<Body>> = {}): DialectDefinition<Body> {
  return {
    name: 'small',
    request: {
      type: 'object',
      required: ['model', 'say'],
      properties: { model: { type: 'string' }, say: { type: 'string' } },
    },
    response: { type: 'object' },
    routes: [{ path: '/small', summary: 'Small' }],
    keepAlive: ': small\n\n',
    read: ({ body: { model, say, stream } }) => ({
      request: { model, messages: [{ role: 'user', content: say }], ...(stream === true && { stream }) },
      place: () => 'say',
    }),
    write: ({ choices: [choice], usage }, { id }) => ({
      ...{ id, text: choice?.message.content ?? '', usage, why: choice?.finish_reason },
    }),
    stream: streamOf(),
    error: ({ code, message }) => ({ body: { error: code, message } }),
    ...change,
  };
}

/** Format of events, and their defects. */
interface Writing {
  readonly frame?: (value: object) => string;
  readonly contentType?: string;
  /** Changes a text. */
  readonly cut?: (text: string) => string;
  /** Last event. */
  readonly last?: (end: End) => object;
}

interface End {
  readonly id: string;
  readonly usage: object;
  readonly why: string | undefined;
}

function streamOf({ frame: framed = frame, contentType, cut = (text) => text, last = (end) => end }: Writing = {}) {
  return ({ id }: DialectContext<Body>): DialectStream => {
    let end: End = { id, usage: {}, why: undefined };
    return {
      ...(contentType !== undefined && { contentType }),
      push({ choices: [choice], usage }) {
        end = { id, usage: usage ?? end.usage, why: choice?.finish_reason ?? end.why };
        const text = choice?.delta.content ?? '';
        return text === '' ? '' : framed({ text: cut(text) });
      },
      end: () => framed(last(end)),
      fail: ({ code, message }) => framed({ error: code, message }),
    };
  };
}

const FORMAT = {
  events: [
    { name: 'error', when: { error: null } },
    { name: 'end', when: { usage: null } },
    { name: 'text', when: { text: null } },
  ],
  complete: 'text* end',
  failed: 'text* error',
  content: [{ what: 'text', holds: ['content'], whole: ['text'], streamed: [{ events: ['text'], path: 'text' }] }],
  finish: {
    whole: 'why',
    streamed: [{ events: ['end'], path: 'why' }],
    words: { stop: 'stop', length: 'length', tool_calls: 'tool_calls', content_filter: 'content_filter' },
  },
  id: { whole: 'id', streamed: [{ events: ['end'], path: 'id' }] },
  usage: { whole: 'usage', streamed: 'usage', input: ['prompt_tokens'], output: ['completion_tokens'] },
  error: { body: { type: 'error', message: 'message' }, streamed: { type: 'error', message: 'message' } },
};
const REQUEST = (stream: boolean) => ({
  body: { model: 'm', say: 'Hi', stream },
  canonical: { messages: [{ content: 'Hi' }] },
});

const native = (
  patch: NonNullable<DialectDefinition<Body>['native']>['patch'],
): NonNullable<DialectDefinition<Body>['native']> => ({
  patch,
  write: (body) => body,
  stream: () => ({ push: ({ data }) => `data: ${data}\n\n`, end: () => '', fail: () => '' }),
});

const CHANGES = Object.fromEntries(
  'max_completion_tokens temperature top_p stop user metadata service_tier reasoning_effort'
    .split(' ')
    .map((name) => [name, null]),
);

/** Defects of a dialect, and the kit's test title that reports each. */
const WRONG: readonly (readonly [what: string, change: Partial<DialectDefinition<Body>>, title: RegExp])[] = [
  [
    'changes its input',
    {
      read(input) {
        Object.assign(input.body, { seen: 1 });
        return small().read(input);
      },
    },
    /stays unchanged/,
  ],
  [
    'reads the clock',
    { read: (input) => ({ ...small().read(input), dropped: [String(performance.now())] }) },
    /to the same result again/,
  ],
  [
    'throws what is no error of ours',
    {
      read(input) {
        if (input.body.say === '') throw new TypeError('x is undefined');
        return small().read(input);
      },
    },
    /garbage|in any place/,
  ],
  [
    'refuses without a place',
    {
      read(input) {
        if (input.body.say === '') throw new GatewayError('invalid_request', 'x');
        return small().read(input);
      },
    },
    /in any place/,
  ],
  ['does not know places', { read: (input) => ({ request: small().read(input).request }) }, /knows the place/],
  [
    'has no stream',
    { read: (input) => ({ request: { ...small().read(input).request, stream: false } }) },
    /one for a stream/,
  ],
  [
    'loses text of a stream',
    { stream: streamOf({ cut: (text) => text.slice(1) }) },
    /with the content of the JSON response/,
  ],
  [
    'sends something after the end',
    { stream: (context) => ({ ...streamOf()(context), end: () => frame({ usage: {} }) + frame({ text: 'x' }) }) },
    /in the order of the grammar/,
  ],
  [
    'loses the usage of a stream',
    { stream: streamOf({ last: (end) => ({ ...end, usage: {} }) }) },
    /with the usage of the JSON response/,
  ],
  [
    'ends an error as a response',
    {
      stream: (context) => {
        const one = streamOf()(context);
        return { ...one, fail: () => one.end() };
      },
    },
    /end with one error/,
  ],
  [
    'tells an error without its words',
    { error: ({ code }) => ({ body: { error: code, message: 'Oops' } }) },
    /internal_error is 500/,
  ],
  [
    'calls every error 500',
    { error: ({ code, message }) => ({ body: { error: code, message }, status: 500 }) },
    /invalid_request is 400/,
  ],
  [
    'sends more than the listed edits',
    { native: native((body, { model }) => ({ body: { ...body, model, say: `${body.say}!` } })) },
    /with the listed edits only/,
  ],
  [
    'says every text twice, whole and streamed',
    {
      write: (response, context) => {
        const { text, ...rest } = small().write(response, context) as { readonly text: string };
        return { ...rest, text: text + text };
      },
      stream: streamOf({ cut: (text) => text + text }),
    },
    /all content of the model, once/,
  ],
  [
    'calls every end "stop"',
    {
      write: (response, context) => ({ ...(small().write(response, context) as object), why: 'stop' }),
      stream: streamOf({ last: (end) => ({ ...end, why: 'stop' }) }),
    },
    /end with "length"/,
  ],
  [
    'calls every end of a stream "stop"',
    { stream: streamOf({ last: (end) => ({ ...end, why: 'stop' }) }) },
    /end with "length"/,
  ],
  [
    'gives every response one id',
    { write: (response, context) => ({ ...(small().write(response, context) as object), id: 'resp-1' }) },
    /an id of their own/,
  ],
  [
    'gives every stream one id',
    { stream: streamOf({ last: (end) => ({ ...end, id: 'resp-1' }) }) },
    /an id of their own/,
  ],
  [
    'keeps what streams say in one place',
    (() => {
      let said = '';
      return {
        stream: (context: DialectContext<Body>) => ({
          ...streamOf()(context),
          push({ choices: [choice] }: ChatChunk) {
            said += choice?.delta.content ?? '';
            return '';
          },
          end() {
            const frames = said === '' ? '' : frame({ text: said });
            said = '';
            return frames + frame({ id: context.id, usage: {}, why: 'stop' });
          },
        }),
      };
    })(),
    /concurrently with another response/,
  ],
  [
    'writes to the console',
    {
      read(input) {
        console.log('a request');
        return small().read(input);
      },
    },
    /nothing to the console/,
  ],
  [
    'asks the environment',
    { read: (input) => ({ ...small().read(input), ...(process.env['SMALL_DEBUG'] && { dropped: ['x'] }) }) },
    /reads no environment variable/,
  ],
  [
    'changes the order of keys',
    { native: native(({ model: _, ...rest }, { model }) => ({ body: { ...rest, model } })) },
    /in its own order/,
  ],
  [
    'forgets to tell what it cannot say',
    { native: native((body, { model }) => ({ body: { ...body, model } })) },
    /a changed temperature/,
  ],
];

describe('the kit for dialects', () => {
  const folder = useTempFolder('kit');
  const write = (into: string, name: string, value: unknown) => {
    mkdirSync(path.join(folder, into), { recursive: true });
    writeFileSync(path.join(folder, into, name), typeof value === 'string' ? value : JSON.stringify(value));
  };
  const failures = (dialect: DialectDefinition<Body>, into = 'fixtures'): Promise<readonly KitFailure[]> => {
    const plugin = definePlugin({
      name: 'small',
      kind: 'dialect',
      apiVersion: 1,
      setup: (api) => api.dialect(dialect),
    });
    return runKit((runner) => testDialect({ plugin, fixtures: pathToFileURL(`${folder}/${into}/`), runner }));
  };
  before(() => {
    write('fixtures', 'format.json', { ...FORMAT, native: { edits: ['model'], changes: CHANGES } });
    for (const into of ['fixtures', 'broken']) {
      write(into, 'request-whole.json', REQUEST(false));
      write(into, 'request-stream.json', REQUEST(true));
    }
  });

  it('finds nothing wrong with a dialect that is right', async () => {
    expect(await failures(small())).to.deep.equal([]);
  });

  it('finds nothing wrong with a dialect that writes lines of JSON', async () => {
    const line = (value: object): string => `${JSON.stringify(value)}\n`;
    const lines = small({ keepAlive: '\n', stream: streamOf({ frame: line, contentType: 'application/x-ndjson' }) });
    expect(await failures(lines)).to.deep.equal([]);
  });

  for (const [what, change, title] of WRONG)
    it(`finds a dialect that ${what}`, async () => {
      expect((await failures(small(change))).map((failure) => failure.title).join('\n')).to.match(title);
    });

  describe('says what is wrong with fixtures, in a test that fails', () => {
    const rows: readonly (readonly [what: string, format: unknown, message: RegExp])[] = [
      ['that are not there', undefined, /^the fixtures in .* have no format\.json$/],
      ['that are not JSON', '{"events":', /^the fixture format\.json is not JSON: /],
      ['that are a list', [], /^format\.json has to be an object$/],
      [
        'without an order',
        { ...FORMAT, complete: undefined },
        /^format\.json has no `complete`: the order of events as /,
      ],
      [
        'without an end',
        { ...FORMAT, finish: undefined },
        /^format\.json has no `finish`: where it stands why a response ended/,
      ],
      [
        'with a field that is not known',
        { ...FORMAT, finsih: 1 },
        /^format\.json has `finsih`, which is not known here/,
      ],
      [
        'with one path where a list belongs',
        { ...FORMAT, content: [{ ...FORMAT.content[0], whole: 'text' }] },
        /^format\.json: content\[0\]\.whole has to be a list of paths such as \["choices\[\]\.text"\]$/,
      ],
      [
        'with an unknown order of events',
        { ...FORMAT, complete: 'texts* end' },
        /^format\.json: complete is no order of events: there is no event "texts"$/,
      ],
      ['with an invalid order', { ...FORMAT, failed: 'text* (error' }, /^format\.json: failed is no order of events: /],
      [
        'with content in unknown events',
        { ...FORMAT, content: [{ ...FORMAT.content[0], streamed: [{ events: ['txt'], path: 'text' }] }] },
        /^format\.json: content\[0\]\.streamed\[0\] names the event "txt", which `events` does not have$/,
      ],
      [
        'that do not say where the text stands',
        { ...FORMAT, content: [{ ...FORMAT.content[0], holds: [] }] },
        /^format\.json: no row of `content` has `"holds": \["content"\]`/,
      ],
    ];
    for (const [what, format, message] of rows)
      it(what, async () => {
        const file = path.join(folder, 'broken', 'format.json');
        rmSync(file, { force: true });
        if (format !== undefined) write('broken', 'format.json', format);
        const failed = await failures(small(), 'broken');
        expect(failed).to.have.length(1);
        expect(failed[0]?.message).to.match(message);
      });

    it('of which one has no body', async () => {
      write('broken', 'format.json', FORMAT);
      write('broken', 'request-empty.json', {});
      const failed = await failures(small(), 'broken');
      expect(failed.map((failure) => failure.message)).to.deep.equal([
        'the fixture request-empty.json has no body and no canonical, an object',
      ]);
    });
  });

  it('reports a plugin that is invalid, of another kind, or registers nothing', async () => {
    const fixtures = pathToFileURL(`${folder}/fixtures/`);
    const ofKind = (kind: string): unknown => ({ name: 'other', kind, apiVersion: 1, setup() {} });
    const messages = await Promise.all(
      [undefined, ofKind('policy'), ofKind('dialect')].map(async (plugin) => {
        const failed = await runKit((runner) => testDialect({ plugin, fixtures, runner } as DialectKit));
        return failed.map((failure) => failure.message).join('\n');
      }),
    );
    expect(messages).to.deep.equal([
      '`plugin` is no plugin: give what `definePlugin` returns, which is the default export of its file',
      '`plugin` is of the kind "policy"; this kit is for the kind "dialect"',
      'other registers 0 dialects: its `setup` has to call `api.dialect` once, before it returns',
    ]);
  });

  it('says what a runner lacks', () => {
    const kit = { plugin: undefined, fixtures: pathToFileURL(folder), runner: { describe() {}, it() {} } };
    expect(() => testDialect(kit as unknown as DialectKit)).to.throw(/^What stands in `runner` is no test runner/);
  });
});
