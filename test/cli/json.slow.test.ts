import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { type Finished, type Running, runCli, startCli } from '../support/processes/cli.ts';
import { CORE_PATHS, readPluginPaths, runInProcess } from './cli-commands.ts';

interface Case {
  /** Arguments with which the command succeeds. `:key` and `:call` are replaced by an existing key and call. */
  readonly good: readonly string[];
  /** Arguments that are rejected; empty if no arguments can be wrong. */
  readonly bad: readonly string[];
}

const UNKNOWN = ['--no-such-option'];
const NOTHING: Finished = { code: 0, stdout: '', stderr: '' };
const NONE = { good: [], bad: UNKNOWN };

/**
 * Commands tested elsewhere or not in JSON. Some print a document of another standard, or run until they are stopped.
 * Others run without a gateway (`move-store.slow.test.ts`) or need an option (`imported-keys.test.ts`). The rest
 * contact a vendor, receivers or npm (`add-plugin.slow.test.ts`, `reconcile.test.ts`, `model-updates.test.ts`,
 * `notices.test.ts`).
 */
const OTHERS: readonly string[] = [
  'start',
  'dev',
  'plugins add',
  'config schema',
  'openapi',
  'export',
  'import',
  'reconcile',
  'models update',
  'notices test',
  // They need the key of an operator, and a change that a program proposed: mcp.slow.test.ts.
  'mcp',
  'changes',
  'changes list',
  'changes show',
  'changes confirm',
  'changes reject',
  // They need a tool that waits for approval: pins.test.ts.
  'tools show',
  'tools approve',
  // Sign-in at a gateway: login.slow.test.ts.
  'login',
  'token',
  'logout',
  'keys import',
];

const CASES: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(
    ['check', 'reload', 'status', 'targets', 'providers', 'plugins', 'config', 'config print', 'console'].map(
      (name) => [name, NONE],
    ),
  ),
  'plugins new': { good: ['my-crate', '--kind', 'policy'], bad: ['my-crate'] },
  top: { good: ['--once'], bad: ['now'] },
  init: { good: ['--client', 'codex'], bad: ['--client', 'missing'] },
  chat: { good: ['echo/echo', 'hello'], bad: ['echo/echo', 'hello', '--max-tokens', 'x'] },
  'providers explain': { good: ['echo/echo'], bad: ['missing'] },
  'keys create': { good: ['--user', 'bea'], bad: ['--user', 'bea', '--rpm', '-1'] },
  'keys list': { good: [], bad: ['--limit', '0'] },
  'keys show': { good: [':key'], bad: ['missing'] },
  'keys update': { good: [':key', '--rpm', '7'], bad: [':key'] },
  'keys block': { good: [':key', '--reason', 'leaked'], bad: ['missing'] },
  'keys unblock': { good: [':key'], bad: ['missing'] },
  'keys rotate': { good: [':key'], bad: [':key', '--overlap', 'x'] },
  'keys accept-pepper': { good: ['--yes'], bad: [] },
  'keys revoke': { good: [':key'], bad: ['missing'] },
  'accounts credit': { good: ['ann', '5'], bad: ['ann', 'much'] },
  'accounts show': { good: ['ann'], bad: [''] },
  'accounts list': { good: [], bad: ['--limit', 'x'] },
  'accounts plan': { good: ['ann', 'free'], bad: ['ann', 'missing'] },
  'plans list': NONE,
  'plans set': { good: ['team', '{"rpm":6}'], bad: ['team', '{'] },
  'plans show': { good: ['team'], bad: ['missing'] },
  'plans delete': { good: ['team'], bad: ['free'] },
  'budgets set': { good: ['day', '2', '--every', 'day'], bad: ['day', '2', '--every', 'decade'] },
  'budgets list': NONE,
  'budgets raise': { good: ['day', '1', '--until', '1h'], bad: ['day'] },
  'budgets near': { good: [], bad: ['--limit', 'x'] },
  'budgets delete': { good: ['day'], bad: ['missing'] },
  'teams set': { good: ['team=red', '--owner-user', 'bea', '--budget', '5'], bad: ['team=red', '--budget', 'much'] },
  'teams list': NONE,
  'teams show': { good: ['team=red'], bad: ['missing'] },
  'teams delete': { good: ['team=red'], bad: ['missing'] },
  'target drain': { good: ['echo/echo'], bad: ['missing/m'] },
  'target undrain': { good: ['echo/echo'], bad: ['missing/m'] },
  'target reset': { good: ['echo'], bad: ['missing'] },
  'mirrors list': { good: [], bad: ['--tz', 'x'] },
  'users list': { good: [], bad: ['--limit', 'x'] },
  'users erase': { good: ['ann'], bad: [''] },
  'users show': { good: ['ann'], bad: [''] },
  'users block': { good: ['ann'], bad: [''] },
  'users unblock': { good: ['ann'], bad: [''] },
  'tools list': NONE,
  audit: { good: [], bad: ['--from', 'x'] },
  models: { good: [], bad: ['--provider', 'missing'] },
  usage: { good: ['--by', 'user,model'], bad: ['--csv'] },
  calls: { good: [], bad: ['--tz', 'Mars/Olympus'] },
  'calls show': { good: [':call'], bad: ['missing'] },
  say: { good: [], bad: ['hello'] },
};

/** Commands of core that print a table. */
const TABLES: readonly string[] = ['targets', 'providers', 'providers explain', 'plugins'];

/** Columns of counts, and of words that may look like numbers. */
const COUNTS =
  /^(?:ATTEMPTS|REQUESTS.*|ERRORS( %)?|TOKENS.*|CHARACTERS|CALLS AT ONCE|ROUTES|ORDER|WEIGHT|USER|NAME|VALUE|KEYS?)$/;
