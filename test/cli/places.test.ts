import { expect } from 'chai';
import { FORMER_COMMANDS, GROUPS, isFirstLevel, placeOf, resolveWords } from '../../cli/places.ts';
import { COMMANDS } from '../../cli/program.ts';

const resolve = (line: string) => {
  const { args, moved } = resolveWords(line === '' ? [] : line.split(' '));
  return { line: args.join(' '), ...(moved ? { now: moved.now } : {}) };
};

describe('commands grouped by nouns', () => {
  for (const [line, runs] of [
    ['calls top --once', 'top --once'],
    ['--json calls top', '--json top'],
    ['-c other.yaml store export out.ndjson', '-c other.yaml export out.ndjson'],
    ['store --json status', 'status --json'],
    ['models explain smart', 'providers explain smart'],
    ['targets drain openai/gpt-6', 'target drain openai/gpt-6'],
    ['targets list', 'targets'],
    ['accounts plans list', 'plans list'],
    ['models list --provider openai', 'models --provider openai'],
    ['calls list', 'calls'],
    ['config import litellm config.yaml', 'import litellm config.yaml'],
  ] as const)
    it(`run the matching row: ${line}`, () => {
      expect(resolve(line)).to.deep.equal({ line: runs });
    });

  it('are not read from the value of an option, nor after --', () => {
    expect(resolve('-c calls keys list')).to.deep.equal({ line: '-c calls keys list' });
    expect(resolve('calls -- top')).to.deep.equal({ line: 'calls -- top' });
    expect(resolve('keys create --user top')).to.deep.equal({ line: 'keys create --user top' });
  });

  it('a store alone shows its state, and its help on request', () => {
    expect(resolve('store')).to.deep.equal({ line: 'status' });
    expect(resolve('store --help')).to.deep.equal({ line: 'store --help' });
  });

  it('a former name still runs and shows the current name', () => {
    expect(resolve('top --once')).to.deep.equal({ line: 'top --once', now: 'calls top' });
    expect(resolve('target drain openai')).to.deep.equal({ line: 'target drain openai', now: 'targets drain' });
    expect(resolve('providers explain smart')).to.deep.equal({
      line: 'providers explain smart',
      now: 'models explain',
    });
    expect(resolve('providers')).to.deep.equal({ line: 'providers', now: 'models providers' });
  });

  it('a former subcommand runs the current one and shows its name', () => {
    expect(resolve('budgets put day 5')).to.deep.equal({ line: 'budgets set day 5', now: 'budgets set' });
    expect(resolve('accounts plans remove team')).to.deep.equal({
      line: 'plans delete team',
      now: 'accounts plans delete',
    });
    expect(resolve('--json teams put team=red')).to.deep.equal({
      line: '--json teams set team=red',
      now: 'accounts teams set',
    });
    expect(resolve('users sign-ins end s1')).to.deep.equal({
      line: 'sign-ins revoke s1',
      now: 'users sign-ins revoke',
    });
    expect(resolve('calls put')).to.deep.equal({ line: 'calls put' });
  });

  it('a noun, a command of a plugin from outside and an unknown word have no other name', () => {
    for (const line of ['', 'targets', 'keys list', 'frobnicate now', '--version'])
      expect(resolve(line)).to.deep.equal({ line });
    expect(isFirstLevel('frobnicate')).to.equal(true);
    expect(placeOf('target')).to.equal('targets');
    expect(placeOf('keys')).to.equal('keys');
  });

  it('have first-level nouns, and each row of core has a name', () => {
    const nouns = GROUPS.flatMap(([, names]) => names);
    expect(FORMER_COMMANDS.filter(({ now }) => !nouns.includes(now.split(' ')[0] ?? ''))).to.deep.equal([]);
    const lost = COMMANDS.filter(
      ({ name }) => !nouns.includes(name) && !FORMER_COMMANDS.some(({ was }) => was === name),
    );
    expect(lost).to.deep.equal([]);
  });
});
