import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { runCli } from '../support/processes/cli.ts';

describe('a command of any plugin (D51)', () => {
  const folder = useTempFolder('commands');

  it('is in tollgate --help under its plugin, has its own help, and runs', async () => {
    const command = pluginFile({
      name: 'greeter',
      more: `commands: [{ name: 'greet', summary: 'Greets somebody' }],`,
      setup: `api.command({ name: 'greet', summary: 'Greets somebody', changesStore: false, args: [{ name: '<who>', summary: 'whom' }], options: [{ flags: '--loud', summary: 'loudly' }],
      async run({ args, options, io }) { io.result({ who: args[0] }, options.loud ? args[0].toUpperCase() : args[0]); } });`,
    });
    writeFileSync(`${folder}/greeter.mjs`, command);
    writeFileSync(
      `${folder}/tollgate.config.json`,
      JSON.stringify({
        store: 'memory:',
        providers: { echo: {} },
        auth: { 'api-key': {} },
        policies: { greeter: { plugin: './greeter.mjs' } },
      }),
    );
    const help = await runCli(['--help'], folder);
    const words = help.stdout.replaceAll(/\s+/g, ' ');
    expect(words).to.match(/greet Greets somebody \(plugin greeter\)/);
    expect(words).to.include('Create, list, update, block, rotate and revoke API keys');
    const own = await runCli(['greet', '--help'], folder);
    expect(own.stdout)
      .to.match(/tollgate greet .*<who>/)
      .and.include('--loud');
    const run = await runCli(['greet', 'ann', '--loud'], folder);
    expect(run, run.stderr).to.include({ code: 0, stdout: 'ANN\n' });
    const json = await runCli(['greet', 'ann', '--json'], folder);
    expect(JSON.parse(json.stdout)).to.deep.include({ data: { who: 'ann' } });
  });
});
