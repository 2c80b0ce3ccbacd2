import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { freePort } from '../support/processes/server-process.ts';
import { eventually } from '../support/wait.ts';

// Docker does not run here: the steps of deploy/Dockerfile are done by hand, in folders that stand for its stages, and the result is started.

interface Instruction {
  readonly word: string;
  readonly rest: string;
}

/** The instructions of a stage, lines that go on joined. */
function stageOf(text: string, name: string): readonly Instruction[] {
  const stages = text.replaceAll(/\\\n\s*/g, '').split(/^FROM /m);
  const stage = stages.find((part) => new RegExp(`^\\S+ AS ${name}\\n`).test(part)) ?? '';
  return [...stage.matchAll(/^([A-Z]+) (.+)$/gm)].map(([, word = '', rest = '']) => ({ word, rest }));
}

/** What a checkout holds, without what .dockerignore leaves out. */
function copyContext(to: string): void {
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: PACKAGE_ROOT, encoding: 'utf8', maxBuffer: 1e8 });
  for (const file of tracked.split('\0').filter(Boolean)) {
    if (!existsSync(path.join(PACKAGE_ROOT, file))) continue;
    mkdirSync(path.dirname(path.join(to, file)), { recursive: true });
    cpSync(path.join(PACKAGE_ROOT, file), path.join(to, file));
  }
}

/** A step of a stage. What it wrote is told when it fails: compilers write to where an error of Node does not look. */
function run(step: string, cwd: string, env: NodeJS.ProcessEnv): void {
  const { status, signal, stdout, stderr } = spawnSync('/bin/sh', ['-ec', step], { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${step}: ${signal ?? status}\n${stdout.slice(-4000)}\n${stderr.slice(-4000)}`);
}

describe('the image of deploy/Dockerfile, built by hand', function () {
  // Six minutes on a machine whose cores others have.
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

  it('starts, is ready, and answers a chat', async () => {
    const port = await freePort();
    writeFileSync(
      at(image, '/srv/tollgate.config.json'),
      JSON.stringify({ server: { port }, providers: { echo: {} } }),
    );
    const env = { PATH: process.env['PATH'], NODE_ENV: 'production' };
    const tollgate = (...words: readonly string[]): string =>
      execFileSync(at(image, '/usr/local/bin/tollgate'), words, { cwd: at(image, '/srv'), env, encoding: 'utf8' });
    const made = JSON.parse(tollgate('keys', 'create', '--user', 'ada', '--json')) as {
      data: { api_key: string };
    };
    const [, words = ''] = /^CMD (\[.*\])$/m.exec(text) ?? [];
    const started = spawn(at(image, '/usr/local/bin/tollgate'), JSON.parse(words) as string[], {
      cwd: at(image, '/srv'),
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [started.stdout, started.stderr]) stream.on('data', (bytes) => (output += String(bytes)));
    const ended = new Promise<number | null>((resolve) => started.once('exit', resolve));
    try {
      const url = `http://127.0.0.1:${port}`;
      await eventually(async () => expect((await fetch(`${url}/readyz`)).status, output).to.equal(200));
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${made.data.api_key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hello there' }] }),
      });
      expect(await response.text(), output).to.include('hello there');
    } finally {
      started.kill('SIGTERM');
    }
    expect(await ended, output).to.equal(0);
  });
});
