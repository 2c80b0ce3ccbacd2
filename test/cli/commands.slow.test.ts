import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { GROUPS } from '../../cli/places.ts';
import { VERSION } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { type Finished, runCli } from '../support/processes/cli.ts';

/** Parses the one document that `--json` prints; fails if stdout contains anything else. */
function document({ stdout }: Finished): {
  ok: boolean;
  data?: unknown;
  error?: { code: string; message: string; faults?: unknown[] };
} {
  expect(stdout.trim().split('\n')).to.have.length(1);
  return JSON.parse(stdout) as ReturnType<typeof document>;
}

describe('the command line', () => {
  const folder = useTempFolder('cli');

  it('prints only its version', async () => {
    expect(await runCli(['--version'], folder)).to.deep.equal({ code: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  it('lists its groups and their commands in order, and no former name', async () => {
    const { code, stdout } = await runCli(['--help'], folder);
    expect(code).to.equal(0);
    const listed = stdout
      .split('\n')
      .flatMap((line) => /^(?! *-)(?:([A-Z][\w ]*:)$| {2}(\w[\w-]*) {2,})/.exec(line)?.slice(1) ?? []);
    const expected = GROUPS.flatMap(([heading, names]) => [heading, ...names]);
    expect(listed.filter((word) => word !== undefined && word !== 'Options:')).to.deep.equal(expected);
  });

  it('runs a command by its name and by its former name', async () => {
    for (const words of [['models', 'chat'], ['chat']]) {
      const { code, stdout } = await runCli([...words, 'echo/echo', 'Hello'], folder);
      expect({ code, stdout: stdout.trim() }, words.join(' ')).to.deep.equal({ code: 0, stdout: 'Hello' });
    }
  });

  it('shows the current name of a former one in its help', async () => {
    const { stdout } = await runCli(['top', '--help'], folder);
    expect(stdout).to.match(/^Usage: tollgate calls top /);
  });

  for (const words of [['--version'], ['start', '--help'], ['chat', '--help']]) {
    it(`loads no module of the server for ${words.join(' ')}`, async () => {
      const { code, stderr } = await runCli(words, folder, { env: { NODE_DEBUG: 'esm' } });
      expect(code).to.equal(0);
      expect(stderr).to.match(/cli\/main\.[jt]s/, 'the log of imports is there');
      expect(stderr).not.to.match(/node_modules\/(koa|ajv|undici|pino|keyv|yaml|prom-client)\/|core\/app\.[jt]s/);
    });
  }

  // Commands of plugins depend on the configuration: help loads it without side effects.
  it('names the commands of plugins in its help, and opens no store for it', async () => {
    const fresh = path.join(folder, 'help');
    mkdirSync(fresh);
    const { code, stdout, stderr } = await runCli(['--help'], fresh);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(/^ {2}models /m);
    expect(existsSync(path.join(fresh, 'data'))).to.equal(false);
  });

  const MISUSES: readonly (readonly [words: readonly string[], says: RegExp])[] = [
    [['strat'], /^error {2}unknown command 'strat'\n\s+Did you mean start\?/],
    [['start', '--prot', '1'], /^error {2}unknown option '--prot'\n\s+Did you mean --port\?/],
    [['start', '--port', ''], /"" is not a port\n\s+Use 0 to 65535/],
    [['start', '--port', ' '], /" " is not a port/],
    [['start', '--port', '0x50'], /"0x50" is not a port/],
    [['start', '--host', ''], /"" is not an address/],
    [['chat', 'echo/echo', 'hi', '--max-tokens', ''], /"" is not a number of tokens/],
    [['start', '--port', 'abc'], /"abc" is not a port\n\s+Use 0 to 65535/],
    [['start', '--log-level', 'loud'], /"loud" is not a log level\n\s+Use one of debug/],
    [['chat'], /missing required argument 'model'/],
    [['chat', 'echo/echo', 'hi', '--max-tokens', '0'], /"0" is not a number of tokens/],
    [['chat', 'echo/echo'], /the prompt is missing/],
    [['models', '--provider', 'opnai'], /provider "opnai" not found.*\n\s+Did you mean openai/],
    [['init', '--client', 'codx'], /the client "codx" is unknown\n\s+Did you mean codex\?/],
    [['keys', 'crate'], /^error {2}unknown command 'crate'\n\s+Did you mean create\?/],
    [['keys', 'create'], /required option '--user/],
    [['frobnicate'], /unknown command/],
  ];
  for (const [words, says] of MISUSES) {
    it(`refuses "${words.join(' ')}" with exit code 2, on stderr alone`, async () => {
      const { code, stdout, stderr } = await runCli(words, folder);
      expect({ code, stdout }).to.deep.equal({ code: 2, stdout: '' });
      expect(stderr).to.match(says);
    });
  }

  it('answers a misuse as one document with --json', async () => {
    const finished = await runCli(['frobnicate', '--json'], folder);
    expect(finished.code).to.equal(2);
    expect(document(finished)).to.deep.include({
      ok: false,
      error: {
        code: 'usage',
        message: "unknown command 'frobnicate'",
        hint: 'Add --help to see its arguments and options.',
      },
    });
  });

  it('writes no colours into a pipe', async () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are escape sequences
    expect((await runCli(['start', '--port', 'x'], folder)).stderr).not.to.match(/\u001b\[/);
  });

  it('reports a problem of the configuration with its place, and exits with 3', async () => {
    const bad = path.join(folder, 'bad.yaml');
    writeFileSync(bad, 'server:\n  prot: 1\nproviders:\n  ecko: {}\n');
    const { code, stdout, stderr } = await runCli(['check', '--config', bad], folder);
    expect({ code, stdout }).to.deep.equal({ code: 3, stdout: '' });
    expect(stderr).to.match(/bad\.yaml:2:3 server\.prot: unknown key\. Did you mean "port"\?/);
    expect(stderr).to.match(/bad\.yaml:4:3 providers\.ecko/);
    const finished = await runCli(['check', '--config', bad, '--json'], folder);
    expect(finished.code).to.equal(3);
    const { ok, error } = document(finished);
    expect(ok).to.equal(false);
    expect(error?.faults).to.have.length(2);
  });

  it('accepts the built-in configuration in check', async () => {
    const { code, stdout, stderr } = await runCli(['check'], folder);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(/^config\/default\.yaml is valid: \d+ plugins, prices of \d{4}-\d\d-\d\d, [\w ]+\n$/);
  });

  const LISTS: readonly (readonly [command: string, head: RegExp, row: object])[] = [
    [
      'providers',
      /^PROVIDER +PLUGIN +STATE +HAS\n/,
      { name: 'echo', plugin: 'echo', state: 'ready', has: ['chat', 'embeddings'] },
    ],
    [
      'plugins',
      /^KIND +NAME +PLUGIN +SOURCE +VERSION +LICENCE +HOOKS +ROUTES +COMMANDS +HOSTS +PERMISSIONS +ENVIRONMENT +PROVENANCE\n/,
      { kind: 'provider', name: 'echo', plugin: 'echo', source: 'built in' },
    ],
  ];
  for (const [command, head, row] of LISTS) {
    it(`prints a table for ${command}, and with --json the same as data`, async () => {
      expect((await runCli([command], folder)).stdout)
        .to.match(head)
        .and.include('echo');
      const { ok, data } = document(await runCli([command, '--json'], folder));
      expect(ok).to.equal(true);
      const rows = data as readonly { readonly name: string }[];
      expect(rows.find(({ name }) => name === 'echo')).to.deep.include(row);
    });
  }

  it('lists prices by models, of one provider when that is named', async () => {
    const { stdout } = await runCli(['models', '--provider', 'echo'], folder);
    expect(stdout).to.match(
      /^MODEL +CONTEXT TOKENS +ENDS +INPUT USD\/M TOKENS +CACHED USD\/M TOKENS +OUTPUT USD\/M TOKENS\necho\/echo /,
    );
    expect(stdout).not.to.include('openai/');
  });

  it('shows the effective configuration with config print, with secrets masked', async () => {
    const env = { OPENAI_API_KEY: 'sk-canary-1234567890' };
    const { code, stdout } = await runCli(['config', 'print'], folder, { env });
    expect(code).to.equal(0);
    expect(stdout)
      .to.match(/^server:\n {2}host: 127\.0\.0\.1/m)
      .and.include('****');
    expect(stdout).not.to.include('canary');
  });

  it('prints documents with config schema and openapi', async () => {
    const schema = JSON.parse((await runCli(['config', 'schema'], folder)).stdout) as { properties: object };
    expect(schema.properties).to.have.property('providers');
    const openApi = JSON.parse((await runCli(['openapi'], folder)).stdout) as { openapi: string; paths: object };
    expect(openApi.openapi).to.match(/^3\.1/);
    expect(openApi.paths).to.have.property('/v1/chat/completions');
  });

  it('writes files with init that check accepts, and replaces them only with --force', async () => {
    const fresh = useTempFolderNow();
    const first = await runCli(['init'], fresh);
    expect(first.code).to.equal(0);
    expect(readFileSync(path.join(fresh, '.env.example'), 'utf8')).to.match(/^OPENAI_API_KEY=$/m);
    expect((await runCli(['check'], fresh)).stdout).to.match(/^tollgate\.config\.yaml is valid: /);
    expect(existsSync(path.join(fresh, 'data')), 'check opens no store').to.equal(false);
    writeFileSync(path.join(fresh, 'tollgate.config.yaml'), 'providers: { echo: {} }\n');
    const second = await runCli(['init'], fresh);
    expect(second.code).to.equal(2);
    expect(second.stderr).to.include('--force');
    expect(readFileSync(path.join(fresh, 'tollgate.config.yaml'), 'utf8')).to.equal('providers: { echo: {} }\n');
    expect((await runCli(['init', '--force'], fresh)).code).to.equal(0);
  });

  it('D47 extends an existing .gitignore with init, and leaves a complete one unchanged', async () => {
    const own = path.join(folder, 'ignored');
    mkdirSync(own);
    writeFileSync(path.join(own, '.gitignore'), 'dist\n/node_modules\n.env');
    expect((await runCli(['init'], own)).stdout).to.include('.gitignore');
    const text = 'dist\n/node_modules\n.env\n.env.local\ndata/\n';
    expect(readFileSync(path.join(own, '.gitignore'), 'utf8')).to.equal(text);
    expect((await runCli(['init', '--force'], own)).stdout).not.to.include('.gitignore');
    expect(readFileSync(path.join(own, '.gitignore'), 'utf8')).to.equal(text);
  });

  /** Folder inside the one that is removed at the end. */
  function useTempFolderNow(): string {
    const fresh = path.join(folder, 'fresh');
    mkdirSync(fresh);
    return fresh;
  }
});

describe('tollgate chat', () => {
  const folder = useTempFolder('cli-chat');

  it('streams the answer to a prompt to stdout', async () => {
    expect(await runCli(['chat', 'echo/echo', 'hello', 'there'], folder)).to.deep.equal({
      code: 0,
      stdout: 'hello there\n',
      stderr: '',
    });
  });

  it('D47 prints only the response when a knowledge base is enabled, which is closed once', async () => {
    const own = path.join(folder, 'rag');
    mkdirSync(path.join(own, 'docs'), { recursive: true });
    writeFileSync(path.join(own, 'docs/a.md'), '# A fox\n');
    writeFileSync(
      path.join(own, 'tollgate.config.yaml'),
      'providers: { echo: {} }\nagents: { rag: { folder: ./docs } }\n',
    );
    const finished = await runCli(['chat', 'echo/echo', 'hi'], own);
    expect(finished).to.deep.equal({ code: 0, stdout: 'hi\n', stderr: '' });
  });

  it('reads the prompt from stdin', async () => {
    expect((await runCli(['chat', 'echo/echo'], folder, { input: 'from a pipe' })).stdout).to.equal('from a pipe\n');
    expect((await runCli(['chat', 'echo/echo', '-'], folder, { input: 'and so' })).stdout).to.equal('and so\n');
  });

  it('waits for the complete response with --no-stream, and returns it as data with --json', async () => {
    expect((await runCli(['chat', 'echo/echo', 'all at once', '--no-stream'], folder)).stdout).to.equal(
      'all at once\n',
    );
    const { ok, data } = document(await runCli(['chat', 'echo/echo', 'as data', '--json'], folder));
    expect(ok).to.equal(true);
    expect((data as { choices: { message: { content: string } }[] }).choices[0]?.message.content).to.equal('as data');
  });

  it('exits with 69 and an explanation when the provider has no key', async () => {
    const { code, stdout, stderr } = await runCli(['chat', 'openai/gpt-5', 'hi'], folder);
    expect({ code, stdout }).to.deep.equal({ code: 69, stdout: '' });
    expect(stderr).to.match(/^error {2}The provider "openai" has no API key/);
    expect(stderr).to.include('`apiKey` in the configuration, usually from the environment variable OPENAI_API_KEY.');
  });

  it('names the variable that a provider’s key usually comes from', async () => {
    expect((await runCli(['providers'], folder)).stdout).to.match(/^openai +openai +no key \(OPENAI_API_KEY\)/m);
    const { data } = document(await runCli(['providers', '--json'], folder));
    expect(data).to.deep.include.members([
      {
        name: 'openai',
        plugin: 'openai',
        state: 'no key',
        usually_from: 'OPENAI_API_KEY',
        has: ['chat', 'batches', 'embeddings', 'images', 'moderations', 'realtime', 'transcription'],
      },
    ]);
  });
});

describe('tollgate providers explain', () => {
  const folder = useTempFolder('cli-explain');
  before(() => {
    const smart = {
      strategy: 'weighted',
      targets: [{ to: 'echo/echo', weight: 3 }, 'openai/gpt-5'],
      onOverflow: 'openai/gpt-5-mini',
    };
    const config = { store: 'sqlite:./data', providers: { echo: {}, openai: {} }, models: { smart } };
    writeFileSync(path.join(folder, 'tollgate.config.json'), JSON.stringify(config));
  });

  it('shows the targets of a model’s calls, and why', async () => {
    const { stdout } = await runCli(['providers', 'explain', 'smart'], folder);
    expect(stdout).to.match(/^model: smart, found as: alias, strategy: weighted, sticky: session$/m);
    expect(stdout).to.match(/^echo\/echo +1 +3 +always +closed/m);
    expect(stdout).to.match(/^openai\/gpt-5 +1 +1 +always +no key/m);
    expect(stdout).to.match(/^openai\/gpt-5-mini +prompt too long for the others/m);
    const { data } = document(await runCli(['providers', 'explain', 'openai/gpt-5', '--json'], folder));
    expect(data).to.include({ found_as: 'provider/model', strategy: 'only one' });
  });

  it('names similar models for one that does not exist', async () => {
    const { code, stderr } = await runCli(['providers', 'explain', 'smrt'], folder);
    expect(code).to.not.equal(0);
    expect(stderr).to.include('Did you mean "smart"?');
  });
});

describe('tollgate keys', () => {
  const folder = useTempFolder('cli-keys');

  it('creates, lists and revokes a key; the key is alone on stdout', async () => {
    const made = await runCli(['keys', 'create', '--user', 'u_42', '--name', 'laptop'], folder);
    expect(made.code).to.equal(0);
    expect(made.stdout).to.match(/^tg_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\n$/);
    const prefix = made.stdout.slice(0, 15);
    const before = await runCli(['keys', 'list', '--user', 'u_42'], folder);
    expect(before.stdout).to.include(prefix).and.include('active');
    expect(before.stdout).not.to.include(made.stdout.trim());
    expect((await runCli(['keys', 'revoke', prefix], folder)).code).to.equal(0);
    expect((await runCli(['keys', 'list'], folder)).stdout).to.match(new RegExp(`${prefix} .*revoked`));
  });

  it('reports a key that does not exist', async () => {
    const { code, stderr } = await runCli(['keys', 'revoke', 'tg_000000000000'], folder);
    expect(code).to.equal(2);
    expect(stderr).to.match(/^error {2}/);
  });
});
