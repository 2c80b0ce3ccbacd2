import { expect } from 'chai';
import { importPlugin, listBuiltins } from '../../config/import-plugin.ts';
import type { Plugin } from '../../contract/index.ts';
import { dialectOptions } from '../support/formats/dialect-kits.ts';
import { partOfTests } from '../support/generated-cases.ts';
import { COPIES_VARIABLE, copyOf } from '../support/plugins/plugin-copies.ts';
import { testDialect } from './dialect.ts';

const builtins = listBuiltins();
const BUILT_IN = builtins.filter(({ kind }) => kind === 'dialect');
/** Folder with copies of the plugins outside the repository, if the copies are tested. */
const baseDir = process.env[COPIES_VARIABLE];

for (const [at, { name, url }] of BUILT_IN.entries()) {
  const spec = baseDir === undefined ? url : copyOf(baseDir, 'dialects', name);
  const plugin = await importPlugin(spec, { kind: 'dialect', builtins, baseDir: baseDir ?? '/' });
  testDialect({ plugin: plugin as Plugin<object, 'dialect'>, ...dialectOptions(name), runner: partOfTests(at) });
}

it('every built-in dialect passes what every dialect promises', () => {
  expect(BUILT_IN.map(({ name }) => name)).to.deep.equal([
    'chat',
    'completions',
    'gemini',
    'interactions',
    'messages',
    'ollama',
    'portkey',
    'responses',
  ]);
});
