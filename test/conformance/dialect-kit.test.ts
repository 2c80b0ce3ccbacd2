import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { type DialectDefinition, definePlugin, GatewayError } from '../../core/index.ts';
import { useTempFolder } from '../support/folders.ts';
import { dialectFixtures } from '../support/formats/dialect-kits.ts';
import { testDialect } from './dialect.ts';

interface Body {
  readonly model: string;
  readonly say: string;
  readonly stream?: boolean;
}

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** A small dialect that is right; `change` makes it wrong. */
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
    write: ({ choices: [choice], usage }) => ({ text: choice?.message.content ?? '', usage }),
    stream: () => streamOf(() => ''),
    error: ({ code, message }) => ({ body: { error: code, message } }),
    ...change,
  };
}

function streamOf(
  extra: (text: string) => string,
  cut = (text: string) => text,
): ReturnType<DialectDefinition['stream']> {
  let usage: object = {};
  return {
    push({ choices: [choice], usage: told }) {
      usage = told ?? usage;
      const text = choice?.delta.content ?? '';
      return text === '' ? '' : frame({ text: cut(text) }) + extra(text);
    },
    end: () => frame({ usage }),
    fail: ({ code, message }) => frame({ error: code, message }),
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
  content: [{ what: 'text', whole: ['text'], streamed: [{ events: ['text'], path: 'text' }] }],
  usage: { whole: 'usage', streamed: 'usage', input: ['prompt_tokens'], output: ['completion_tokens'] },
  error: { body: { type: 'error', message: 'message' }, streamed: { type: 'error', message: 'message' } },
};
const REQUEST = (stream: boolean) => ({
  body: { model: 'm', say: 'Hi', stream },
  canonical: { messages: [{ content: 'Hi' }] },
});

/** The titles of the tests that fail, run one after the other by a runner of our own. */
async function failuresOf(run: () => void): Promise<readonly string[]> {
  const globals = globalThis as unknown as Record<string, unknown>;
  const tests: [title: string, body: () => unknown][] = [];
  const own = {
    describe: (_title: string, body: () => void) => body(),
    it: (title: string, body: () => unknown) => tests.push([title, body]),
    before() {},
    after() {},
  };
  const mochas = Object.fromEntries(Object.keys(own).map((name) => [name, globals[name]]));
  Object.assign(globals, own);
  try {
    run();
  } finally {
    Object.assign(globals, mochas);
  }
  const failed: string[] = [];
  for (const [title, body] of tests)
    try {
      await body();
    } catch {
      failed.push(title);
    }
  return failed;
}

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

/** What may be wrong with a dialect, and a title of the kit that says so. */
const WRONG: readonly (readonly [what: string, change: Partial<DialectDefinition<Body>>, title: RegExp])[] = [
  [
    'changes its input',
    {
      read(input) {
        Object.assign(input.body, { seen: 1 });
        return small().read(input);
      },
    },
    /stays as it was/,
  ],
  [
    'reads the clock',
    { read: (input) => ({ ...small().read(input), dropped: [String(performance.now())] }) },
    /to the same thing again/,
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
  ['does not know places', { read: (input) => ({ request: small().read(input).request }) }, /knows where/],
  [
    'has no stream',
    { read: (input) => ({ request: { ...small().read(input).request, stream: false } }) },
    /one that wants a stream/,
  ],
  [
    'loses text of a stream',
    {
      stream: () =>
        streamOf(
          () => '',
          (text) => text.slice(1),
        ),
    },
    /with the content of the whole response/,
  ],
  [
    'sends something after the end',
    { stream: () => ({ ...streamOf(() => ''), end: () => frame({ usage: {} }) + frame({ text: 'x' }) }) },
    /in the order of the grammar/,
  ],
  [
    'loses the usage of a stream',
    { stream: () => ({ ...streamOf(() => ''), end: () => frame({ usage: {} }) }) },
    /with the usage of the whole response/,
  ],
  [
    'ends an error as a response',
    {
      stream: () => {
        const one = streamOf(() => '');
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
  const at = (): URL => pathToFileURL(`${folder}/fixtures/`);
  const failures = (dialect: DialectDefinition<Body>): Promise<readonly string[]> =>
    failuresOf(() =>
      testDialect(
        definePlugin({ name: 'small', kind: 'dialect', apiVersion: 1, setup: (api) => api.dialect(dialect) }),
        at(),
      ),
    );
  before(() => {
    mkdirSync(path.join(folder, 'fixtures'));
    const write = (name: string, value: object) =>
      writeFileSync(path.join(folder, 'fixtures', name), JSON.stringify(value));
    write('format.json', { ...FORMAT, native: { edits: ['model'], changes: CHANGES } });
    write('request-whole.json', REQUEST(false));
    write('request-stream.json', REQUEST(true));
  });

  it('finds nothing wrong with a dialect that is right', async () => {
    expect(await failures(small())).to.deep.equal([]);
  });

  for (const [what, change, title] of WRONG)
    it(`finds a dialect that ${what}`, async () => {
      expect((await failures(small(change))).some((one) => title.test(one))).to.equal(true);
    });

  it('says what is missing where a folder has no format', () => {
    const plugin = definePlugin({
      name: 'small',
      kind: 'dialect',
      apiVersion: 1,
      setup: (api) => api.dialect(small()),
    });
    expect(() => testDialect(plugin, dialectFixtures('none'))).to.throw(/format\.json/);
  });
});
