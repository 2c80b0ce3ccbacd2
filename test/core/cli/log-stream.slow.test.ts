import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { useTempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const SCRIPT = fileURLToPath(new URL('../support/write-log-lines.ts', import.meta.url));
const TSX = import.meta.resolve('tsx/esm');
const LINES = 2000;

function startWriter(stdout: 'pipe' | number, ...words: readonly string[]): ChildProcess {
  return spawn(process.execPath, ['--import', TSX, SCRIPT, ...words], { stdio: ['ignore', stdout, 'inherit'] });
}

/** The numbers of each writer's lines, in the order in which they are; throws for a line that is not whole. */
function numbersOf(log: string): Record<string, number[]> {
  const numbers: Record<string, number[]> = {};
  for (const line of log.trimEnd().split('\n')) {
    const { writer, at } = JSON.parse(line) as { writer: string; at: number };
    numbers[writer] = [...(numbers[writer] ?? []), at];
  }
  return numbers;
}

const ALL = Array.from({ length: LINES }, (_, at) => at);

describe('the log on stdout', function () {
  this.timeout(30_000);
  const folder = useTempFolder('log');

  it('has every line, in order, of a process that exits', async () => {
    const writer = startWriter('pipe', 'a', String(LINES), 'alone');
    if (!writer.stdout) throw new Error('it has no stdout');
    expect(numbersOf(await text(writer.stdout))).to.deep.equal({ a: ALL });
  });

  it('has whole lines of all workers, in a file', async () => {
    const file = path.join(folder, 'access.log');
    const stdout = openSync(file, 'w');
    const workers = ['a', 'b', 'c'].map((name) => startWriter(stdout, name, String(LINES), 'shared'));
    await Promise.all(workers.map((worker) => once(worker, 'exit')));
    expect(numbersOf(readFileSync(file, 'utf8'))).to.deep.equal({ a: ALL, b: ALL, c: ALL });
  });

  it('has whole lines of all workers, in a pipe', async () => {
    const words = `"${process.execPath}" --import "${TSX}" "${SCRIPT}"`;
    const workers = ['a', 'b', 'c'].map((name) => `${words} ${name} ${LINES} shared &`).join(' ');
    const shell = spawn('sh', ['-c', `${workers} wait`], { stdio: ['ignore', 'pipe', 'inherit'] });
    expect(numbersOf(await text(shell.stdout))).to.deep.equal({ a: ALL, b: ALL, c: ALL });
  });

  it('tells the last lines of a process that has no more to say', async () => {
    const file = path.join(folder, 'access.log');
    const writer = startWriter(openSync(file, 'w'), 'a', '3', 'alone', 'stay');
    await until('the lines are there', () => readFileSync(file, 'utf8').split('\n').length === 4);
    writer.kill('SIGKILL');
    expect(numbersOf(readFileSync(file, 'utf8'))).to.deep.equal({ a: [0, 1, 2] });
  });
});
