import { expect } from 'chai';
import { HOOKS, type HookName } from '../../contract/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, pluginFile, startProbe } from '../support/plugins/plugin-file.ts';

/** Wrong results that a plugin in JavaScript may return. */
const WRONG = ['{}', '{ a: 1 }', 'false'] as const;

const FIXED = 'A plugin of the gateway failed on this request. Search the gateway’s log for the request id.';

/** Hooks whose result is used; results of observing hooks are ignored. */
const COUNTING = (Object.keys(HOOKS) as HookName[]).filter(
  (name) => HOOKS[name].kind !== 'observe' && !['authenticate', 'arrive', 'error'].includes(name),
);

/** Plugin whose hooks return the result named in the request's `user`. */
const SETUP = COUNTING.map((name) =>
  WRONG.map(
    (result) =>
      `api.hook('${name}', (call) => call.request.user === ${JSON.stringify(`${name} ${result}`)} ? ${result.startsWith('{') ? `(${result})` : result} : undefined);`,
  ).join('\n'),
).join('\n');

describe('results of hooks are checked (D53)', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startProbe(SETUP);
  });
  after(() => gateway.stop());

  /** Log lines of one request with level error. */
  const errorsOf = (response: Response) =>
    gateway.logs.filter(
      ({ level, request_id }) => level === 'error' && request_id === response.headers.get('x-request-id'),
    );

  for (const name of COUNTING)
    for (const result of WRONG)
      for (const stream of name === 'stream' ? [true] : name === 'receive' ? [false] : [false, true])
        it(`${result} from ${name} is an error of its plugin, ${stream ? 'as a stream' : 'as a whole'}`, async () => {
          const response = await gateway.post(CHAT, chatOf('x', { stream, user: `${name} ${result}` }));
          const { error } = (await response.json()) as { error: { code: string; message: string } };
          expect(response.status).to.equal(500);
          expect(error).to.include({ code: 'internal_error', message: FIXED });
          const lines = errorsOf(response);
          expect(lines).to.have.lengthOf(1);
          expect(JSON.stringify(lines)).to.include(`plugin \\"probe\\", hook \\"${name}\\": returned `);
        });

  for (const result of WRONG) {
    it(`${result} from error is an error of its plugin`, async () => {
      const own = await startProbe(
        `api.hook('admit', () => { throw new GatewayError('rate_limited', 'No.'); }); api.hook('error', () => (${result}));`,
      );
      try {
        const response = await own.post(CHAT, chatOf('x'));
        expect(response.status).to.equal(500);
        expect(await response.text()).to.include(FIXED);
        expect(own.logText()).to.include('plugin \\"probe\\", hook \\"error\\": returned ');
      } finally {
        await own.stop();
      }
    });

    it(`${result} from arrive is an error of its plugin`, async () => {
      const own = await startProbe(`api.hook('arrive', ({ userId }) => userId && (${result}));`);
      try {
        expect((await own.post(CHAT, chatOf('x'))).status, 'of a small body nothing is asked').to.equal(200);
        const response = await own.post(CHAT, chatOf('x'.repeat(200_000)));
        expect(response.status).to.equal(500);
        expect(own.logText()).to.include('plugin \\"probe\\", hook \\"arrive\\": returned ');
      } finally {
        await own.stop();
      }
    });

    it(`${result} from authenticate is an error of its plugin`, async () => {
      const text = pluginFile({ kind: 'auth', setup: `api.hook('authenticate', () => (${result}));` });
      const own = await startGateway({ auth: { probe: { plugin: './probe.mjs' } } }, { files: { 'probe.mjs': text } });
      try {
        const response = await own.post(CHAT, chatOf('x'), { authorization: 'Bearer x' });
        expect(response.status).to.equal(500);
        expect(await response.text()).to.include(FIXED);
        expect(own.logText()).to.include('plugin \\"probe\\", hook \\"authenticate\\": returned ');
      } finally {
        await own.stop();
      }
    });

    it(`${result} from an observing hook is ignored`, async () => {
      const own = await startProbe(`for (const name of ['attempt', 'finish']) api.hook(name, () => (${result}));`);
      try {
        expect((await own.post(CHAT, chatOf('x'))).status).to.equal(200);
        expect(own.logs.filter(({ level }) => level === 'error')).to.deep.equal([]);
      } finally {
        await own.stop();
      }
    });
  }

  const ALMOST: readonly (readonly [title: string, name: HookName, body: string])[] = [
    ['a request that the schema refuses', 'prepare', `return { ...value, temperature: 'hot' };`],
    ['a stream of a whole', 'prepare', `return { ...value, stream: true };`],
    ['a response without choices', 'receive', `return { ...value, choices: undefined };`],
    ['a target without a model', 'route', `return [{ provider: 'echo' }];`],
    ['no target at all', 'route', 'return [];'],
    ['a path that is no path', 'send', `return { ...value, path: 'chat' };`],
    ['another body', 'send', `return { ...value, body: { model: 'other' } };`],
    ['a cost that is no number', 'answer', `return { ...RESULT, cost: '0.5' };`],
    ['a cost below nothing', 'answer', `return { ...RESULT, cost: -1 };`],
    ['headers that are no text', 'answer', `return { ...RESULT, headers: { 'x-a': 1 } };`],
  ];
  for (const [title, name, body] of ALMOST)
    it(`${title} from ${name} is an error of its plugin, and nothing is charged`, async () => {
      const reply = `const RESULT = { response: { id: 'x', choices: [{ message: {} }] } };`;
      const own = await startProbe(`${reply} api.hook('${name}', (call, value) => { ${body} });`);
      try {
        const response = await own.post(CHAT, chatOf('x'));
        expect(response.status).to.equal(500);
        expect(await response.text()).to.include(FIXED);
        expect(own.logText()).to.include(`plugin \\"probe\\", hook \\"${name}\\": returned an`);
      } finally {
        await own.stop();
      }
    });
});

