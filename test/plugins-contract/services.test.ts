import { expect } from 'chai';
import { definePlugin, type Plugin } from '../../contract/index.ts';
import { createGateway, type Gateway } from '../../core/gateway.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

interface Clock {
  hour(): string;
}

declare module '../../contract/call.ts' {
  interface Services {
    readonly clock: Clock;
    readonly bell: Clock;
  }
}

type PolicyPlugin = Plugin<object, 'policy'>;

const clock = definePlugin({
  name: 'clock',
  kind: 'policy',
  apiVersion: 1,
  provides: ['clock'],
  setup(api) {
    api.provide('clock', { hour: () => 'noon' });
    api.hook('admit', ({ headers }) => void headers.set('x-order', `${headers.get('x-order') ?? ''} clock`));
  },
});

/** Reports the service that it got from its required plugin. */
const teller = definePlugin({
  name: 'teller',
  kind: 'policy',
  apiVersion: 1,
  requires: ['clock'],
  setup(api) {
    const { hour } = api.require('clock');
    api.hook('admit', ({ headers }) => {
      headers.set('x-hour', hour());
      headers.set('x-order', `${headers.get('x-order') ?? ''} teller`);
    });
  },
});

const policy = (name: string, more: Partial<PolicyPlugin>): Plugin =>
  definePlugin({ name, kind: 'policy', apiVersion: 1, setup: () => undefined, ...more });

describe('plugins with dependencies', () => {
  let gateway: Gateway | undefined;
  const start = async (plugins: readonly Plugin[], policies: object = {}): Promise<Gateway> => {
    gateway = await createGateway({
      config: {
        ...{ providers: { echo: {} }, policies, auth: { 'api-key': { bootstrap: true } } },
        logging: { level: 'silent' },
      },
      ...{ plugins, listen: false, cwd: makeFolder(), env: {} },
    });
    return gateway;
  };
  const send = async ({ announcements, inject }: Gateway): Promise<Headers> => {
    const key = announcements.find(({ use }) => use === 'key')?.value;
    const response = await inject('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    expect(response.status).to.equal(200);
    return response.headers;
  };
  const fails = async (plugins: readonly Plugin[], policies: object = {}): Promise<string> => {
    const error = await start(plugins, policies).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error);
    return (error as Error).message;
  };

  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
    removeFolders();
  });

  it('get the services of others in any order of the configuration; hooks run in its order all the same', async () => {
    for (const policies of [
      { clock: {}, teller: {} },
      { teller: {}, clock: {} },
    ]) {
      const headers = await send(await start([clock, teller], policies));
      expect(headers.get('x-hour')).to.equal('noon');
      expect(headers.get('x-order')?.trim()).to.equal(Object.keys(policies).join(' '));
      await gateway?.close();
    }
  });

  it('are refused if no plugin provides the service, if two do, or for a cycle', async () => {
    expect(await fails([teller])).to.match(
      /policies\.teller: needs "clock", which no configured plugin provides\. Add that plugin/,
    );
    const second = policy('second', { provides: ['clock'] });
    expect(await fails([clock, second])).to.match(
      /policies\.second: provides "clock", which "clock" also provides\. Remove one/,
    );
    const [a, b] = [
      policy('a', { provides: ['clock'], requires: ['bell'] }),
      policy('b', { provides: ['bell'], requires: ['clock'] }),
    ];
    expect(await fails([a, b])).to.match(/has a cyclic dependency: "a" requires "b" requires "a"/);
  });

  it('are refused if the definition does not declare it, or declares it falsely', async () => {
    const silent = policy('silent', { setup: (api) => api.provide('clock', { hour: () => 'one' }) });
    expect(await fails([silent])).to.include(
      'plugin "silent": provides "clock", which its definition does not declare: provides: [\'clock\']',
    );
    const consumer = policy('asks', { setup: (api) => void api.require('clock') });
    expect(await fails([clock, consumer])).to.include(
      'plugin "asks": requires "clock", which its definition does not declare: requires: [\'clock\']',
    );
    expect(await fails([policy('idle', { provides: ['clock'] })])).to.include(
      'plugin "idle": declares that it provides "clock", but does not call api.provide()',
    );
  });

  it('are notified which one was disabled, if it is optional', async () => {
    const broken = policy('broken', {
      provides: ['clock'],
      setup: () => {
        throw new Error('no time');
      },
    });
    expect(await fails([broken, teller], { broken: { required: false }, teller: {} })).to.equal(
      'plugin "teller": needs "clock", which could not be set up. Left out: broken',
    );
    const without = await start([broken, teller], { broken: { required: false }, teller: { required: false } });
    expect((await send(without)).get('x-hour')).to.equal(null);
  });
});

