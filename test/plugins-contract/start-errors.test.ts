import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { GatewayError } from '../../contract/index.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, type PluginText, pluginFile, startError, startProbe } from '../support/plugins/plugin-file.ts';

const SECTION: Readonly<Record<string, string>> = {
  ...{ policy: 'policies', provider: 'providers', auth: 'auth', operation: 'operations', dialect: 'dialects' },
};
const route = (members: string): string =>
  `api.route({ method: 'GET', path: '/x', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler() {}, ${members} });`;

/** Messages after `plugin "probe"`. */
const REFUSED: readonly (readonly [title: string, plugin: PluginText, message: RegExp])[] = [
  [
    'a hook of an unknown order',
    { setup: `api.hook('admit', { order: 'first', handler() {} });` },
    /hook "admit" has the invalid order "first"; use "pre", "post" or none/,
  ],
  [
    'a hook for an unknown operation',
    { setup: `api.hook('admit', { operations: ['chatt'], handler() {} });` },
    /hook "admit" is for the operation "chatt", which is not registered\. Did you mean "chat"\?/,
  ],
  ['a hook that is nothing', { setup: `api.hook('admit');` }, /hook "admit" has no function/],
  [
    'a provider plugin that registers none',
    { kind: 'provider', setup: '' },
    /is of kind "provider" and registers no provider/,
  ],
  ['an auth plugin without a check', { kind: 'auth', setup: '' }, /it has no "authenticate" hook/],
  ['an operation plugin without an operation', { kind: 'operation', setup: '' }, /registers no operation/],
  ['a dialect plugin without a dialect', { kind: 'dialect', setup: '' }, /registers no dialect/],
  ['a route without responses', { setup: route('responses: undefined') }, /route "GET \/x" has no responses/],
  ['a route whose responses are null', { setup: route('responses: null') }, /route "GET \/x" has no responses/],
  ['a route without auth', { setup: route('auth: undefined') }, /route "GET \/x" has no auth/],
  ['a route of an unknown method', { setup: route(`method: 'GRAB'`) }, /route "GRAB \/x" has no method of GET, POST/],
  [
    'a route whose body schema is not an object',
    { setup: route(`body: 'string'`) },
    /route "GET \/x" has a body schema that is not an object/,
  ],
  ['a shared schema that is not an object', { setup: `api.schema('string');` }, /a schema is not an object/],
  [
    'a shared schema without a name',
    { setup: `api.schema({ type: 'object' });` },
    /registers a schema \$id without a name/,
  ],
  [
    'a shared schema that is wrong',
    { setup: `api.schema({ $id: 'x', type: 'text' });` },
    /the schema "x" does not compile/,
  ],
  [
    'an operation whose request is no schema',
    { kind: 'operation', setup: `api.operation({ name: 'x', request: 'object' });` },
    /the request of the operation "x" is not an object/,
  ],
  [
    'an operation whose request schema is wrong',
    {
      kind: 'operation',
      setup: `api.operation({ name: 'x', request: { type: 'text' }, estimate() {}, attempt() {}, isResponse() {} });`,
    },
    /the request of "x" does not compile/,
  ],
  [
    'an unknown code of an error',
    { setup: `throw new GatewayError('teapot', 'Short and stout.');` },
    /setup failed: the error code "teapot" does not exist; docs\/http\.md lists all codes/,
  ],
  [
    'a command that it does not list',
    { setup: `api.command({ name: 'greet', summary: 'x', run() {} });` },
    /registers the command "greet", which its definition does not list: commands: \[\{ name: 'greet'/,
  ],
  [
    'what another kind registers',
    { setup: `api.provider({});` },
    /is of kind "policy" and registers a provider, which only plugins of kind provider may do/,
  ],
];

describe('an invalid registration stops the start (D55)', () => {
  for (const [title, plugin, message] of REFUSED)
    it(`${title} is refused, and the message names the plugin`, async () => {
      const { kind = 'policy' } = plugin;
      const config = {
        [SECTION[kind] ?? '']: { ...(kind === 'provider' && { echo: {} }), probe: { plugin: './probe.mjs' } },
      };
      const text = await startError(startGateway(config, { files: { 'probe.mjs': pluginFile(plugin) } }));
      expect(text)
        .to.match(/^plugin "probe": /)
        .and.match(message);
    });

  it('a hook for an operation that the configuration disables is accepted', async () => {
    const gateway = await startProbe(`api.hook('admit', { operations: ['embeddings'], handler() {} });`, {
      operations: { embeddings: false },
    });
    expect((await gateway.get('/livez')).status).to.equal(200);
    await gateway.stop();
  });

  it('an unknown code of an error on a call is a TypeError of its plugin, by name', async () => {
    expect(() => new GatewayError('teapot' as never, 'x')).to.throw(
      TypeError,
      'the error code "teapot" does not exist',
    );
    const gateway = await startProbe(`api.hook('admit', () => { throw new GatewayError('teapot', 'x'); });`);
    expect((await gateway.post(CHAT, chatOf('x'))).status).to.equal(500);
    expect(gateway.logText()).to.include(
      'plugin \\"probe\\", hook \\"admit\\": the error code \\"teapot\\" does not exist',
    );
    await gateway.stop();
  });

  it('an error of a newer copy of the package, whose code is unknown here, is an internal error', async () => {
    const gateway = await startProbe(
      `api.hook('admit', () => { const error = new GatewayError('rate_limited', 'x'); throw Object.create(Object.getPrototypeOf(error), { ...Object.getOwnPropertyDescriptors(error), code: { value: 'of_tomorrow' } }); });`,
    );
    const response = await gateway.post(CHAT, chatOf('x'));
    expect(response.status).to.equal(500);
    expect(await response.text()).to.include('internal_error');
    await gateway.stop();
  });
});

describe('missing requirements and problems of a plugin are reported before the start', () => {
  afterEach(removeFolders);
  /** Complete output of `tollgate check`. */
  const problemsOf = (plugin: PluginText, config: object = {}): Promise<string> => {
    const cwd = makeFolder({
      'probe.mjs': pluginFile(plugin),
      'tollgate.config.json': JSON.stringify({
        providers: { echo: {} },
        policies: { probe: { plugin: './probe.mjs', ...config } },
      }),
    });
    return loadConfig({ cwd, env: {} }).then(
      () => '',
      (error: Error) => error.message,
    );
  };
  const RUINED = `throw new Error('set up although it was only checked');`;

  it('a missing required plugin is named, by tollgate check too', async () => {
    expect(await problemsOf({ more: `requires: ['medical'],`, setup: RUINED })).to.match(
      /policies\.probe: needs "medical", which no configured plugin provides.*Add that plugin to the configuration/s,
    );
    expect(await problemsOf({ more: `requires: ['echo', 'accounts'],`, setup: RUINED })).to.equal('');
  });

  it('a plugin’s own check runs without its setup, and its problems have their places', async () => {
    const more = `
      configSchema: { type: 'object', properties: { ports: { type: 'array', items: { type: 'integer' } } } },
      check: ({ ports }, { baseDir, settings }) => ports.flatMap((port, at) => port === 9 ? [{ path: '/ports/' + at, message: 'is taken', hint: 'Choose another than ' + typeof baseDir + settings.billing + '.' }] : []),`;
    expect(await problemsOf({ more, setup: RUINED }, { ports: [8, 9] })).to.match(
      /tollgate\.config\.json:\d+:\d+ policies\.probe\.ports\[1\]: is taken.*Choose another than stringtrack/s,
    );
    expect(await problemsOf({ more, setup: RUINED }, { ports: [8] })).to.equal('');
  });

  for (const [title, check, message] of [
    ['throws', `() => { throw new Error('no such folder'); }`, /has a plugin whose check failed: no such folder/],
    ['returns no list', `() => 'all is well'`, /whose check does not return a list of problems/],
  ] as const)
    it(`a check that ${title} is an error of its plugin`, async () => {
      expect(await problemsOf({ more: `check: ${check},`, setup: RUINED })).to.match(message);
    });
});