const UNITS = / (?:USD|UTC|MS|S|%|TOKENS|USD\/M TOKENS)$|\/MIN$/;

describe('every command of tollgate', function () {
  // About forty processes start in sequence.
  this.timeout(600_000);
  const folder = useTempFolder('cli-json');
  const config = path.join(folder, 'tollgate.config.json');
  let gateway: Running;
  let pluginPaths: readonly string[];
  const names = { key: '', call: '' };
  const results = new Map<string, { readonly text: Finished; readonly json: Finished; readonly refused: Finished }>();

  const run = async (name: string, words: readonly string[], json: boolean): Promise<Finished> => {
    const own = words.map((word) => (word === ':key' ? names.key : word === ':call' ? names.call : word));
    if (pluginPaths.includes(name)) return runInProcess([...name.split(' '), ...own], config, json);
    return runCli([...name.split(' '), ...own, ...(json ? ['--json'] : [])], folder);
  };

  before(async () => {
    const price = { input: 1, output: 1 };
    const settings = {
      server: { port: 0 },
      store: 'sqlite:./data',
      auth: { 'api-key': {} },
      providers: { echo: { prices: { '*': price } } },
      plans: { free: { rpm: 60 } },
      tags: { team: ['red'] },
      policies: { mirror: {} },
      mcp: { admin: true },
    };
    writeFileSync(config, JSON.stringify(settings));
    gateway = startCli(['start'], folder);
    await gateway.seen(/listens on/);
    pluginPaths = await readPluginPaths(config);
    const created = await runInProcess(['keys', 'create', '--user', 'ann'], config, true);
    names.key = (JSON.parse(created.stdout) as { data: { api_key_info: { prefix: string } } }).data.api_key_info.prefix;
    await runCli(['chat', 'echo/echo', 'hello'], folder);
    const calls = await runInProcess(['calls'], config, true);
    names.call = (JSON.parse(calls.stdout) as { data: { data: { id: string }[] } }).data.data[0]?.id ?? '';
    for (const [name, { good, bad }] of Object.entries(CASES)) {
      if (name === 'say') continue;
      results.set(name, {
        json: await run(name, good, true),
        text: pluginPaths.includes(name) || TABLES.includes(name) ? await run(name, good, false) : NOTHING,
        refused: await run(name, bad, true),
      });
    }
  });
  after(async () => {
    gateway.child.kill();
    await gateway.finished;
  });

  it('is covered by this test', () => {
    expect(Object.keys(CASES)).to.have.members(
      [...CORE_PATHS, ...pluginPaths].filter((name) => !OTHERS.includes(name)),
    );
  });

  for (const name of Object.keys(CASES).filter((each) => each !== 'say')) {
    it(`prints one document on stdout with --json: ${name}`, () => {
      const { json } = results.get(name) ?? expect.fail();
      expect(json.code, json.stdout + json.stderr).to.equal(0);
      expect(json.stdout.trim().split('\n')).to.have.length(1);
      const { ok, ...rest } = JSON.parse(json.stdout) as Readonly<Record<string, unknown>>;
      expect(ok).to.equal(true);
      expect(Object.keys(rest)).to.deep.equal(['data']);
    });

    it(`prints one error document on stdout with --json, and exits with 2: ${name}`, () => {
      const { refused } = results.get(name) ?? expect.fail();
      expect(refused.code, refused.stdout + refused.stderr).to.equal(2);
      expect(refused.stdout.trim().split('\n')).to.have.length(1);
      const { ok, error } = JSON.parse(refused.stdout) as { ok: boolean; error: Readonly<Record<string, unknown>> };
      expect(ok).to.equal(false);
      expect(Object.keys(error)).to.include.members(['code', 'message']);
      expect(String(error['message']))
        .to.match(/^[^\n]{5,}/)
        .and.not.match(/\bat .*\.ts:\d+/);
    });

    it(`has units in the heading of a table: ${name}`, () => {
      const { text } = results.get(name) ?? expect.fail();
      expect(numbersWithoutUnit(text.stdout)).to.deep.equal([]);
    });
  }

  it('also reads an option of its parent command', async () => {
    const { code, stdout } = await runInProcess(['models', 'update', '--provider', 'missing'], config, true);
    expect(code).to.equal(2);
    expect(JSON.parse(stdout))
      .to.have.nested.property('error.message')
      .that.includes('provider "missing" not found in the configuration');
  });

  it('refuses sound on stdout together with --json', async () => {
    const { code, stdout } = await runInProcess(['say', 'hello'], config, true);
    expect(code).to.equal(2);
    expect(JSON.parse(stdout)).to.have.nested.property('error.message').that.includes('-o');
  });
});

/** Headings of columns that contain numbers or times and have no unit. */
function numbersWithoutUnit(text: string): readonly string[] {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => /^[A-Z][A-Z /%]+ {2}/.test(line) && line === line.toUpperCase());
  const head = lines[at];
  if (head === undefined) return [];
  return [...head.matchAll(/\S+(?: \S+)*/g)].flatMap(({ 0: title, index }) => {
    const cells = lines.slice(at + 1).map((line) => /^\S+/.exec(line.slice(index))?.[0] ?? '');
    const isNumber = cells.some((cell) => /^-?\d+(?:\.\d+)?$|^\d{4}-\d{2}-\d{2}/.test(cell));
    return isNumber && !COUNTS.test(title) && !UNITS.test(title) ? [title] : [];
  });
}
