import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { trySetUp } from '../../cli/check-config.ts';
import { listBuiltins } from '../../config/import-plugin.ts';
import { loadConfig } from '../../config/load-config.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { createSilentLog } from '../support/log.ts';

const FOLDER = new URL('../../examples/guardrails/', import.meta.url);
const GUARDRAILS = listBuiltins()
  .filter(({ isOptIn }) => isOptIn)
  .map(({ name }) => name);

describe('examples of guardrails', () => {
  afterEach(removeFolders);

  it('are there for each, and for nothing else', () => {
    expect(readdirSync(FOLDER)).to.have.members(GUARDRAILS.map((name) => `${name}.yaml`));
  });

  for (const name of GUARDRAILS)
    it(`has ${name} in ten lines that a start takes`, async () => {
      const text = readFileSync(new URL(`${name}.yaml`, FOLDER), 'utf8');
      const [what = '', ...lines] = text.trimEnd().split('\n');
      expect(what).to.match(/^# .*\.$/);
      expect(lines.length).to.be.at.most(10);
      const env = { OPENAI_API_KEY: 'sk-of-the-test', GUARD_TOKEN: 'of-the-test' };
      const loaded = await loadConfig({
        cwd: makeFolder({ 'tollgate.config.yaml': `store: 'memory:'\n${text}` }),
        env,
      });
      expect(loaded.config.instances.some(({ plugin, kind }) => kind === 'policy' && plugin === name)).to.equal(true);
      await trySetUp(loaded, createSilentLog());
    });
});
