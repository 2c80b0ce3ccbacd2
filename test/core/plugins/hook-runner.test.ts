import { expect } from 'chai';
import type { Operation } from '../../../contract/call.ts';
import { GatewayError } from '../../../contract/errors.ts';
import { HOOKS, type HookName } from '../../../contract/hooks.ts';
import { compileHooks } from '../../../core/plugins/compile-hooks.ts';
import { HOOK_TIMEOUT_MS } from '../../../core/plugins/hook-guard.ts';
import { failLateSteps, type HookEntry } from '../../../core/plugins/hook-runner.ts';

type Loose = (...args: unknown[]) => unknown;
type LooseHook =
  | Loose
  | { readonly handler: Loose; readonly order?: 'pre' | 'post'; readonly operations?: readonly string[] };

/** Compiles hooks of these owners, in this order. */
function compile(
  hooks: readonly (readonly [owner: string, name: HookName, hook: LooseHook])[],
  { operation = 'chat', onIgnored = () => {} }: { operation?: string; onIgnored?: (owner: string) => void } = {},
): Record<HookName, Loose> {
  const entries = hooks.map(
    ([owner, name, hook]): HookEntry => ({
      ...{ owner, name },
      ...(typeof hook === 'function' ? { handler: hook } : hook),
    }),
  );
  const options = {
    operation: operation as Operation,
    isRequest: (value: unknown) => typeof value === 'object' && value !== null && 'model' in value,
    isResponse: () => false,
    onIgnored,
    pending: { begin() {}, end() {} },
  };
  return compileHooks(entries, options) as unknown as Record<HookName, Loose>;
}

const CHUNK = { choices: [{ index: 0, delta: { content: 'x' }, finish_reason: null }] };
const chunkOf = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const textOf = (chunks: unknown) =>
  (chunks as readonly (typeof CHUNK)[]).map(({ choices: [choice] }) => choice?.delta.content).join('');

interface Transform {
  push(chunk: unknown): Promise<unknown>;
  end(): Promise<unknown>;
}

/** Error of a hook; fails without an error. */
async function failure(run: () => unknown): Promise<GatewayError> {
  try {
    await run();
  } catch (error) {
    expect(error).to.be.instanceOf(GatewayError);
    return error as GatewayError;
  }
  return expect.fail('it did not fail');
}

