import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { Store } from '../../../../contract/index.ts';
import apiKey from '../../../../plugins/auth/api-key/index.ts';
import { readPeppers } from '../../../../plugins/auth/api-key/peppers.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { PEPPER, startKeys } from '../../../support/identity/keys.ts';
import { setUpPlugins } from '../../../support/plugins/fake-gateway.ts';

const OTHER_PEPPER = 'Zt5Rb8Nc4Hd6Jf1Gp0YsAqWeUiOpmK3v9Xq2Lw7T';
const run = promisify(execFile);

describe('the pepper of API keys', () => {
  let folder: string;
  let warnings: string[];
  const warn = (message: string) => void warnings.push(message);
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tollgate-pepper-'));
    warnings = [];
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('is made on first use, for its owner’s eyes only, and read ever after', async () => {
    const nested = join(folder, 'data', 'deep');
    const first = await readPeppers({}, nested, warn);
    const { mode } = await stat(join(nested, 'pepper'));
    expect(mode & 0o777).to.equal(0o600);
    expect((await readFile(join(nested, 'pepper'), 'utf8')).trim()).to.match(/^[\w-]{43}$/);
    expect((await readPeppers({}, nested, warn)).current.id).to.equal(first.current.id);
    expect(await readdir(nested)).to.deep.equal(['pepper']);
    expect(warnings).to.deep.equal([]);
  });

  it('is one for all processes that start at once', async () => {
    const module = join(import.meta.dirname, '../../../../plugins/auth/api-key/peppers.ts');
    const script = `const { readPeppers } = await import(${JSON.stringify(`file://${module}`)});
      const found = await Promise.all(Array.from({ length: 5 }, () => readPeppers({}, ${JSON.stringify(folder)}, () => {})));
      console.log(found.map(({ current }) => current.id).join());`;
    const args = ['--import', 'tsx', '--input-type=module', '-e', script];
    const outputs = await Promise.all([1, 2, 3].map(() => run(process.execPath, args)));
    const ids = outputs.flatMap(({ stdout }) => stdout.trim().split(','));
    expect(ids).to.have.lengthOf(15);
    expect(new Set(ids).size).to.equal(1);
    expect(await readdir(folder)).to.deep.equal(['pepper']);
  });

  it('stops the start when its file is damaged, and is not replaced', async () => {
    await writeFile(join(folder, 'pepper'), 'half', { mode: 0o600 });
    expect(await readPeppers({}, folder, warn).catch((error) => error.message)).to.match(/damaged.*Restore/);
    expect(await readFile(join(folder, 'pepper'), 'utf8')).to.equal('half');
  });

  it('stops the start when it can be neither read nor written', async () => {
    await writeFile(join(folder, 'file'), '');
    const error = await readPeppers({}, join(folder, 'file'), warn).catch((thrown) => thrown);
    expect(error.message).to.match(/cannot be (read|written)/);
  });

  it('warns when others on the machine can read it', async () => {
    await readPeppers({}, folder, warn);
    await chmod(join(folder, 'pepper'), 0o644);
    await readPeppers({}, folder, warn);
    expect(warnings.join()).to.match(/chmod 600/);
  });

  it('writes nothing when the configuration has one, or the store dies with the process', async () => {
    await readPeppers({ pepper: PEPPER }, folder, warn);
    await readPeppers({}, undefined, warn);
    expect(await readdir(folder)).to.deep.equal([]);
  });

  for (const pepper of ['', 'short', 'x'.repeat(40), 'change-me-please-change-me-please-x']) {
    it(`is refused when it is ${JSON.stringify(pepper.slice(0, 20))}`, async () => {
      const message = await readPeppers({ pepper }, folder, warn).catch((error) => error.message);
      expect(message).to.match(/^pepper .*openssl rand/);
    });
  }

  describe('of several gateways on one store', () => {
    const start = (store: Store, config: object) => startKeys(store, config);
    const failureOf = (promise: Promise<unknown>) =>
      promise.then(
        () => 'it started',
        (error: Error) => error.message,
      );

    it('has to be the same', async () => {
      const store = await openMemory();
      await start(store, { pepper: PEPPER });
      expect(await failureOf(start(store, { pepper: OTHER_PEPPER }))).to.match(
        /belong to another pepper.*same auth\.api-key\.pepper/,
      );
      expect(await failureOf(start(store, { pepper: PEPPER }))).to.equal('it started');
    });

    it('admits exactly one of two that start concurrently with different ones', async () => {
      const store = await openMemory();
      const outcomes = await Promise.all([PEPPER, OTHER_PEPPER].map((pepper) => failureOf(start(store, { pepper }))));
      expect(outcomes.filter((outcome) => outcome === 'it started')).to.have.lengthOf(1);
    });

    it('can be changed while keys under the old one go on working', async () => {
      const store = await openMemory();
      const old = await start(store, { pepper: PEPPER });
      const { out } = await old.run(['keys', 'create'], { user: 'ann' });
      const changed = await start(store, { pepper: OTHER_PEPPER, previousPeppers: [PEPPER] });
      expect(await changed.authenticate(out)).to.include({ userId: 'ann' });
      const fresh = (await changed.run(['keys', 'create'], { user: 'bob' })).out;
      expect(await changed.authenticate(fresh)).to.include({ userId: 'bob' });
      expect(await failureOf(start(store, { pepper: OTHER_PEPPER }))).to.match(/belong to another pepper/);
    });

    it('can be given up when it is lost, with the keys under it', async () => {
      const store = await openMemory();
      const { out } = await (await start(store, { pepper: PEPPER })).run(['keys', 'create'], { user: 'ann' });
      const config = { pepper: OTHER_PEPPER };
      const command = await setUpPlugins(store, [{ plugin: apiKey, config }]);
      expect(await codeOf(command.run(['keys', 'accept-pepper']))).to.equal('invalid_request');
      expect((await command.run(['keys', 'accept-pepper'], { yes: true })).json).to.deep.equal({ given_up: 1 });
      const gateway = await start(store, config);
      expect(await codeOf(gateway.authenticate(out))).to.equal('invalid_api_key');
    });
  });
});
