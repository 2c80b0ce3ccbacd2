import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { folderOf, install, programsOf, runProgram } from '../clients/install.ts';
import { useTempFolder } from '../support/folders.ts';

/** Last version for Node 20. */
const VITEST = 'vitest@4.1.12';
const TEMPLATES = path.join(PACKAGE_ROOT, 'examples/plugins');
const KINDS = readdirSync(TEMPLATES).filter((kind) => kind !== 'common');

/** Plugin that must fail the kit. */
const LOUD = `import * as runner from 'vitest';
import { definePlugin } from 'tollgate';
import { testPlugin } from 'tollgate/conformance';
const loud = definePlugin({ name: 'loud', kind: 'policy', apiVersion: 1, setup: () => console.log('here I am') });
testPlugin({ plugin: loud, runner });
`;

/** Maps the entries of this package to their sources. */
function aliases(): Readonly<Record<string, string>> {
  const { exports } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  };
  const entries = Object.entries(exports).flatMap(([name, target]) =>
    typeof target === 'string'
      ? []
      : [[`tollgate${name.slice(1)}`, target.default.replace('./dist/', `${PACKAGE_ROOT}/`).replace('.js', '.ts')]],
  );
  return Object.fromEntries(entries) as Readonly<Record<string, string>>;
}

describe('the kits under vitest, without globals', () => {
  const folder = useTempFolder('vitest');

  before(async () => {
    expect(await install('vitest', [VITEST])).to.equal(undefined);
    symlinkSync(path.join(folderOf('vitest'), 'node_modules'), path.join(folder, 'node_modules'));
    for (const kind of KINDS) {
      cpSync(path.join(TEMPLATES, kind), path.join(folder, kind), { recursive: true });
      const file = path.join(folder, kind, 'test/plugin.test.ts');
      const text = readFileSync(file, 'utf8');
      const own = text.replace("'node:test'", "'vitest'").replaceAll('../../test/', './');
      writeFileSync(file, own.replace('runner.after(', 'runner.afterAll('));
    }
    mkdirSync(path.join(folder, 'loud/test'), { recursive: true });
    writeFileSync(path.join(folder, 'loud/test/plugin.test.ts'), LOUD);
    const alias = Object.entries(aliases()).map(([name, file]) => ({ find: `^${name}$`, replacement: file }));
    writeFileSync(
      path.join(folder, 'vitest.config.mjs'),
      `export default {
  resolve: { alias: ${JSON.stringify(alias)}.map(({ find, replacement }) => ({ find: new RegExp(find), replacement })) },
  test: { globals: false, include: ['*/test/plugin.test.ts'], maxWorkers: 1, testTimeout: 60_000 },
};
`,
    );
  });

  it('run for every kind, and fail for a defective plugin', async function () {
    this.timeout(600_000);
    const program = [path.join(programsOf('vitest'), 'vitest'), 'run', '--reporter=json'];
    const { stdout, stderr } = await runProgram(program, { cwd: folder, env: process.env, withinMs: 540_000 });
    const { testResults } = JSON.parse(stdout.slice(stdout.indexOf('{"num'))) as {
      readonly testResults: readonly {
        readonly name: string;
        readonly message: string;
        readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
      }[];
    };
    const byKind = new Map(testResults.map((result) => [path.basename(path.resolve(result.name, '../..')), result]));
    expect([...byKind.keys()], stderr).to.have.members([...KINDS, 'loud']);
    for (const [kind, { assertionResults, message }] of byKind) {
      const failed = assertionResults.filter(({ status }) => status !== 'passed').map(({ title }) => title);
      const expected = kind === 'loud' ? ['writes nothing to the console, and reads no environment variable'] : [];
      expect(failed, `${kind}: ${message}`).to.deep.equal(expected);
      expect(assertionResults.length, `${kind}: ${message}`).to.be.greaterThan(6);
    }
  });
});
