import { expect } from 'chai';
import { countWorkers } from '../../cli/cluster/cluster.ts';
import { loadConfig } from '../../config/load-config.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

describe('the number of workers', () => {
  afterEach(removeFolders);

  const count = async (workers: number, store: unknown): Promise<number> => {
    const config = { server: { workers }, store, providers: { echo: {} } };
    const cwd = makeFolder({ 'tollgate.config.json': JSON.stringify(config), 'own.mjs': OWN });
    return countWorkers(await loadConfig({ cwd, env: {} }));
  };
  const OWN = "export default { name: 'own', kind: 'store', apiVersion: 1, setup() {} };\n";

  for (const store of ['sqlite:./data', 'redis://h', 'postgres://h/db', { plugin: './own.mjs' }]) {
    it(`is the configured one on the store ${JSON.stringify(store)}`, async () => {
      expect(await count(3, store)).to.equal(3);
    });
  }

  for (const store of ['memory:', { adapter: '@keyv/mongo' }]) {
    it(`is one on the store ${JSON.stringify(store)}, which lives in one process`, async () => {
      expect(await count(1, store)).to.equal(1);
      const refused = await count(2, store).catch((error: Error) => error.message);
      expect(refused).to.match(/server\.workers is 2, and the store "\w+" is limited to one process/);
    });
  }
});
