import { expect } from 'chai';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { runCli } from '../support/processes/cli.ts';

const plugin = (setup: string, before = ''): string =>
  `${before}\nexport default { name: 'quit', kind: 'policy', apiVersion: 1,\n  async setup(api) { ${setup} } };\n`;

const CONFIG = `store: 'memory:'\nproviders: { echo: {} }\npolicies: { quit: { plugin: ./quit.mjs } }\n`;
const AS_PACKAGE = CONFIG.replace('./quit.mjs', 'tollgate-plugin-quit');

describe('G64: a plugin that ends the process', () => {
  afterEach(removeFolders);

  const folderOf = (text: string) => makeFolder({ 'tollgate.config.yaml': CONFIG, 'quit.mjs': text });

  for (const [when, text, line] of [
    ['while it is set up', plugin('process.exit(0);'), 3],
    [
      'after a pause of its set-up',
      plugin('await new Promise((resolve) => setTimeout(resolve, 5)); process.exit(0);'),
      3,
    ],
    ['in a timer', plugin('setTimeout(() => process.exit(0)); await new Promise(() => {});'), 3],
    ['while it is imported', plugin('', 'process.exit(0);'), 1],
  ] as const)
    for (const command of ['check', 'start'])
      it(`${when} fails ${command} with its place`, async () => {
        const folder = folderOf(text);
        const { code, stderr } = await runCli([command, ...(command === 'start' ? ['--port', '0'] : [])], folder);
        expect(stderr).to.include(`a plugin ended the process: process.exit() at ${folder}/quit.mjs:${line}`);
        expect(code).to.equal(3);
      });

  it('from a package, fails a check with --json as one document', async () => {
    const folder = makeFolder({
      'tollgate.config.yaml': AS_PACKAGE,
      'node_modules/tollgate-plugin-quit/package.json': '{"name":"tollgate-plugin-quit","exports":"./index.mjs"}',
      'node_modules/tollgate-plugin-quit/index.mjs': plugin('process.exit(0);'),
    });
    const { code, stdout } = await runCli(['check', '--json'], folder);
    expect(JSON.parse(stdout)).to.have.nested.property('error.code', 'config');
    expect(code).to.equal(3);
  });

  it('in its own command, ends with its own code', async () => {
    const more = `commands: [{ name: 'leave', summary: 'x' }],`;
    const text = plugin(
      `api.command({ name: 'leave', summary: 'x', changesStore: false, async run() { process.exit(7); } });`,
    ).replace(`apiVersion: 1,`, `apiVersion: 1, ${more}`);
    const { code, stderr } = await runCli(['leave'], folderOf(text));
    expect(stderr).not.to.include('ended the process');
    expect(code).to.equal(7);
  });
});
