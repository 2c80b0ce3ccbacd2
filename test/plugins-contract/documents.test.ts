import { expect } from 'chai';
import type { TestGateway } from '../support/gateways/gateway.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { pluginFile, routeText, startError, startProbe } from '../support/plugins/plugin-file.ts';

/** Plugin with documents, counters and sets under names that other plugins use too. */
const keeper = (name: string, kind: string, route: string): string =>
  pluginFile({
    name,
    kind,
    setup: `
      ${kind === 'provider' || kind === 'tts' ? `api.offer('chat', { specVersion: 1, vendor: 'x', baseUrl: 'http://127.0.0.1:9', models: [{ id: 'm' }], error: () => ({ class: 'upstream_error', message: '' }) });` : ''}
      const documents = api.keyv('things');
      ${routeText(
        `/${route}/put`,
        `await documents.set('it', '${route}'); await api.stores.sets.add('all', '${route}'); await api.stores.counters.next('n', 5); ctx.body = {};`,
      )}
      ${routeText(
        `/${route}/get`,
        `ctx.body = { it: await documents.get('it') ?? null, all: await api.stores.sets.list('all', { limit: 9 }), n: await api.stores.counters.next('n', 0) };`,
      )}`,
  });

async function send(gateway: TestGateway, path: string): Promise<unknown> {
  const response = await gateway.post(path, undefined);
  expect(response.status, await response.clone().text()).to.equal(200);
  return response.json();
}

describe('documents, sets and counters are the instance’s own (D50)', () => {
  let gateway: TestGateway | undefined;
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  it('a policy with the documents "keys" sees and changes no API key record', async () => {
    gateway = await startProbe(`
      const keys = api.keyv('keys');
      ${routeText(
        '/look',
        `const found = [];
         const id = ctx.state.principal.keyId;
         for (const name of [id, 'id:' + id, 'key:' + id]) found.push(await keys.get(name) ?? null);
         for await (const [name] of keys.iterator?.() ?? []) found.push(name);
         await keys.set(id, { owner: 'somebody else', userId: 'somebody else' });
         ctx.body = found;`,
        `['key']`,
      )}`);
    expect(await send(gateway, '/look')).to.deep.equal([null, null, null]);
    expect((await gateway.get('/v1/models')).status).to.equal(200);
    expect(await (await gateway.get('/api/core/balance')).json()).to.include({ user_id: 'local' });
  });

  const PAIRS: readonly (readonly [title: string, config: object, files: Readonly<Record<string, string>>])[] = [
    [
      'two instances of one plugin',
      { policies: { overload: false, a: { plugin: './a.mjs' }, b: { plugin: './b.mjs' } } },
      { 'a.mjs': keeper('same', 'policy', 'a'), 'b.mjs': keeper('same', 'policy', 'b') },
    ],
    [
      'a provider and a policy of one name',
      { providers: { echo: {}, acme: { plugin: './a.mjs' } }, policies: { acme: { plugin: './b.mjs' } } },
      { 'a.mjs': keeper('acme', 'provider', 'a'), 'b.mjs': keeper('acme', 'policy', 'b') },
    ],
    [
      'two instances whose names and sets would meet at a dot',
      { policies: { acme: { plugin: './a.mjs' }, 'acme.all': { plugin: './b.mjs' } } },
      {
        'a.mjs': keeper('a', 'policy', 'a').replaceAll(`'all'`, `'all.x'`),
        'b.mjs': keeper('b', 'policy', 'b').replaceAll(`'all'`, `'x'`),
      },
    ],
  ];
  for (const [title, config, files] of PAIRS)
    it(`${title} do not see each other's, whatever names they use`, async () => {
      gateway = await startGateway({ ...config }, { files });
      await send(gateway, '/a/put');
      expect(await send(gateway, '/b/get')).to.deep.equal({ it: null, all: [], n: 0 });
      await send(gateway, '/b/put');
      expect(await send(gateway, '/a/get')).to.deep.equal({ it: 'a', all: ['a'], n: 5 });
    });

  it('a shared name has one owner, and others read it', async () => {
    const owner = pluginFile({
      name: 'owner',
      setup: `const own = api.stores.share('settings'); api.onReady(() => own.set('colour', 'blue'));`,
    });
    const reader = `
      const settings = api.stores.shared('settings');
      const nobodys = api.stores.shared('nothing');
      ${routeText('/read', `ctx.body = { members: Object.keys(settings), colour: await settings.get('colour'), none: await nobodys.get('x') ?? null };`)}`;
    gateway = await startProbe(
      reader,
      { policies: { owner: { plugin: './owner.mjs' } } },
      { files: { 'owner.mjs': owner } },
    );
    expect(await send(gateway, '/read')).to.deep.equal({ members: ['get'], colour: 'blue', none: null });
  });

  it('a second owner of a shared name stops the start, naming both', async () => {
    const message = await startError(
      startProbe(
        `api.stores.share('settings');`,
        { policies: { owner: { plugin: './owner.mjs' } } },
        { files: { 'owner.mjs': pluginFile({ name: 'owner', setup: `api.stores.share('settings');` }) } },
      ),
    );
    expect(message).to.match(
      /plugin "probe": plugin_conflict: shared name "settings" is already registered by plugin "owner"/,
    );
  });
});
