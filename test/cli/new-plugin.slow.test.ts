import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { templateKinds } from '../../cli/new-plugin.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { runCli, startProgram } from '../support/processes/cli.ts';
import { usePackedTollgate } from '../support/processes/packed-tollgate.ts';

const run = promisify(execFile);

/**
 * Configuration of a gateway with the plugin, and a request that it handles. `vendor` is the URL of the scripted
 * vendor.
 */
interface Kind {
  readonly config: (plugin: string, vendor: string) => object;
  readonly path?: string;
  readonly body?: object;
  readonly credential?: string;
  readonly says: RegExp;
}

const CHAT = { model: 'echo/echo', messages: [{ role: 'user', content: 'Good morning' }] };
const TOKEN = 'my-crate-0123456789abcdef';

const KINDS: Readonly<Record<string, Kind>> = {
  provider: {
    config: (plugin, vendor) => ({ providers: { 'my-crate': { plugin, apiKey: 'any', baseUrl: `${vendor}/v1` } } }),
    body: { ...CHAT, model: 'my-crate/my-crate-1' },
    says: /"content":"Hello"/,
  },
  policy: { config: (plugin) => ({ policies: { 'my-crate': { plugin } } }), says: /Good morning/ },
  guardrail: {
    config: (plugin) => ({ policies: { 'my-crate': { plugin, name: 'morning' } } }),
    says: /content_filtered/,
  },
  auth: {
    config: (plugin) => ({ auth: { 'my-crate': { plugin, tokens: { ann: TOKEN } } } }),
    credential: TOKEN,
    says: /Good morning/,
  },
  dialect: {
    config: (plugin) => ({ dialects: { 'my-crate': { plugin } } }),
    path: '/my-crate',
    body: { model: 'echo/echo', say: 'Good morning' },
    says: /"text":"Good morning"/,
  },
  operation: {
    config: (plugin) => ({
      operations: { 'my-crate': { plugin } },
      providers: { counter: { plugin: `${plugin}/counter` } },
    }),
    path: '/v1/my-crate',
    body: { model: 'counter/words', text: 'three little words' },
    says: /"words":3/,
  },
  agent: {
    config: (plugin) => ({ agents: { team: { model: 'echo/echo' }, 'my-crate': { plugin } } }),
    path: '/api/core/agent',
    body: { message: 'How long is this text?' },
    says: /content/,
  },
  tts: {
    config: (plugin, vendor) => ({ tts: { 'my-crate': { plugin, apiKey: 'any', baseUrl: vendor } } }),
    path: '/my-crate/tts',
    body: { text: 'Hello' },
    says: /^RIFF/,
  },
  secrets: {
    config: (plugin, vendor) => ({
      secrets: { 'my-crate': { plugin, url: vendor, token: TOKEN } },
      providers: {
        main: { plugin: 'openai-compatible', baseUrl: `${vendor}/v1`, apiKey: `$\{my-crate:openai}`, models: ['m'] },
      },
    }),
    body: { ...CHAT, model: 'main/m' },
    says: /"content":"Hello"/,
  },
  store: { config: (plugin) => ({ store: { plugin, folder: 'data' } }), says: /Good morning/ },
};

/**
 * Maximum bytes of the package: the measured 3.07 and 11.51 MB, plus 2 %. Of these, 0.3 and 1.2 MB are the docs as
 * Markdown, the examples and `deploy/`, so that no link of a packed page is dead.
 */
const MAX_PACKED = 3_130_000;
const MAX_UNPACKED = 11_740_000;

