import path from 'node:path';
import { expect } from 'chai';
import { listPlugins } from '../../cli/list-plugins.ts';
import { loadConfig } from '../../config/load-config.ts';
import { VERSION } from '../../config/package-root.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, pluginFile, routeText, startError } from '../support/plugins/plugin-file.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';

const BROKEN = pluginFile({
  name: 'broken',
  setup: `${routeText('/broken', `ctx.body = {};`)}
    api.hook('admit', () => { throw new Error('it ran'); });
    api.onClose(() => api.log.info({}, 'broken was closed'));
    throw new Error('no /secret/folder');`,
});

/** Plugin sources that fail, by cause. */
const FAILING: Readonly<Record<string, string>> = {
  'a set-up that throws': BROKEN,
  'a file that does not parse': 'export default {',
  'no plugin': 'export default 5;',
  'another contract': pluginFile({ setup: '' }).replace('apiVersion: 1', 'apiVersion: 0'),
  'a hook that does not exist': pluginFile({ setup: `api.hook('prepair', () => undefined);` }),
  'what another plugin has': pluginFile({
    setup: `api.route({ method: 'GET', path: '/livez', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler() {} });`,
  }),
  'an invalid schema': pluginFile({
    setup: `api.route({ method: 'POST', path: '/x', summary: 'x', auth: 'none', body: { type: 'nonsense' }, responses: { 200: 'x' }, handler() {} });`,
  }),
  'what is refused once all are there': pluginFile({ setup: `api.onRegistered(() => { throw new Error('no') });` }),
  'a beginning that fails': pluginFile({
    setup: `api.hook('admit', () => { throw new Error('it ran'); }); api.onReady(() => Promise.reject(new Error('no')));`,
  }),
  'a check that throws': pluginFile({ more: `check() { throw new Error('no'); },`, setup: `throw new Error('no');` }),
};

describe('E66: an optional plugin', () => {
  let gateway: TestGateway | undefined;
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  const start = (text: string, required: boolean, more: object = {}) =>
    startGateway(
      { policies: { broken: { plugin: './broken.mjs', required } }, ...more },
      { files: { 'broken.mjs': text } },
    );
  const checks = async (): Promise<Readonly<Record<string, string>>> => {
    const response = await fetch(`${gateway?.url}/readyz`);
    expect(response.status).to.equal(200);
    return ((await response.json()) as { readonly checks: Readonly<Record<string, string>> }).checks;
  };

  for (const [what, text] of Object.entries(FAILING))
    it(`is omitted for ${what}: the gateway serves, and reports it`, async () => {
      gateway = await start(text, false);
      for (const stream of [false, true])
        expect((await gateway.post(CHAT, chatOf('Hi', { stream }))).status).to.equal(200);
      expect((await checks())['plugins']).to.equal(
        'broken: could not be set up and is not loaded; the log has the reason',
      );
      expect(
        gateway.logs.filter(({ plugin, msg }) => plugin === 'broken' && /is not loaded/.test(String(msg))),
      ).to.have.length(1);
    });

  it('stops the start unless it is configured as optional', async () => {
    expect(await startError(start(BROKEN, true))).to.match(
      /^plugin "broken": setup failed: no \/secret\/folder \(broken\.mjs:5:\d+\)$/,
    );
  });

  it('leaves no registrations, and is closed', async () => {
    gateway = await start(BROKEN, false);
    expect((await gateway.post('/broken', {})).status).to.equal(404);
    expect(gateway.logText()).to.include('broken was closed');
  });

  it('does not hide an error in its options', async () => {
    const text = pluginFile({
      more: `configSchema: { type: 'object', properties: { level: { type: 'integer' } } },`,
      setup: '',
    });
    const wrong = { policies: { broken: { plugin: './broken.mjs', required: false, level: 'x' } } };
    expect(await startError(start(text, false, wrong))).to.include('policies.broken.level');
  });

  it('disables its dependents too, and stops the start if one of them is required', async () => {
    const needing = (required: boolean) =>
      startGateway(
        {
          policies: {
            broken: { plugin: './broken.mjs', required: false },
            needing: { plugin: './needing.mjs', required },
          },
        },
        {
          files: {
            'broken.mjs': BROKEN,
            'needing.mjs': pluginFile({ name: 'needing', more: `requires: ['broken'],`, setup: '' }),
          },
        },
      );
    expect(await startError(needing(true))).to.equal(
      'plugin "needing": needs "broken", which could not be set up. Left out: broken',
    );
    gateway = await needing(false);
    expect((await checks())['plugins']).to.match(/^broken: .*; needing: /);
  });

  it('may be a provider: the next target of an alias serves', async () => {
    gateway = await startGateway({
      providers: { echo: {}, gone: { plugin: 'tollgate-plugin-gone', required: false, apiKey: 'x' } },
      models: { fast: ['gone/a', 'echo/echo'] },
    });
    const response = await gateway.post(CHAT, chatOf('Hi', { model: 'fast' }));
    expect(response.status, await response.clone().text()).to.equal(200);
  });

  it('is named with the reason by `tollgate plugins` and among the plugins of operators', async () => {
    gateway = await start(BROKEN, false);
    const { terminal, out } = captureTerminal();
    const config = path.join(gateway.folder, 'tollgate.config.json');
    await listPlugins({ terminal, globals: { config, json: false }, args: [], options: {} });
    expect(out()).to.include('broken is not loaded: plugin "broken": setup failed: no /secret/folder');
  });
});

