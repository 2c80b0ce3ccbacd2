import path from 'node:path';
import { expect } from 'chai';
import { listPlugins, orderHooks } from '../../cli/list-plugins.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
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
        policies: { guard: { plugin: './guard/guard.mjs' }, plain: { plugin: './plain.mjs' } },
      }),
      'package.json': '{"version":"9.9.9","license":"of-the-operator"}',
      'guard/guard.mjs': GUARD,
      'guard/package.json': '{"name":"guard","version":"1.2.3","license":"Apache-2.0"}',
      'plain.mjs': pluginFile({ name: 'plain', setup: `api.hook('admit', () => undefined);` }),
    });
    const { terminal, out } = captureTerminal();
    const config = path.join(folder, 'tollgate.config.json');
    await listPlugins({ terminal, globals: { config, json }, args: [], options: {} });
    return out();
  };

  it('E52: says where each comes from, what it registers, and where its hooks stand', async () => {
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
    expect(find('limits')).to.include({ source: 'built in', license: 'MIT' }).and.have.property('version');
  });

  it('E52: shows the order of hooks to people', async () => {
    const text = await run(false);
    expect(text).to.match(/^KIND +NAME +PLUGIN +SOURCE +VERSION +LICENCE/);
    expect(text).to.match(/^admit +limits, guard, plain$/m);
    expect(text).to.match(/^policy +accounts .*budgets.*$/m);
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
