import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { createGateway } from '../../core/app.ts';
import { probeStore } from '../../core/plugins/foundation.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { createSilentLog } from '../support/log.ts';
import { startPostgresServer } from '../support/stores/postgres-server.ts';
import { startRedisServer } from '../support/stores/redis-server.ts';

const log = createSilentLog();

async function load(folder: string) {
  return loadConfig({ cwd: folder, env: { HOME: folder } });
}

/** Result of a probe of the configured store. */
async function probe(folder: string): Promise<string> {
  return probeStore(await load(folder), log).then(String, (error: Error) => error.message);
}

/** Runs a gateway once, which creates its store. */
async function startOnce(folder: string): Promise<void> {
  const gateway = await createGateway({ cwd: folder, env: { HOME: folder }, log, port: 0 });
  await gateway.close();
}

describe('a probe of the store', () => {
  afterEach(removeFolders);

  it('of a missing folder does not create it, and reports the schema once a gateway has run', async () => {
    const folder = makeFolder({ 'tollgate.config.yaml': 'store: sqlite:./data\n' });
    expect(await probe(folder)).to.equal(`a new file ${path.join(folder, 'data', 'tollgate.db')}`);
    expect(existsSync(path.join(folder, 'data'))).to.equal(false);
    await startOnce(folder);
    expect(await probe(folder)).to.match(/^schema \d+$/);
  });

  it('of a file that is not a database reports that, and leaves it unchanged', async () => {
    const folder = makeFolder({
      'tollgate.config.yaml': 'store: sqlite:./data\n',
      'data/tollgate.db': 'x'.repeat(5000),
    });
    expect(await probe(folder)).to.include('sqlite store');
    expect(readdirSync(path.join(folder, 'data'))).to.deep.equal(['tollgate.db']);
  });

  it('of a Redis reports an empty one, a schema, or a refusal', async () => {
    const redis = await startRedisServer();
    const folder = makeFolder({ 'tollgate.config.yaml': `store: ${redis.url}\n` });
    expect(await probe(folder)).to.equal('no keys of a gateway yet');
    expect(await probe(folder)).to.equal('no keys of a gateway yet');
    await startOnce(folder);
    expect(await probe(folder)).to.match(/^schema \d+$/);
    await redis.close();
    expect(await probe(folder)).to.include('does not respond');
  });

  it('of a Postgres reports an empty one, a schema, or a refusal', async () => {
    const postgres = await startPostgresServer();
    const folder = makeFolder({ 'tollgate.config.yaml': `store: ${postgres.url}\n` });
    expect(await probe(folder)).to.equal('no schema of a gateway yet');
    await startOnce(folder);
    expect(await probe(folder)).to.match(/^schema \d+$/);
    await postgres.close();
    expect(await probe(folder)).to.include('does not respond');
  });
});
