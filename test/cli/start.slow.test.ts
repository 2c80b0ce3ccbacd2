import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { buildProgram } from '../../config/build.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { type Running, startCli, startProgram } from '../support/processes/cli.ts';
import { freePort } from '../support/processes/server-process.ts';
import { startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../support/wait.ts';

const run = promisify(execFile);
const LISTENS = /Tollgate listens on (http:\/\/127\.0\.0\.1:\d+)[\s\S]*Try it:\n {2}(curl .*)\n/;

/** Preloaded: prints the loaded CommonJS files when the banner is written. */
const TELL_LOADED = `
  const write = process.stderr.write;
  process.stderr.write = function (text, ...rest) {
    const files = Object.keys(require('node:module')._cache);
    if (/listens on/.test(text)) write.call(this, 'LOADED ' + JSON.stringify(files) + '\\n');
    return write.call(this, text, ...rest);
  };
`;

function loadedFiles(started: Running): readonly string[] {
  return JSON.parse(/LOADED (.*)/.exec(started.stderr())?.[1] ?? '[]') as readonly string[];
}

describe('tollgate start', () => {
  const folder = useTempFolder('cli-start');
  const running: Running[] = [];
  afterEach(async () => {
    for (const { child, finished } of running.splice(0)) {
      child.kill('SIGKILL');
      await finished;
    }
  });

  /** Starts the program on a free port; returns the banner's values. */
  async function start(cwd: string, words: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
    const started = startCli(['start', '--port', '0', ...words], cwd, env);
    running.push(started);
    const [banner, url = '', curl = ''] = await started.seen(LISTENS);
    return { started, banner, url, curl };
  }

  /** Runs a printed line unchanged, but without curl's progress output. */
  const runLine = async (line: string, env: Readonly<Record<string, string>> = {}): Promise<string> =>
    (
      await run('sh', ['-c', line.replace(/^curl /, 'curl -sS --fail-with-body --max-time 10 ')], {
        env: { ...process.env, ...env },
      })
    ).stdout;

  it('loads slow modules only after it listens', async () => {
    const own = path.join(folder, 'loads');
    mkdirSync(own);
    const preload = path.join(own, 'tell-loaded.cjs');
    writeFileSync(preload, TELL_LOADED);
    const { started } = await start(own, [], { NODE_OPTIONS: `--require=${preload}` });
    const loaded = loadedFiles(started).map((file) => /.*node_modules.((@[^/]+.)?[^/]+)/.exec(file)?.[1]);
    const packages = [...new Set(loaded)];
    expect(packages).to.include.members(['koa', 'prom-client']);
    expect(packages).not.to.include.oneOf(['got', 'jose', 'koa-body', 'jiti', 'parse5', 'pg']);
  });

  it('as built compiles no schema, so that Ajv is not loaded, and serves the page of the configuration', async function () {
    this.timeout(900_000); // it builds
    const own = path.join(folder, 'built');
    mkdirSync(own);
    for (const name of ['package.json', 'config'])
      cpSync(path.join(PACKAGE_ROOT, name), path.join(own, name), { recursive: true });
    symlinkSync(path.join(PACKAGE_ROOT, 'node_modules'), path.join(own, 'node_modules'));
    const dist = path.join(own, 'dist');
    cpSync(await buildProgram(), dist, { recursive: true });
    const preload = path.join(own, 'tell-loaded.cjs');
    writeFileSync(preload, TELL_LOADED);
    const program = [process.execPath, '--require', preload, path.join(dist, 'cli/main.js')];
    const started = startProgram([...program, 'start', '--port', '0'], own);
    running.push(started);
    const [, url = ''] = await started.seen(LISTENS);
    const loaded = loadedFiles(started);
    const compiled = ['requests', 'settings'].map((set) => path.join(dist, `compiled/${set}.cjs`));
    expect(loaded).to.include.members(compiled);
    expect(loaded.filter((file) => /\/ajv\/(?!dist\/runtime\/)/.test(file))).to.deep.equal([]);

    const page = await fetch(`${url}/docs/config`);
    expect(page.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    expect(await page.text()).to.include('<td><code>publicUrl</code></td>');
  });

  it('prints a working curl line, streaming too, and the key only once', async () => {
    const { started, banner, curl } = await start(folder);
    expect(banner).to.include('providers  echo; without a key: openai');
    const whole = JSON.parse(await runLine(curl)) as { choices: { message: { content: string } }[] };
    expect(whole.choices[0]?.message.content).to.equal('Hello there');
    const streamed = await runLine(curl.replace('"messages"', '"stream":true,"messages"'));
    expect(streamed)
      .to.match(/^data: \{.*"chat\.completion\.chunk"/)
      .and.match(/data: \[DONE\]\n\n$/);

    started.child.kill('SIGTERM');
    expect((await started.finished).code).to.equal(0);
    const key = /Bearer (tg_\w+)/.exec(curl)?.[1] ?? 'no key';
    expect(started.stdout(), 'the log').not.to.include(key);

    const again = await start(folder);
    expect(again.banner).not.to.include('Your first API key').and.not.to.include(key);
    expect(again.curl).to.include('$TOLLGATE_API_KEY');
    expect(JSON.parse(await runLine(again.curl, { TOLLGATE_API_KEY: key }))).to.have.property('id');
  });

  it('D44 prints how to create a key if there is no new one, and both lines work unchanged', async () => {
    const own = path.join(folder, 'no key');
    mkdirSync(own);
    const config = path.join(own, 'own file.json');
    writeFileSync(config, JSON.stringify({ providers: { echo: { models: ["it's"] } } }));
    const { banner, curl } = await start(own, ['--config', config]);
    const make = /To create an API key:\n {2}(export TOLLGATE_API_KEY=.*)\n/.exec(banner)?.[1] ?? '';
    expect(make).to.match(/keys create --user local --config/);
    // Node needs a loader to run from the sources.
    const env = { NODE_OPTIONS: `--import=${import.meta.resolve('tsx/esm')}` };
    const { stdout } = await run('sh', ['-c', `${make}\n${curl} -sS`], { cwd: own, env: { ...process.env, ...env } });
    expect(stdout).to.include('"chat.completion"');
    const known = await start(own, ['--config', config], { TOLLGATE_API_KEY: 'tg_known' });
    expect(known.banner).not.to.include('To create an API key');
  });

  it('D47 started by npm start ends when npm is stopped', async () => {
    const own = path.join(folder, 'npm');
    mkdirSync(path.join(own, 'dist/cli'), { recursive: true });
    const { scripts } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    writeFileSync(
      path.join(own, 'package.json'),
      JSON.stringify({ scripts: { build: 'true', start: scripts['start'] } }),
    );
    const program = `process.on('SIGTERM', () => process.exit()); setInterval(() => {}, 1000); console.log('pid', process.pid);`;
    writeFileSync(path.join(own, 'dist/cli/main.js'), program);
    const npm = spawn('npm', ['start'], { cwd: own });
    const pid = await new Promise<number>((resolve) => {
      let text = '';
      npm.stdout.on('data', (bytes) => {
        text += String(bytes);
        const found = /pid (\d+)\n/.exec(text)?.[1];
        if (found !== undefined) resolve(Number(found));
      });
    });
    const isAlive = () => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    try {
      npm.kill('SIGTERM');
      await until('the gateway ends with npm', () => !isAlive());
    } finally {
      if (isAlive()) process.kill(pid, 'SIGKILL');
    }
  });

  it('enables openai when OPENAI_API_KEY is set, without a file', async () => {
    const cwd = path.join(folder, 'openai');
    mkdirSync(cwd);
    const { banner } = await start(cwd, [], { OPENAI_API_KEY: 'sk-canary-0123456789' });
    expect(banner).to.match(/providers {2}echo, openai; without a key: deepseek/);
    expect(banner).not.to.include('canary');
  });

  it('logs nothing but JSON lines to stdout', async () => {
    const { started, curl } = await start(folder);
    await runLine(curl.replace('$TOLLGATE_API_KEY', 'tg_wrong')).catch(() => '');
    started.child.kill('SIGTERM');
    const { stdout } = await started.finished;
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { msg: string; status: number });
    expect(lines.some(({ msg, status }) => msg === 'request' && status === 401)).to.equal(true);
  });

  it('exits with 69 and a hint when the port is in use', async () => {
    const { url } = await start(folder);
    const second = startCli(['start', '--port', new URL(url).port], folder);
    running.push(second);
    const { code, stderr } = await second.finished;
    expect(code).to.equal(69);
    expect(stderr)
      .to.match(/cannot listen/)
      .and.match(/Set another one with --port/);
  });

  it('X07 logs an uncaught rejection of a plugin with its name, and continues', async () => {
    const cwd = path.join(folder, 'stray');
    mkdirSync(cwd);
    const route = `api.route({ method: 'GET', path: '/stray', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { void Promise.reject(new Error('not caught')); ctx.body = {}; } })`;
    writeFileSync(
      path.join(cwd, 'stray.mjs'),
      `export default { name: 'stray', kind: 'policy', apiVersion: 1, setup(api) { ${route}; } };`,
    );
    const config = { store: 'memory:', providers: { echo: {} }, plugins: ['./stray.mjs'] };
    writeFileSync(path.join(cwd, 'tollgate.config.json'), JSON.stringify(config));
    const { started, url } = await start(cwd);
    expect((await fetch(`${url}/stray`)).status).to.equal(200);
    await eventually(async () => expect(started.stdout()).to.include('not caught'));
    expect(started.stdout()).to.include('"plugin":"./stray.mjs"').and.include('the gateway continues');
    expect((await fetch(`${url}/readyz`)).status).to.equal(200);
    started.child.kill('SIGTERM');
    expect((await started.finished).code).to.equal(0);
  });

  it('listens on the configured address', async () => {
    const port = await freePort();
    const file = path.join(folder, 'here.yaml');
    writeFileSync(
      file,
      `server: { port: ${port} }\nstore: 'memory:'\nproviders: { echo: {} }\nauth: { api-key: { bootstrap: true } }\n`,
    );
    const started = startCli(['start', '-c', file], folder);
    running.push(started);
    const [, url] = await started.seen(LISTENS);
    expect(url).to.equal(`http://127.0.0.1:${port}`);
  });

  it('waits for a running response, and ends immediately on a second signal', async () => {
    const upstream = await startScriptedUpstream((wire) => wire.hang());
    const cwd = path.join(folder, 'draining');
    mkdirSync(cwd);
    const providers = { slow: { plugin: 'openai-compatible', baseUrl: `${upstream.url}/v1`, models: ['*'] } };
    const config = { store: 'memory:', providers, auth: { 'api-key': { bootstrap: true } } };
    writeFileSync(path.join(cwd, 'tollgate.config.json'), JSON.stringify(config));
    try {
      const { started, curl } = await start(cwd);
      const pending = runLine(curl.replace(/"model":"[^"]*"/, '"model":"slow/m"')).catch(() => 'cut');
      await upstream.request(0);
      started.child.kill('SIGINT');
      await started.seen(/SIGINT: draining/);
      started.child.kill('SIGINT');
      expect((await started.finished).code).to.equal(130);
      expect(await pending).to.equal('cut');
    } finally {
      await upstream.close();
    }
  });
});