describe('tollgate plugins new', () => {
  const { folder, tarball, program, env } = usePackedTollgate();
  let vendor: Server;
  let address = '';

  before(async () => {
    vendor = createServer((request, response) => {
      request.resume();
      if (request.url?.startsWith('/secrets/')) {
        response.end('{"value":"sk-of-the-safe"}');
        return;
      }
      const isSpeech = request.url === '/v1/speak';
      response.setHeader('content-type', isSpeech ? 'audio/wav' : 'application/json');
      response.end(
        isSpeech
          ? silence()
          : readFileSync(path.join(PACKAGE_ROOT, 'examples/plugins/provider/test/fixtures/chat.json')),
      );
    });
    await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  });
  after(() => vendor.close());

  it('has a small package, with the docs and without maps (E65)', () => {
    const place = path.join(folder, 'node_modules/tollgate');
    const sizes = readdirSync(place, { recursive: true, encoding: 'utf8' }).map((name) =>
      statSync(path.join(place, name)),
    );
    const unpacked = sizes.filter((entry) => entry.isFile()).reduce((sum, { size }) => sum + size, 0);
    expect(statSync(tarball).size, 'packed').to.be.at.most(MAX_PACKED);
    expect(unpacked, 'unpacked').to.be.at.most(MAX_UNPACKED);
    const files = readdirSync(path.join(place, 'dist'), { recursive: true, encoding: 'utf8' });
    expect(files.filter((file) => file.endsWith('.map'))).to.deep.equal([]);
    expect(files).to.include('docs.br');
    expect(files).to.include(path.join('console', 'index.html'));
  });

  it('is tested here for each kind', () => expect(Object.keys(KINDS)).to.have.members(templateKinds()));

  for (const kind of templateKinds())
    it(`writes a ${kind} that passes its own tests, packs, installs into an empty project and responds over HTTP`, async () => {
      const { config, path: route = '/v1/chat/completions', body = CHAT, credential, says } = KINDS[kind] as Kind;
      const home = path.join(folder, kind);
      mkdirSync(home);
      const made = await startProgram([...program, 'plugins', 'new', 'my-crate', '--kind', kind], home, env).finished;
      expect(made.code, made.stderr).to.equal(0);
      const repository = path.join(home, 'tollgate-plugin-my-crate');
      const tested = await startProgram(['npm', 'test'], repository, env).finished;
      expect(tested.code, tested.stdout + tested.stderr).to.equal(0);
      expect(tested.stdout)
        .to.match(/^# pass [1-9]/m)
        .and.match(/^# fail 0/m);
      await run('npm', ['pack', '--silent'], { cwd: repository, env: { ...process.env, ...env } });
      const tarball = readdirSync(repository).find((name) => name.endsWith('.tgz')) ?? '';
      const project = path.join(home, 'project');
      mkdirSync(project);
      const words = [
        'install',
        '--prefix',
        '.',
        '--ignore-scripts',
        '--legacy-peer-deps',
        path.join(repository, tarball),
      ];
      await run('npm', words, { cwd: project, env: { ...process.env, ...env } });
      const base = {
        ...{ server: { port: 0, drainDelay: '0s' }, store: 'memory:', auth: { 'api-key': { bootstrap: true } } },
        ...{ providers: { echo: {} }, policies: {} },
      };
      const whole = { ...base, ...config('tollgate-plugin-my-crate', address) };
      writeFileSync(path.join(project, 'tollgate.config.json'), JSON.stringify(whole));
      const gateway = startProgram([...program, 'start'], project, env);
      const [, url = ''] = await gateway.seen(/listens on (http:\S+)/);
      const key = credential ?? /tg_\w+/.exec(gateway.stderr())?.[0] ?? '';
      const response = await fetch(url + route, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect(await response.text()).to.match(says);
      gateway.child.kill('SIGTERM');
      expect((await gateway.finished).code).to.equal(0);
    });
});

describe('refusals of tollgate plugins new', () => {
  const folder = useTempFolder('new-plugin');
  const REFUSED: readonly (readonly [words: readonly string[], says: RegExp])[] = [
    [['my-crate'], /the kind of the plugin is missing\n\s+Add --kind\. Use one of agent, auth, /],
    [['my-crate', '--kind', 'provder'], /"provder" is not a kind of plugin\n\s+Did you mean provider\?/],
    [['My Crate', '--kind', 'policy'], /"My Crate" is not a valid plugin name\n\s+Use 1 to 30 of a-z and 0-9/],
    [['../up', '--kind', 'policy'], /"\.\.\/up" is not a valid plugin name/],
    [['x'.repeat(31), '--kind', 'policy'], /is not a valid plugin name/],
    [['tollgate-plugin-crate', '--kind', 'policy'], /is the name of a package\n\s+Use the plugin name: crate\./],
    [['openai', '--kind', 'provider'], /a built-in provider "openai" exists/],
    [['pii', '--kind', 'guardrail'], /a built-in guardrail "pii" exists/],
    [['taken', '--kind', 'policy'], /tollgate-plugin-taken already exists/],
  ];
  before(() => mkdirSync(path.join(folder, 'tollgate-plugin-taken')));
  for (const [words, says] of REFUSED)
    it(`refuses ${words.join(' ')}, and writes nothing`, async () => {
      const { code, stderr } = await runCli(['plugins', 'new', ...words], folder);
      expect({ code }).to.deep.equal({ code: 2 });
      expect(stderr).to.match(says);
      expect(readdirSync(folder)).to.deep.equal(['tollgate-plugin-taken']);
    });
});

/** One second of silence as WAV. */
function silence(): Buffer {
  const sound = Buffer.alloc(48_000);
  const head = Buffer.from(
    '52494646a4bb000057415645666d7420100000000100010080bb000000770100020010006461746180bb0000',
    'hex',
  );
  head.writeUInt32LE(36 + sound.length, 4);
  head.writeUInt32LE(24_000, 24);
  head.writeUInt32LE(48_000, 28);
  head.writeUInt32LE(sound.length, 40);
  return Buffer.concat([head, sound]);
}
