// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import path from 'node:path';
import { expect } from 'chai';
import { openControl } from '../../cli/cluster/control.ts';
import { listPlugins, orderHooks } from '../../cli/list-plugins.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { createSilentLog } from '../support/log.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';

const GUARD = pluginFile({
  name: 'guard',
  more: `hosts: ['guard.example.com'], permissions: ['ledger'],`,
  setup: `api.hook('admit', { order: 'pre', handler: () => undefined }); api.hook('receive', () => undefined);
    api.route({ method: 'GET', path: '/guard', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = {}; } });`,
});

describe('tollgate plugins', () => {
  afterEach(removeFolders);

  const run = async (json: boolean): Promise<string> => {
    const folder = makeFolder({
      'tollgate.config.json': JSON.stringify({
        store: 'sqlite:./data',
        providers: { echo: {} },
        policies: {
          guard: { plugin: './guard/guard.mjs' },
          plain: { plugin: './plain.mjs', names: ['${GUARD_NAME:-x}', '$${NOT_READ}', '${file:package.json}'] },
          acme: { plugin: 'tollgate-plugin-acme' },
        },
      }),
      'package.json': '{"version":"9.9.9","license":"of-the-operator"}',
      'guard/guard.mjs': GUARD,
      'guard/package.json': '{"name":"guard","version":"1.2.3","license":"Apache-2.0"}',
      'plain.mjs': pluginFile({ name: 'plain', setup: `api.hook('admit', () => undefined);` }),
      'node_modules/tollgate-plugin-acme/package.json':
        '{"name":"tollgate-plugin-acme","version":"2.0.0","license":"MIT","exports":"./index.mjs"}',
      'node_modules/tollgate-plugin-acme/index.mjs': pluginFile({ name: 'acme', setup: '' }),
      'node_modules/.package-lock.json': JSON.stringify({
        packages: {
          'node_modules/tollgate-plugin-acme': { resolved: 'https://registry.example/acme.tgz', integrity: 'sha512-x' },
        },
      }),
    });
    const { terminal, out } = captureTerminal();
    const config = path.join(folder, 'tollgate.config.json');
    await listPlugins({ terminal, globals: { config, json }, args: [], options: {} });
    return out();
  };

  it('E52: shows the source, registrations and hook order of each', async () => {
    const { data } = JSON.parse(await run(true)) as { data: readonly Readonly<Record<string, unknown>>[] };
    const find = (name: string) => data.find((row) => row['name'] === name) ?? {};
    const { hooks, ...guard } = find('guard');
    expect(guard).to.deep.include({
      ...{ kind: 'policy', plugin: './guard/guard.mjs', source: 'yours', version: '1.2.3', license: 'Apache-2.0' },
      ...{ routes: ['GET /guard'], hosts: ['guard.example.com'], permissions: ['ledger'] },
    });
    const [admit] = hooks as readonly object[];
    expect(admit).to.deep.equal({ hook: 'admit', position: 2, of: 3 });
    expect(find('plain')).to.not.have.any.keys('version', 'license');
    expect(find('plain')).to.deep.include({ environment: ['GUARD_NAME'], provenance: 'file on this machine' });
    expect(find('acme')).to.include({ version: '2.0.0', provenance: 'https://registry.example/acme.tgz sha512-x' });
    expect(find('limits')).to.include({ source: 'built in', license: 'MIT' }).and.have.property('version');
  });

  it('E52: shows the order of hooks to people', async () => {
    const text = await run(false);
    expect(text).to.match(/^KIND +NAME +PLUGIN +SOURCE +VERSION +LICENCE/);
    expect(text).to.match(/^admit +limits, guard, plain$/m);
    expect(text).to.match(/^policy +accounts .*budgets.*$/m);
    expect(text).to.include('Hook durations are shown only while a gateway of this configuration runs.');
  });

  it('shows the hook statistics of each plugin in the running gateway', async () => {
    const gateway = await startGateway(
      { policies: { guard: { plugin: './guard.mjs' } } },
      { files: { 'guard.mjs': pluginFile({ name: 'guard', setup: `api.hook('admit', async () => undefined);` }) } },
    );
    const { processStates, routing } = gateway;
    const reloader = { reload: () => Promise.reject(new Error()), compare: () => Promise.reject(new Error()) };
    const data = path.join(gateway.folder, 'data');
    const close = await openControl(data, { reloader, routing, processStates }, createSilentLog());
    try {
      const body = { model: 'echo/echo', messages: [{ role: 'user', content: 'x' }] };
      for (const _ of [1, 2]) expect(await gateway.post('/v1/chat/completions', body)).to.have.property('status', 200);
      const { terminal, out } = captureTerminal();
      const config = path.join(gateway.folder, 'tollgate.config.json');
      await listPlugins({ terminal, globals: { config, json: true }, args: [], options: {} });
      const { data: rows } = JSON.parse(out()) as { data: readonly { name: string; hook_counts: readonly object[] }[] };
      const [admit] = rows.find(({ name }) => name === 'guard')?.hook_counts ?? [];
      expect(admit).to.include({ hook: 'admit', calls: 2, failures: 0 }).and.have.property('seconds');
    } finally {
      close();
      await gateway.stop();
    }
  });

  it('reverses hooks on the way out, and puts pre and post outside of all others', () => {
    const plugin = (name: string, ...hooks: readonly string[]) => ({ name, hooks });
    const reports = [
      plugin('a', 'admit', 'receive'),
      plugin('b', 'admit (post)'),
      plugin('c', 'admit (pre)', 'receive'),
    ];
    expect(orderHooks(reports)).to.deep.equal([
      { hook: 'admit', plugins: ['c', 'a', 'b'] },
      { hook: 'receive', plugins: ['c', 'a'] },
    ]);
  });
});
