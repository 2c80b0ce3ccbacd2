import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { findProgram, freePort } from '../support/processes/server-process.ts';
import { startTunnelProxy } from '../support/processes/tunnel-proxy.ts';
import { respondWith, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

// Docker does not run here: the test runs the steps of deploy/Dockerfile in folders that represent its stages, and
// starts the result.

const ENV = { PATH: process.env['PATH'], NODE_ENV: 'production' };

interface Instruction {
  readonly word: string;
  readonly rest: string;
}

/** Instructions of a stage, with continued lines joined. */
function stageOf(text: string, name: string): readonly Instruction[] {
  const stages = text.replaceAll(/\\\n\s*/g, '').split(/^FROM /m);
  const stage = stages.find((part) => new RegExp(`^\\S+ AS ${name}\\n`).test(part)) ?? '';
  return [...stage.matchAll(/^([A-Z]+) (.+)$/gm)].map(([, word = '', rest = '']) => ({ word, rest }));
}

/** Files of a checkout, except those in .dockerignore. */
function copyContext(to: string): void {
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: PACKAGE_ROOT, encoding: 'utf8', maxBuffer: 1e8 });
  for (const file of tracked.split('\0').filter(Boolean)) {
    if (!existsSync(path.join(PACKAGE_ROOT, file))) continue;
    mkdirSync(path.dirname(path.join(to, file)), { recursive: true });
    cpSync(path.join(PACKAGE_ROOT, file), path.join(to, file));
  }
}