describe('E66: a package with version requirements', () => {
  afterEach(removeFolders);

  const PACKAGE = 'node_modules/tollgate-plugin-acme';
  const start = (manifest: object) => {
    const folder = makeFolder({
      'tollgate.config.json': JSON.stringify({
        store: 'memory:',
        providers: { echo: {} },
        policies: { acme: { plugin: 'tollgate-plugin-acme' } },
      }),
      [`${PACKAGE}/package.json`]: JSON.stringify({
        name: 'tollgate-plugin-acme',
        exports: './index.mjs',
        ...manifest,
      }),
      [`${PACKAGE}/index.mjs`]: `export default { name: 'acme', kind: 'policy', apiVersion: 1, setup() {} };`,
    });
    return loadConfig({ cwd: folder, env: {}, configPath: undefined });
  };
  const messageOf = (manifest: object): Promise<string> =>
    start(manifest).then(
      () => 'loaded',
      (error: Error) => error.message,
    );

  it('is refused for another Tollgate or another Node, with the remedy', async () => {
    expect(await messageOf({ peerDependencies: { tollgate: '^7.1.0' } })).to.include(
      `policies.acme: the plugin "tollgate-plugin-acme" requires Tollgate ^7.1.0, but this is ${VERSION}. Install a plugin version for Tollgate ${VERSION}, or the Tollgate version that it requires.`,
    );
    expect(await messageOf({ engines: { tollgate: '>=9' } })).to.include('requires Tollgate >=9');
    expect(await messageOf({ engines: { node: '<18' } })).to.include(
      `requires Node.js <18, but this is ${process.versions.node}. Install a plugin version for Node.js`,
    );
  });

  it('is accepted if it matches, or has no comparable requirement', async () => {
    const fitting = [
      {},
      { peerDependencies: { tollgate: `^${VERSION}` }, engines: { node: '>=20' } },
      { peerDependencies: { tollgate: '*' } },
      { peerDependencies: { tollgate: '>=0.0.1 <1 || ^2' } },
      { peerDependencies: { tollgate: 'workspace:*' }, engines: 'node' },
      { peerDependencies: { tollgate: 5 }, engines: { node: 'lts' } },
    ];
    for (const manifest of fitting) expect(await messageOf(manifest), JSON.stringify(manifest)).to.equal('loaded');
  });
});