/** Changes to the arguments of hooks, by hook. Strict mode makes each a TypeError. */
const CHANGES: readonly (readonly [what: string, name: HookName, change: string])[] = [
  ['the principal', 'admit', `call.principal.account = 'somebody'`],
  ['a list of the principal', 'admit', `call.principal.models.push('*')`],
  ['the call', 'admit', `call.principal = { userId: 'somebody' }`],
  ['the request', 'admit', `call.request.model = 'other'`],
  ['a message of the request', 'prepare', `value.messages[0].content = 'changed'`],
  ['the request in the call', 'prepare', `call.request = {}`],
  ['a target', 'route', `call.targets[0].model = 'other'`],
  ['the list of targets', 'reserve', `call.targets.push({ provider: 'echo', model: 'x' })`],
  ['the targets in the call', 'reserve', `call.targets = []`],
  ['the HTTP request', 'send', `value.path = '/other'`],
  ['the headers of the HTTP request', 'send', `value.body.model = 'other'`],
  ['the target of an attempt', 'send', `third.model = 'other'`],
  ['the response', 'receive', `value.model = 'other'`],
  ['a choice of the response', 'receive', `value.choices[0].message.content = 'changed'`],
];

describe('arguments of hooks cannot be changed (D53)', () => {
  const KEY_OF_TWO = `api.hook('authenticate', { order: 'pre', handler: () => ({ credential: 'key', userId: 'u', account: 'u', models: ['*'] }) });`;
  let gateway: TestGateway;
  before(async () => {
    const setup = [
      KEY_OF_TWO,
      ...CHANGES.map(
        ([what, name, change]) =>
          `api.hook('${name}', (call, value, third) => { if (call.request.user === ${JSON.stringify(what)}) ${change}; });`,
      ),
      `api.hook('stream', (call) => call.request.user === 'chunk' ? { push(chunk) { chunk.choices[0].delta.content = 'changed'; return [chunk]; } } : undefined);`,
      `api.hook('finish', (call, outcome) => { if (call.request.user === 'outcome') outcome.cost = 0; });`,
      `api.hook('finish', (call, outcome) => { if (call.request.user === 'usage') outcome.usage.prompt_tokens = 0; });`,
      `api.hook('attempt', (call, attempt) => { if (call.request.user === 'attempt') attempt.target.model = 'x'; });`,
    ].join('\n');
    gateway = await startProbe(setup, {}, {}, `permissions: ['credentials'],`);
  });
  after(() => gateway.stop());

  for (const [what, name, change] of CHANGES)
    it(`${what} cannot be changed in ${name} by ${change}`, async () => {
      const response = await gateway.post(CHAT, chatOf('x', { user: what }));
      expect(await response.text()).to.include(FIXED);
      expect(response.status).to.equal(500);
      const id = response.headers.get('x-request-id');
      const line = gateway.logs.find((each) => each['request_id'] === id && each['err']);
      const { message } = (line?.['err'] ?? {}) as { readonly message?: string };
      expect(message)
        .to.match(/Cannot (assign|add|set)|object is not extensible/)
        .and.include(`plugin "probe", hook "${name}": `);
    });

  it('a chunk cannot be changed in stream', async () => {
    const response = await gateway.post(CHAT, chatOf('x', { user: 'chunk', stream: true }));
    expect(await response.text())
      .to.include('internal_error')
      .and.not.include('changed');
    expect(gateway.logText()).to.match(/plugin \\"probe\\", hook \\"stream\\": Cannot assign to read only property/);
  });

  for (const what of ['outcome', 'usage', 'attempt'])
    it(`the ${what} cannot be changed by an observing hook: the call succeeds, and the log names the plugin`, async () => {
      const before = gateway.logs.length;
      expect((await gateway.post(CHAT, chatOf('x', { user: what }))).status).to.equal(200);
      const line = gateway.logs.slice(before).find(({ level }) => level === 'error');
      expect(line).to.include({ plugin: 'probe', hook: what === 'attempt' ? 'attempt' : 'finish' });
      expect(JSON.stringify(line)).to.include('Cannot');
    });
});
