import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';

/** Every documented form of `store:`, and the built-in plugin it selects. */
const FORMS: readonly (readonly [store: unknown, plugin: string])[] = [
  ['memory:', 'memory'],
  ['sqlite:./data', 'sqlite'],
  ['redis://user:secret@db:6379/1', 'redis'],
  ['rediss://db', 'redis'],
  [{ url: 'redis://db:6379', cluster: true }, 'redis'],
  ['postgres://user:secret@db/tollgate?sslmode=verify-full', 'postgres'],
  ['postgresql://db/tollgate', 'postgres'],
  [{ plugin: 'postgres', url: 'postgres://db/tollgate', connections: 4 }, 'postgres'],
];

describe('the store of a configuration', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-forms-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const load = async (store: unknown) => {
    const configPath = path.join(folder, 'tollgate.config.json');
    await writeFile(configPath, JSON.stringify({ store, providers: { echo: {} }, auth: { 'api-key': {} } }));
    return loadConfig({ cwd: folder, env: {}, configPath });
  };

  for (const [store, plugin] of FORMS) {
    it(`may be ${JSON.stringify(store)}`, async () => {
      expect((await load(store)).config.store.plugin).to.equal(plugin);
    });
  }

  it('may not be a URL of another kind than the named plugin', async () => {
    const message = await load({ plugin: 'redis', url: 'http://db:6379' }).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
    expect(message).to.include('store.url: must match ^rediss?://');
  });
});
