import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { makeFolder, removeFolders, useTempFolder } from '../support/folders.ts';
import { startCli } from '../support/processes/cli.ts';
import { until } from '../support/wait.ts';

const SCRIPT = fileURLToPath(new URL('./write-log-lines.ts', import.meta.url));
const TSX = import.meta.resolve('tsx/esm');
const LINES = 2000;

function startWriter(stdout: 'pipe' | number, ...words: readonly string[]): ChildProcess {
  return spawn(process.execPath, ['--import', TSX, SCRIPT, ...words], { stdio: ['ignore', stdout, 'inherit'] });
}

/** Line numbers of each writer, in order of their appearance; throws for an incomplete line. */
function numbersOf(log: string): Record<string, number[]> {
  const numbers: Record<string, number[]> = {};
  for (const line of log.trimEnd().split('\n')) {
    const { writer, at } = JSON.parse(line) as { writer: string; at: number };
    numbers[writer] = [...(numbers[writer] ?? []), at];
  }
  return numbers;
}

const ALL = Array.from({ length: LINES }, (_, at) => at);

describe('the log on stdout', () => {
  const folder = useTempFolder('log');
  afterEach(removeFolders);

  for (const name of ['alone', 'a'])
    it(`has every line, in order, of a process that exits (${name === 'alone' ? 'the only one' : 'one of several'})`, async () => {
      const writer = startWriter('pipe', name, String(LINES));
      if (!writer.stdout) throw new Error('it has no stdout');
      expect(numbersOf(await text(writer.stdout))).to.deep.equal({ [name]: ALL });
    });

  it('has complete lines of all workers, in a file', async () => {
    const file = path.join(folder, 'access.log');
    const stdout = openSync(file, 'w');
    const workers = ['a', 'b', 'c'].map((name) => startWriter(stdout, name, String(LINES)));
    await Promise.all(workers.map((worker) => once(worker, 'exit')));
    expect(numbersOf(readFileSync(file, 'utf8'))).to.deep.equal({ a: ALL, b: ALL, c: ALL });
  });

  it('has complete lines of all workers, in a pipe', async () => {
    const words = `"${process.execPath}" --import "${TSX}" "${SCRIPT}"`;
    const workers = ['a', 'b', 'c'].map((name) => `${words} ${name} ${LINES} &`).join(' ');
    const shell = spawn('sh', ['-c', `${workers} wait`], { stdio: ['ignore', 'pipe', 'inherit'] });
    expect(numbersOf(await text(shell.stdout))).to.deep.equal({ a: ALL, b: ALL, c: ALL });
  });

  it('contains the last lines of an idle process', async () => {
    const file = path.join(folder, 'access.log');
    const writer = startWriter(openSync(file, 'w'), 'a', '3', 'stay');
    await until('the lines are there', () => readFileSync(file, 'utf8').split('\n').length === 4);
    writer.kill('SIGKILL');
    expect(numbersOf(readFileSync(file, 'utf8'))).to.deep.equal({ a: [0, 1, 2] });
  });

  for (const format of ['json', 'pretty'])
    it(`does not stop a gateway when the disk is full (${format}): it reports that once, and exits normally`, async function () {
      if (!existsSync('/dev/full')) this.skip();
      const config = `store: 'memory:'\nproviders: { echo: {} }\nserver: { port: 0 }\nlogging: { format: ${format} }\n`;
      const cwd = makeFolder({ 'tollgate.config.yaml': config });
      const running = startCli(['start'], cwd, {}, 'exec >/dev/full');
      const [, url = ''] = await running.seen(/listens on (http:\S+)/);
      for (let at = 0; at < 20; at++) expect((await fetch(`${url}/v1/models`)).status).to.equal(401);
      await running.seen(/The log cannot be written \(ENOSPC\)/);
      expect((await fetch(`${url}/readyz`)).status).to.equal(200);
      running.child.kill('SIGTERM');
      const { code, stderr } = await running.finished;
      expect(code).to.equal(0);
      expect(stderr.match(/cannot be written/g)).to.have.length(1);
    });

  it('does not stop a gateway when the reader of its log disconnects: it reports that once', async () => {
    const config = "store: 'memory:'\nproviders: { echo: {} }\nserver: { port: 0 }\n";
    const running = startCli(['start'], makeFolder({ 'tollgate.config.yaml': config }));
    const [, url = ''] = await running.seen(/listens on (http:\S+)/);
    running.child.stdout?.destroy();
    for (let at = 0; at < 20; at++) expect((await fetch(`${url}/v1/models`)).status).to.equal(401);
    await running.seen(/The log cannot be written \(EPIPE\)/);
    expect((await fetch(`${url}/readyz`)).status).to.equal(200);
    running.child.kill('SIGTERM');
    const { code, stderr } = await running.finished;
    expect(code).to.equal(0);
    expect(stderr.match(/cannot be written/g)).to.have.length(1);
  });
});