describe('actions of a plugin beyond its declaration', () => {
  afterEach(removeFolders);

  const SECRET = 'sk-of-the-vendor-4711';
  const run = async (permissions: Plugin['permissions'], setup: PolicyPlugin['setup']): Promise<string> => {
    const plugin = definePlugin({
      name: 'probe',
      kind: 'policy',
      apiVersion: 1,
      permissions: permissions ?? [],
      setup,
    });
    try {
      const gateway = await createGateway({
        config: { providers: { echo: {}, openai: { apiKey: SECRET } }, logging: { level: 'silent' } },
        ...{ plugins: [plugin], listen: false, cwd: makeFolder(), env: {} },
      });
      await gateway.close();
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const uses: readonly (readonly [
    permission: 'ledger' | 'records' | 'operators' | 'credentials',
    what: string,
    setup: PolicyPlugin['setup'],
  ])[] = [
    ['ledger', 'api.books.ledger', (api) => void api.books.ledger],
    ['records', 'api.books.records', (api) => void api.books.records('users')],
    ['operators', 'api.operators', (api) => void api.operators.gateway],
    ['credentials', 'the hook "authenticate"', (api) => api.hook('authenticate', () => undefined)],
  ];
  for (const [permission, what, setup] of uses)
    it(`are refused with its name and the missing declaration: ${what}`, async () => {
      expect(await run([], setup)).to.include(
        `plugin "probe": uses ${what}, which its definition does not declare: permissions: ['${permission}']`,
      );
      expect(await run([permission], setup)).to.equal('');
    });

  it('refuse all data of users to a plugin without the permission for records', async () => {
    const look: PolicyPlugin['setup'] = (api) => void api.operators.allPersonalData();
    expect(await run(['operators'], look)).to.include(
      `uses api.operators.allPersonalData, which its definition does not declare: permissions: ['records']`,
    );
    expect(await run(['operators', 'records'], look)).to.equal('');
  });

  it('show vendors’ keys only to plugins that declare it', async () => {
    const seen: string[] = [];
    const look: PolicyPlugin['setup'] = (api) =>
      api.onReady(() => {
        const offer = api.models.offers('chat').get('openai');
        seen.push(JSON.stringify([offer?.credential, offer?.keys, offer?.headers, offer?.baseUrl]));
      });
    expect(await run([], look)).to.equal('');
    expect(await run(['credentials'], look)).to.equal('');
    expect(seen[0]).to.include('api.openai.com').and.not.include(SECRET);
    expect(seen[1]).to.include(SECRET);
  });

  it('are refused by api.fetch for an undeclared host', async () => {
    const fetches: PolicyPlugin['setup'] = (api) =>
      api.onReady(async () => void (await api.fetch('http://127.0.0.1:9/x')));
    expect(await run([], fetches)).to.include(
      "fetches from 127.0.0.1:9, but its definition declares no host: hosts: ['127.0.0.1:9'], or permissions: ['hosts']",
    );
    expect(await run(['hosts'], fetches)).to.include('fetch failed');
  });
});
