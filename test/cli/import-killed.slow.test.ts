import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { startCli } from '../support/processes/cli.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { openStore, type StoreAddress } from '../support/stores/store-race.ts';
import { eventually } from '../support/wait.ts';

const ROWS = 60_000;
const SET = 'policies.test.people';

/** Export with many rows, so that its import takes a while. */
function exported(): string {
  const sums = { balance: '0', spent: '0', credited: '0' };
  const rows = Array.from({ length: ROWS }, (_, n) => ({ is: 'member', set: SET, member: `m${n}` }));
  const lines = [{ tollgate_export: 1, version: 'of a test', sums }, ...rows].map((row) => `${JSON.stringify(row)}\n`);
  const sha256 = createHash('sha256').update(lines.join('')).digest('hex');
  return `${lines.join('')}${JSON.stringify({ end: true, counts: { member: ROWS }, sums, sha256 })}\n`;
}

describeWith('an import that is killed', { postgres: POSTGRES, initdb: INITDB, redis: REDIS_SERVER }, () => {
  const folder = useTempFolder('import-killed');
  const servers: TestServer[] = [];
  const stores: Record<string, StoreAddress> = { sqlite: { kind: 'sqlite', folder: path.join(folder, 'data') } };
  before(async () => {
    servers.push(await startPostgresServer(), await startRedisServer());
    const [postgres, redis] = servers.map(({ url }) => url);
    stores['postgres'] = { kind: 'postgres', url: postgres ?? '' };
    stores['redis'] = { kind: 'redis', url: redis ?? '' };
    await writeFile(path.join(folder, 'moved'), exported());
  });
  after(async () => {
    for (const server of servers) await server.close();
  });

  for (const kind of ['sqlite', 'postgres', 'redis'])
    it(`leaves a ${kind} store that gateways and commands refuse, with the remedy (E50)`, async () => {
      const address = stores[kind] as StoreAddress;
      const config = path.join(folder, `${kind}.config.json`);
      const store = address.kind === 'sqlite' ? `sqlite:${address.folder}` : 'url' in address ? address.url : '';
      await writeFile(config, JSON.stringify({ server: { port: 0 }, store, providers: { echo: {} } }));
      const importing = startCli(['import', path.join(folder, 'moved'), '--config', config], folder);
      let opened: Awaited<ReturnType<typeof openStore>> | undefined;
      await eventually(async () => {
        opened ??= await openStore(address);
        expect(await opened.sets.size(SET)).to.be.greaterThan(0);
      });
      importing.child.kill('SIGKILL');
      await importing.finished;
      expect(await opened?.sets.size(SET)).to.be.lessThan(ROWS);
      await opened?.close();
      for (const words of [['start'], ['keys', 'list'], ['export', path.join(folder, `${kind}.out`)]]) {
        const { code, stderr } = await startCli([...words, '--config', config], folder).finished;
        expect(code, words[0]).to.not.equal(0);
        expect(stderr, words[0]).to.match(/An import into this store began on .* has not ended.*new, empty store/s);
      }
    }).timeout(240_000);
});
