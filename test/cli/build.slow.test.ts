import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { INPUTS } from '../../config/build.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { type Running, startProgram } from '../support/processes/cli.ts';
import { until } from '../support/wait.ts';

const LISTENS = /Tollgate listens on (http:\/\/127\.0\.0\.1:\d+)/;
const BUILT = /Built in \d+ s/;
const TELLS_PID = `export default { name: 'pid', kind: 'policy', apiVersion: 1, setup(api) {
  api.route({ method: 'GET', path: '/test/pid', summary: 'Process id', auth: 'none', responses: { 200: 'The id.' },
    handler(ctx) { ctx.body = String(process.pid); } });
} };`;
const A_DAY_AGO = new Date(Date.now() - 25 * 3_600_000);

describe('G44: npm start and npm run build in a clone', function () {
  this.timeout(900_000);
  let clone = '';
  const running: Running[] = [];
  const npm = (...words: readonly string[]): Running => {
    const started = startProgram(
      ['npm', '--silent', 'run', ...words],
      clone,
      { npm_config_update_notifier: 'false' },
      true,
    );
    running.push(started);
    return started;
  };
  const start = (...words: readonly string[]): Running => npm('start', '--', '--port', '0', ...words);
  const builds = (): readonly string[] =>
    readdirSync(path.join(clone, '.build')).filter((name) => /^[0-9a-f]{16}$/.test(name));
  const title = async (url: string): Promise<string> =>
    /<title>(.*)<\/title>/.exec(await (await fetch(`${url}/docs`)).text())?.[1] ?? '';
  /** Process ids of the workers, each reached by a new connection. */
  const workerPids = async (url: string): Promise<ReadonlySet<number>> => {
    const pids = new Set<number>();
    for (let count = 0; count < 6; count += 1) {
      const response = await fetch(`${url}/test/pid`, { headers: { connection: 'close' } });
      pids.add(Number(await response.text()));
    }
    return pids;
  };
  const change = (file: string, from: string, to: string): void => {
    const place = path.join(clone, file);
    const text = readFileSync(place, 'utf8');
    expect(text).to.include(from);
    writeFileSync(place, text.replace(from, to));
  };
  const build = async (...words: readonly string[]): Promise<string> => {
    const { code, stderr } = await npm('build', ...words).finished;
    expect(code, stderr).to.equal(0);
    return stderr;
  };

  before(() => {
    clone = mkdtempSync(path.join(os.tmpdir(), 'tollgate-clone-'));
    for (const name of INPUTS.filter((each) => !each.startsWith('node_modules')))
      cpSync(path.join(PACKAGE_ROOT, name), path.join(clone, name), { recursive: true });
    symlinkSync(path.join(PACKAGE_ROOT, 'node_modules'), path.join(clone, 'node_modules'));
  });
  after(async () => {
    for (const { child } of running)
      try {
        process.kill(-(child.pid ?? 0), 'SIGTERM');
      } catch {
        // The process has already ended.
      }
    await Promise.all(running.map(({ finished }) => finished));
    rmSync(clone, { recursive: true, force: true });
  });

  it('builds once for two concurrent starts and preserves the files, lazy imports and workers of a running gateway', async () => {
    const both = [start('--log-level', 'info'), start('--log-level', 'info')];
    const [first = '', second = ''] = await Promise.all(both.map(async (each) => (await each.seen(LISTENS))[1]));
    const texts = both.map((each) => each.stderr());
    expect(texts.filter((text) => BUILT.test(text))).to.have.length(1);
    expect(texts.filter((text) => text.includes('Waiting for another build'))).to.have.length(1);
    expect(texts.join('')).to.match(/\[1\/3\] compile the program[\s\S]*\[3\/3\] bundle/);
    expect(await Promise.all([first, second].map(title))).to.deep.equal(['Tollgate API', 'Tollgate API']);

    // Another start builds nothing.
    const third = start();
    await third.seen(LISTENS);
    expect(third.stderr()).to.include('Build is up to date').and.not.match(/\[1\//);

    // A gateway with two workers, which loads the form parser only with the first form.
    writeFileSync(path.join(clone, 'pid.mjs'), TELLS_PID);
    writeFileSync(
      path.join(clone, 'two.yaml'),
      'server: { workers: 2 }\nproviders: { echo: {} }\nplugins: [./pid.mjs]\n',
    );
    const two = start('--config', 'two.yaml', '--log-level', 'info');
    const [, twoUrl = ''] = await two.seen(LISTENS);

    // An earlier build that no process uses.
    const unused = '0123456789abcdef';
    mkdirSync(path.join(clone, '.build', unused));
    const before = builds();
    expect(before).to.have.length(2);
    for (const name of before) utimesSync(path.join(clone, '.build', name), A_DAY_AGO, A_DAY_AGO);
    change('openapi/docs-pages.ts', '<title>Tollgate API</title>', '<title>Another build</title>');
    change('plugins/console/app/style.css', '', '/* another */\n');
    expect(await build()).to.match(BUILT);
    expect(builds(), 'the build in use and the new one').to.have.length(2).and.not.include(unused);

    // Files that the running gateways had not loaded before.
    for (const url of [first, twoUrl]) {
      for (const file of ['/docs/viewer.js', '/docs/config', '/docs/pages/start.html'])
        expect((await fetch(url + file)).status, file).to.equal(200);
      const page = await (await fetch(`${url}/console`)).text();
      const script = /src="([^"]+\.js)"/.exec(page)?.[1] ?? 'no script';
      expect((await fetch(new URL(script, `${url}/console/`))).status).to.equal(200);
      const form = new FormData();
      form.set('file', new File(['RIFF'], 'a.wav', { type: 'audio/wav' }));
      form.set('model', 'echo/none');
      const response = await fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', body: form });
      expect(response.status).to.be.within(400, 499);
    }
    const killed = await workerPids(twoUrl);
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    await until('workers replace those that were killed', async () => {
      const pids = await workerPids(twoUrl).catch(() => killed);
      return ![...pids].some((pid) => killed.has(pid));
    });
    for (let count = 0; count < 8; count += 1) expect(await title(twoUrl)).to.equal('Tollgate API');

    const newest = start();
    const [, newestUrl = ''] = await newest.seen(LISTENS);
    expect(await title(newestUrl)).to.equal('Another build');
  });

  it('takes over from a build whose process was killed', async () => {
    const lock = path.join(clone, '.build/lock');
    const { child, finished } = startProgram([process.execPath, '-e', '0'], clone);
    await finished;
    writeFileSync(lock, JSON.stringify({ pid: child.pid, host: os.hostname() }));
    mkdirSync(path.join(clone, '.build', `unfinished-${child.pid}-0`));
    expect(await build()).not.to.include('Waiting');
    expect(readdirSync(path.join(clone, '.build')).filter((name) => /unfinished|lock/.test(name))).to.deep.equal([]);
  });

  it('makes a folder to publish, and a link again with the next build', async () => {
    await build('--', '--publish');
    expect(lstatSync(path.join(clone, 'dist')).isDirectory()).to.equal(true);
    expect(readdirSync(path.join(clone, 'dist')))
      .to.include.members(['cli', 'console'])
      .and.not.include('in-use');
    await build();
    expect(lstatSync(path.join(clone, 'dist')).isSymbolicLink()).to.equal(true);
  });

  it('tracks every source of a build', () => {
    const dist = path.join(clone, 'dist');
    const scripts = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.js') && !name.startsWith('console/'),
    );
    const unknown = scripts.filter((name) => !INPUTS.some((input) => name.startsWith(`${input}/`)));
    expect(unknown).to.deep.equal([]);
  });
});
