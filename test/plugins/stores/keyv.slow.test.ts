import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { openKeyv } from '../../../plugins/stores/keyv/index.ts';
import { rejectsUnavailable, testStore } from '../../conformance/store.ts';
import { createSilentLog } from '../../support/log.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { REDIS_SERVER, startRedisServer } from '../../support/stores/redis-server.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../../fixtures/stores/${name}`, import.meta.url));
const baseDir = fileURLToPath(new URL('../../..', import.meta.url));

describe('keyv store', () => {
  testStore({
    name: 'keyv over an adapter from a file',
    open: () => openKeyv({ adapter: fixture('map-adapter.mjs'), baseDir, timeoutMs: 10_000 }),
  });

  it('reports at start that balances and limits are limited to this process', async () => {
    const log = createSilentLog();
    const store = await openKeyv({ adapter: fixture('map-adapter.mjs'), baseDir, log });
    await store.close();
    expect(log.lines.find(({ level }) => level === 'warn')?.message).to.match(
      /only in this process.*a restart loses them/,
    );
  });

  it('treats an error event of the adapter together with "absent" as an outage', async () => {
    const store = await openKeyv({ adapter: fixture('hiding-adapter.mjs'), baseDir });
    await rejectsUnavailable(store.keyv('keys').get('k'));
    await rejectsUnavailable(store.keyv('keys').set('k', 1));
    await rejectsUnavailable(store.keyv('keys').delete('k'));
    await store.close();
  });

  it('opens, refusing everything, when its server does not answer at all', async () => {
    const store = await openKeyv({ adapter: fixture('silent-adapter.mjs'), baseDir });
    await rejectsUnavailable(store.keyv('keys').get('k'));
    await rejectsUnavailable(store.health());
    await store.close();
  });

  for (const [adapter, options, why] of [
    ['no-such-keyv-adapter', undefined, /cannot be imported\. Install it with npm/],
    [fixture('../../support/setup.ts'), undefined, /no class as its default export/],
  ] as const) {
    it(`refuses the adapter ${adapter.split('/').at(-1)} with the reason`, async () => {
      let message = '';
      await openKeyv({ adapter, options, baseDir }).catch((error: Error) => {
        message = error.message;
      });
      expect(message).to.match(why);
    });
  }
});

describeWith('keyv store over a package from npm', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());

  testStore({
    name: 'keyv over @keyv/redis',
    open: () =>
      openKeyv({ adapter: '@keyv/redis', options: [server.url, { throwOnErrors: true }], baseDir, timeoutMs: 10_000 }),
  });
});
