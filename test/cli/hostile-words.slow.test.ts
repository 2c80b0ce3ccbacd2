import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { runInProcess } from './cli-commands.ts';

const LONG = 'x'.repeat(5000);

/** Commands with options whose values a test inserts; `text` marks options that accept any line. */
const OPTIONS: readonly (readonly [words: readonly string[], takes: readonly string[], text?: 'text'])[] = [
  [['usage'], ['from', 'to', 'last', 'period', 'tz', 'limit', 'after', 'by', 'sort', 'tag']],
  [['usage'], ['user', 'key', 'provider', 'session'], 'text'],
  [['calls'], ['from', 'to', 'last', 'period', 'tz', 'limit', 'after', 'outcome', 'since', 'tag']],
  [['audit'], ['from', 'to', 'limit', 'after']],
  [
    ['keys', 'list'],
    ['limit', 'after'],
  ],
  [
    ['keys', 'create', '--user', 'u'],
    ['expires', 'models', 'providers', 'plan', 'tpm', 'budget', 'budgets', 'tag'],
  ],
  [['keys', 'create'], ['user'], 'text'],
  [['keys', 'create', '--user', 'u'], ['account', 'name'], 'text'],
  [['budgets', 'set', 'b', '1'], ['every']],
  [
    ['budgets', 'set', 'b', '1', '--every', 'day'],
    ['timezone', 'soft', 'plan', 'provider'],
  ],
  [['budgets', 'set', 'b', '1', '--every', 'day'], ['user', 'model'], 'text'],
  [['budgets', 'raise', 'b', '1'], ['until']],
  [['models'], ['provider']],
];

/** Values that every option rejects, and values that only options for any line of text accept. */
const NEVER = ['', '\u0000', 'a\nb', '\u001b[2J', LONG];
const TEXTS = ['__proto__', '../../etc/passwd', '-1', '99999999999999999999', '💥', "'; drop table x; --"];
/** Options for which some of these values are valid; the others must reject them. */
const RIGHT: readonly string[] = ['tpm', 'budget', 'soft'];

const ARGS: readonly (readonly string[])[] = [
  ...['show', 'block', 'rotate', 'revoke'].map((name) => ['keys', name]),
  ...[
    ['calls', 'show'],
    ['budgets', 'delete'],
    ['plans', 'show'],
  ],
];

describe('invalid arguments on the command line', function () {
  this.timeout(900_000);
  const folder = useTempFolder('hostile-words');
  const config = path.join(folder, 'tollgate.config.json');
  before(() => {
    const settings = { store: 'sqlite:./data', auth: { 'api-key': {} }, providers: { echo: {} }, plans: { free: {} } };
    writeFileSync(config, JSON.stringify(settings));
  });

  async function expectRefused(words: readonly string[]): Promise<void> {
    const { code, stdout } = await runInProcess(words, config, true);
    const shown = JSON.stringify(words.map((word) => word.slice(0, 40)));
    expect(code, `${shown} ${stdout.slice(0, 300)}`).to.equal(2);
    const { error } = JSON.parse(stdout) as { error: { message: string } };
    expect(error.message, shown).to.match(/^[^\n]{5,600}$/);
  }

  for (const [words, takes, kind] of OPTIONS)
    for (const name of takes)
      it(`are refused with 2 and an explanation by "${words.join(' ')} --${name}"`, async () => {
        const odd = kind === 'text' ? NEVER : [...NEVER.slice(0, 2), ...TEXTS];
        for (const value of odd.filter((each) => !(RIGHT.includes(name) && /^9+$/.test(each))))
          await expectRefused([...words, `--${name}=${value}`]);
      });

  for (const words of ARGS)
    it(`are refused with 2 and an explanation by "${words.join(' ')}"`, async () => {
      for (const value of [...NEVER, ...TEXTS]) await expectRefused([...words, '--', value]);
    });
});