/** Runs a step of a stage. The error contains stdout and stderr, because compilers do not always write to stderr. */
function run(step: string, cwd: string, env: NodeJS.ProcessEnv): void {
  const { status, signal, stdout, stderr } = spawnSync('/bin/sh', ['-ec', step], { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${step}: ${signal ?? status}\n${stdout.slice(-4000)}\n${stderr.slice(-4000)}`);
}

describe('the image of deploy/Dockerfile, built by hand', function () {
  // Takes six minutes on a busy machine.
  this.timeout(1_800_000);
  const root = useTempFolder('image');
  const text = readFileSync(path.join(PACKAGE_ROOT, 'deploy/Dockerfile'), 'utf8');
  const context = path.join(root, 'context');
  const build = path.join(root, 'build');
  const image = path.join(root, 'image');
  const at = (folder: string, place: string): string => path.join(folder, place.replace(/^\.\//, ''));

  before(() => {
    copyContext(context);
    mkdirSync(at(build, '/app'), { recursive: true });
    const env = { ...process.env, NODE_ENV: '', npm_config_prefer_offline: 'true' };
    for (const { word, rest } of stageOf(text, 'build')) {
      if (word === 'RUN') run(rest, at(build, '/app'), env);
      if (word !== 'COPY') continue;
      const files = rest.split(' ');
      const target = path.resolve(at(build, '/app'), files.pop() ?? '');
      for (const file of files) {
        const from = path.join(context, file);
        cpSync(from, file === '.' ? target : path.join(target, path.basename(file)), { recursive: true });
      }
    }
    for (const { word, rest } of stageOf(text, 'base')) {
      const files = rest.split(' ');
      if (word !== 'COPY' || files.shift() !== '--from=build') continue;
      const target = at(image, files.pop() ?? '');
      for (const file of files) {
        const into = rest.endsWith('/') ? path.join(target, path.basename(file)) : target;
        cpSync(at(build, file), into, { recursive: true, verbatimSymlinks: true });
      }
    }
    mkdirSync(at(image, '/usr/local/bin'), { recursive: true });
    mkdirSync(at(image, '/srv'));
    const [, program = ''] = /ln -s (\S+) \/usr\/local\/bin\/tollgate/.exec(text) ?? [];
    symlinkSync(at(image, program), at(image, '/usr/local/bin/tollgate'));
  });

  const tollgate = (...words: readonly string[]): string =>
    execFileSync(at(image, '/usr/local/bin/tollgate'), words, { cwd: at(image, '/srv'), env: ENV, encoding: 'utf8' });
  const configure = (config: object): void =>
    writeFileSync(at(image, '/srv/tollgate.config.json'), JSON.stringify(config));
  const makeKey = (): string =>
    (JSON.parse(tollgate('keys', 'create', '--user', 'ada', '--json')) as { data: { api_key: string } }).data.api_key;

  /** Runs the image's own command after a prefix such as `ip netns exec` while `use` runs; it must exit with 0. */
  const withGateway = async (where: readonly string[], env: object, use: (output: () => string) => Promise<void>) => {
    const [, words = ''] = /^CMD (\[.*\])$/m.exec(text) ?? [];
    const [program = '', ...rest] = [
      ...where,
      at(image, '/usr/local/bin/tollgate'),
      ...(JSON.parse(words) as readonly string[]),
    ];
    const started = spawn(program, rest, {
      cwd: at(image, '/srv'),
      env: { ...ENV, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [started.stdout, started.stderr]) stream.on('data', (bytes) => (output += String(bytes)));
    const ended = new Promise<number | null>((resolve) => started.once('exit', resolve));
    try {
      await use(() => output);
    } finally {
      started.kill('SIGTERM');
    }
    expect(await ended, output).to.equal(0);
  };

  it('starts, is ready, and responds to a chat', async () => {
    const port = await freePort();
    configure({ server: { port }, providers: { echo: {} } });
    const key = makeKey();
    await withGateway([], {}, async (output) => {
      const url = `http://127.0.0.1:${port}`;
      await eventually(async () => expect((await fetch(`${url}/readyz`)).status, output()).to.equal(200));
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hello there' }] }),
      });
      expect(await response.text(), output()).to.include('hello there');
    });
  });

  it('responds to Messages of Claude Code in a network whose only exit is a proxy', async function () {
    const ip = findProgram('ip', ['/usr/sbin', '/sbin']);
    if (!ip || process.getuid?.() !== 0) {
      if (process.env['CI']) throw new Error('iproute2 must be installed, and the tests run as root, where CI is set');
      return this.skip();
    }
    const name = `tg${process.pid}`;
    const [ours, theirs] = [`10.231.${process.pid % 250}.1`, `10.231.${process.pid % 250}.2`];
    const run = (...words: readonly string[]): string => execFileSync(ip, words, { encoding: 'utf8' });
    const within = ['netns', 'exec', name];
    run('netns', 'add', name);
    try {
      // A virtual cable between this machine and the network, which has no other route.
      run('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
      run('address', 'add', `${ours}/30`, 'dev', name);
      run('link', 'set', name, 'up');
      for (const words of [`address add ${theirs}/30 dev eth0`, 'link set eth0 up', 'link set lo up'])
        run(...within, ip, ...words.split(' '));
      const { key, cert } = createSelfSigned();
      const message = {
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-opus-5', stop_reason: 'end_turn' },
        ...{ content: [{ type: 'text', text: 'hello from far away' }], stop_sequence: null },
        usage: { input_tokens: 3, output_tokens: 4 },
      };
      const vendor = await startScriptedUpstream(respondWith(200, message), {
        createServer: (onConnection) => tls.createServer({ key, cert }, onConnection) as net.Server,
      });
      const proxy = await startTunnelProxy(vendor.port, undefined, ours);
      try {
        writeFileSync(at(image, '/srv/vendor.crt'), cert);
        const port = await freePort();
        const anthropic = {
          ...{ apiKey: 'sk-ant-0123456789', baseUrl: 'https://vendor.example', models: ['claude-opus-5'] },
          tls: { ca: 'vendor.crt', servername: 'localhost' },
        };
        configure({ server: { port }, providers: { anthropic } });
        const apiKey = makeKey();
        const body = {
          ...{ model: 'anthropic/claude-opus-5', max_tokens: 50 },
          messages: [{ role: 'user', content: 'hello' }],
        };
        // Callers are in that network too: no request of this process leaves the loopback.
        const curl = async (where: string, ...words: readonly string[]): Promise<string> =>
          (
            await promisify(execFile)(ip, [
              ...[...within, 'curl', '-sS', '-w', ' %{http_code}', ...words],
              `http://127.0.0.1:${port}${where}`,
            ])
          ).stdout;
        const headers = [`x-api-key: ${apiKey}`, 'content-type: application/json', 'anthropic-version: 2023-06-01'];
        const send = (): Promise<string> =>
          curl('/v1/messages?beta=true', ...headers.flatMap((line) => ['-H', line]), ...['-d', JSON.stringify(body)]);
        const ready = async (output: () => string): Promise<void> => {
          await eventually(async () => expect(await curl('/readyz'), output()).to.match(/ 200$/));
        };
        await withGateway([ip, ...within], { HTTPS_PROXY: proxy.url }, async (output) => {
          await ready(output);
          expect(await send(), output())
            .to.include('hello from far away')
            .and.to.match(/ 200$/);
        });
        expect(proxy.requests.map(({ address }) => address)).to.deep.equal(['vendor.example:443']);
        // Without the proxy the vendor is unreachable.
        await withGateway([ip, ...within], {}, async (output) => {
          await ready(output);
          expect(await send(), output()).to.match(/ 503$/);
        });
        expect(vendor.requests.length).to.equal(1);
      } finally {
        await proxy.close();
        await vendor.close();
      }
    } finally {
      run('netns', 'delete', name);
    }
  });
});