describe('hooks', () => {
  it('without handlers are undefined', () => {
    expect(Object.values(compile([])).every((hook) => hook === undefined)).to.equal(true);
    expect(Object.keys(compile([]))).to.have.members(Object.keys(HOOKS));
  });

  for (const [name, { direction }] of Object.entries(HOOKS) as [HookName, { direction: string }][]) {
    it(`of the kind ${name} run ${direction === 'in' ? 'in the order of the configuration' : 'in reverse'}`, async () => {
      const ran: string[] = [];
      const note = (owner: string) => () => void ran.push(owner);
      await compile([
        ['b', name, note('b')],
        ['last', name, { order: 'post', handler: note('last') }],
        ['a', name, note('a')],
        ['early', name, { order: 'pre', handler: note('early') }],
      ])[name]({}, {});
      const inward = ['early', 'b', 'a', 'last'];
      expect(ran).to.deep.equal(direction === 'in' ? inward : inward.toReversed());
    });
  }

  it('run for their operations only', () => {
    const hooks = [['a', 'admit', { operations: ['embeddings'], handler: () => undefined }]] as const;
    expect(compile(hooks, { operation: 'chat' }).admit).to.equal(undefined);
    expect(compile(hooks, { operation: 'embeddings' }).admit).to.be.a('function');
  });

  it('of the kind first stop at the first result', async () => {
    const response = { credential: 'key', userId: 'u', account: 'u' };
    const { authenticate } = compile([
      ['a', 'authenticate', () => undefined],
      ['b', 'authenticate', async () => response],
      ['c', 'authenticate', () => expect.fail('it was answered already')],
    ]);
    expect(await authenticate({})).to.equal(response);
    expect(await compile([['a', 'authenticate', () => undefined]]).authenticate({})).to.equal(undefined);
  });

  it('of the kind waterfall get the previous result, and keep it with undefined', async () => {
    const seen: unknown[] = [];
    const { prepare } = compile([
      ['a', 'prepare', (_call, request) => ({ ...(request as object), a: 1 })],
      ['b', 'prepare', (_call, request) => void seen.push(request)],
      ['c', 'prepare', async (_call, request) => ({ ...(request as object), c: 3 })],
    ]);
    expect(await prepare({}, { model: 'm' })).to.deep.equal({ model: 'm', a: 1, c: 3 });
    expect(seen).to.deep.equal([{ model: 'm', a: 1 }]);
  });

  it('of the kind sequence stop at a throw', async () => {
    const { admit } = compile([
      ['a', 'admit', () => Promise.reject(new GatewayError('rate_limited', 'No.'))],
      ['b', 'admit', () => expect.fail('the call was refused already')],
    ]);
    expect((await failure(() => admit({}))).code).to.equal('rate_limited');
  });

  it('of the kind observe all run, and an error is reported with its owner', async () => {
    const failed: string[] = [];
    const ran: string[] = [];
    const { finish } = compile(
      [
        ['a', 'finish', () => Promise.reject(new Error('books are closed'))],
        ['b', 'finish', () => void ran.push('b')],
        [
          'c',
          'finish',
          () => {
            throw new Error('c');
          },
        ],
      ],
      { onIgnored: (owner) => failed.push(owner) },
    );
    await new Promise<void>((resolve) => finish({}, {}, resolve));
    expect(ran).to.deep.equal(['b']);
    expect(failed).to.have.members(['a', 'c']);
  });

  it('of the kind transform hold a chunk back with an empty list, and later ones are not called', async () => {
    const { stream } = compile([
      ['outer', 'stream', () => ({ push: () => expect.fail('it was held back') })],
      ['inner', 'stream', () => ({ push: () => [] })],
    ]);
    const made = (await stream({})) as Transform;
    expect(await made.push(CHUNK)).to.deep.equal([]);
    expect(await made.end()).to.deep.equal([]);
  });

  it('of the kind transform pass held-back chunks through later ones, at the end', async () => {
    const { stream } = compile([
      ['outer', 'stream', () => ({ push: async (chunk: unknown) => [chunkOf(textOf([chunk]).toUpperCase())] })],
      [
        'inner',
        'stream',
        () => {
          const held: unknown[] = [];
          return {
            push(chunk: unknown) {
              held.push(chunk);
              return [];
            },
            end: () => held,
          };
        },
      ],
    ]);
    const made = (await stream({})) as Transform;
    expect(textOf(await made.push(chunkOf('a')))).to.equal('');
    expect(textOf(await made.push(chunkOf('b')))).to.equal('');
    expect(textOf(await made.end())).to.equal('AB');
  });

  it('of the kind transform are created for each call, and undefined lets its stream pass', async () => {
    let made = 0;
    const { stream } = compile([
      [
        'a',
        'stream',
        (call) => {
          if ((call as { skip?: boolean }).skip) return undefined;
          made += 1;
          return { push: (chunk: unknown) => [chunk] };
        },
      ],
    ]);
    expect(await stream({ skip: true })).to.equal(undefined);
    await stream({});
    await stream({});
    expect(made).to.equal(2);
  });

  const WRONG: readonly (readonly [name: HookName, returned: unknown])[] = [
    ['authenticate', 'somebody'],
    ['authenticate', null],
    ['route', 5],
    ['prepare', 5],
    ['prepare', null],
    ['send', 'request'],
    ['receive', true],
    ['error', 'oops'],
    ['stream', 'text'],
    ['prepare', {}],
    ['admit', false],
  ];
  for (const [name, returned] of WRONG) {
    it(`refuse ${String(returned)} (${typeof returned}) from ${name}, naming the plugin only in the log`, async () => {
      const hooks = compile([['bad-plugin', name, () => returned]]);
      const error = await failure(() => hooks[name]({}, {}));
      expect(error.code).to.equal('internal_error');
      expect(error.message).not.to.include('bad-plugin');
      expect(String(error.cause)).to.include('bad-plugin').and.include(name);
    });
  }

  it('that throw anything but a GatewayError are a bug of their plugin', async () => {
    const { admit } = compile([
      [
        'bad-plugin',
        'admit',
        () => {
          throw new TypeError('x of undefined');
        },
      ],
    ]);
    const error = await failure(() => admit({}));
    expect(error.code).to.equal('internal_error');
    expect(error.message).not.to.include('undefined');
    expect(String(error.cause)).to.include('x of undefined');
  });

  for (const returned of [undefined, {}, 'text', [{ a: 1 }], [null]])
    it(`of the kind transform whose push gives ${JSON.stringify(returned)} are a bug of their plugin`, async () => {
      const { stream } = compile([['bad-plugin', 'stream', () => ({ push: async () => returned })]]);
      const made = (await stream({})) as Transform;
      expect(String((await failure(() => made.push(CHUNK))).cause)).to.include('plugin "bad-plugin", hook "stream"');
    });

  it('of the kind transform whose push rejects later end the stream in an error, and no other', async () => {
    const stray: unknown[] = [];
    const note = (reason: unknown) => void stray.push(reason);
    process.on('unhandledRejection', note);
    try {
      const { stream } = compile([
        ['bad-plugin', 'stream', () => ({ push: () => Promise.reject(new Error('later')) })],
      ]);
      const made = (await stream({})) as Transform;
      expect((await failure(() => made.push(CHUNK))).code).to.equal('internal_error');
      await new Promise((resolve) => setImmediate(resolve));
      expect(stray).to.deep.equal([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });

  it('that never end are ended by their deadline', async () => {
    const { admit } = compile([['slow-plugin', 'admit', () => new Promise(() => {})]]);
    const ended = failure(() => admit({}));
    failLateSteps(performance.now() + HOOK_TIMEOUT_MS);
    expect(String((await ended).cause)).to.include(
      'plugin "slow-plugin", hook "admit": did not finish within 30000 ms',
    );
  });

  it('that are all synchronous return their result directly, without a promise', () => {
    const { admit, prepare, finish } = compile([
      ['a', 'admit', () => undefined],
      ['a', 'prepare', (_call, request) => ({ ...(request as object), seen: true })],
      ['a', 'finish', () => undefined],
    ]);
    expect(admit({})).to.equal(undefined);
    expect(prepare({}, { model: 'm' })).to.deep.equal({ model: 'm', seen: true });
    expect(finish({})).to.equal(undefined);
  });
});
