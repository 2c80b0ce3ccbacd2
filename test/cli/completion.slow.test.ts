import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { commandsBelow, GROUPS, placeOf } from '../../cli/places.ts';
import { COMMANDS } from '../../cli/program.ts';
import { useTempFolder } from '../support/folders.ts';
import { runCli } from '../support/processes/cli.ts';

const run = promisify(execFile);

describe('tollgate completion', () => {
  const folder = useTempFolder('completion');
  const scripts: Record<string, string> = {};

  before(async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { code, stdout, stderr } = await runCli(['completion', shell], folder);
      expect({ code, stderr }, shell).to.deep.equal({ code: 0, stderr: '' });
      scripts[shell] = path.join(folder, `tollgate.${shell}`);
      writeFileSync(scripts[shell], stdout);
    }
  });

  /** Completions of bash for the last word of a line. */
  async function complete(script: string, ...words: readonly string[]): Promise<readonly string[]> {
    const code = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "$(complete -p tollgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')"; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await run('bash', ['--norc', '-uc', code, 'bash', script, 'tollgate', ...words], {
      cwd: folder,
    });
    return stdout.split('\n').filter((word) => word !== '');
  }

  it('opens no store, and has no side effects', () => {
    expect(existsSync(path.join(folder, 'data'))).to.equal(false);
  });

  it('offers all commands of core and of plugins to bash', async () => {
    const words = await complete(scripts['bash'] ?? '', '');
    expect(words).to.have.members(GROUPS.flatMap(([, names]) => names));
  });

  it('offers the subcommands and the options of each to bash, and the global ones', async () => {
    for (const { name, options = [], subcommands = [] } of COMMANDS) {
      const flags = options.flatMap(([text]) => /--[\w-]+/.exec(text) ?? []);
      const line = placeOf(name).split(' ');
      expect(await complete(scripts['bash'] ?? '', ...line, '--')).to.include.members([...flags, '--json', '--config']);
      const below = [...subcommands.map((sub) => sub.name), ...commandsBelow(name).map(({ now }) => now.split(' ')[1])];
      if (below.length > 0) expect(await complete(scripts['bash'] ?? '', ...line, '')).to.have.members(below);
    }
  });

  const LINES: readonly (readonly [line: readonly string[], offers: readonly string[]])[] = [
    [['keys', 'b'], ['block']],
    [['keys', 'create', '--rp'], ['--rpm']],
    [['--json', 'budgets', 'set', '--ti'], ['--timezone']],
    [['calls', 'show', '--fol'], []],
    [['calls', 'top', '--on'], ['--once']],
    [['accounts', 'plans', 'se'], ['set']],
    [['usage', '--user', 'keys', '--cs'], ['--csv']],
    // Values that cannot be completed.
    [['usage', '--user', ''], []],
    [
      ['config', 'completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['frobnicate', 'x'], []],
  ];
  for (const [line, offers] of LINES)
    it(`offers ${offers.join(', ') || 'nothing'} to bash after "tollgate ${line.join(' ')}"`, async () => {
      expect(await complete(scripts['bash'] ?? '', ...line)).to.deep.equal(offers);
    });

  for (const [shell, check] of [
    ['bash', '-n'],
    ['zsh', '-n'],
    ['fish', '--no-execute'],
  ] as const)
    it(`is a script that ${shell} can read`, async function () {
      if (spawnSync(shell, ['--version']).error) this.skip();
      expect((await run(shell, [check, scripts[shell] ?? ''])).stderr).to.equal('');
    });

  it('runs nothing that a plugin has put into its names and summaries', async () => {
    const own = path.join(folder, 'own');
    mkdirSync(own);
    const text = "it's $(touch pwned) `touch pwned`\n; touch pwned";
    writeFileSync(
      path.join(own, 'odd.mjs'),
      `const row = { summary: ${JSON.stringify(text)}, run: async () => undefined };
       const options = [{ flags: '--fine <x>', summary: row.summary }, { flags: '--$(touch pwned)', summary: '' }];
       export default {
         name: 'odd', kind: 'policy', apiVersion: 1,
         commands: [{ name: 'fine', summary: row.summary }, { name: 'x;touch pwned', summary: 'x' }],
         setup(api) {
           api.command({ ...row, name: 'fine', options });
           api.command({ ...row, name: 'x;touch pwned' });
         },
       };`,
    );
    writeFileSync(
      path.join(own, 'tollgate.config.yaml'),
      'providers: { echo: {} }\npolicies: { odd: { plugin: ./odd.mjs } }\n',
    );
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { code, stdout, stderr } = await runCli(['completion', shell], own);
      expect(code, stderr).to.equal(0);
      expect(stdout).to.include('fine').and.not.to.include('x;touch');
      if (shell !== 'bash') continue;
      const script = path.join(own, 'odd.bash');
      writeFileSync(script, stdout);
      expect(await complete(script, 'fine', '--f')).to.deep.equal(['--fine']);
    }
    expect(existsSync(path.join(folder, 'pwned'))).to.equal(false);
  });

  it('lists the shells for an unknown one, with exit code 2', async () => {
    const { code, stdout, stderr } = await runCli(['completion', 'tcsh'], folder);
    expect({ code, stdout }).to.deep.equal({ code: 2, stdout: '' });
    expect(stderr).to.match(/completion for "tcsh" is not supported\n\s+Use one of bash, zsh, fish/);
  });
});
