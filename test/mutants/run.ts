/**
 * Mutants: puts one wrong line at a time into copies of the tree and runs the tests that must detect it. `npm run
 * mutants [-- WORD …] [-- --jobs 2] [-- --write]`: words select by subject or file; `--write` writes the table of
 * `docs/reliability.md`. Exits with 1 if a mutant survives, and with 2 if the tests fail without a mutant.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { LISTS, listFiles, type Mutant, mutantsOf, mutate, withTable } from './mutants.ts';

const PAGE = path.join(PACKAGE_ROOT, 'docs/reliability.md');

/** Real path, by which mocha recognizes that it is the main program. */
const MOCHA = realpathSync(path.join(PACKAGE_ROOT, 'node_modules/mocha/lib/cli/cli.js'));

/** A wrong line may make a test wait forever. */
const LONGEST_MS = 600_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { jobs: { type: 'string', default: '2' }, write: { type: 'boolean', default: false } },
});

/** Result of a test run: `failed` by a test, `broken` without a failed test. */
type End = 'passed' | 'failed' | 'broken';

/** Copies the tree, with the packages of this one. */
function copyTree(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-mutants-'));
  for (const file of listFiles()) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    cpSync(path.join(PACKAGE_ROOT, file), path.join(folder, file));
  }
  symlinkSync(path.join(PACKAGE_ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  return folder;
}

/** Runs tests in a copy up to the first failure. */
async function runTests(folder: string, tests: readonly string[]): Promise<End> {
  // Exits although a failed test leaves handles open.
  const mocha = ['--bail', '--exit', '--reporter', 'dot', ...tests];
  // Not through mocha's program, which runs in a child process that a kill would not reach.
  const args = ['--import', 'tsx/esm', MOCHA, ...mocha];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LONGEST_MS,
    killSignal: 'SIGKILL',
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code === 0 && /^ {2}\d+ passing/m.test(text)) return 'passed';
  // A test without an end counts as detection.
  if (code === null || /^ {2}\d+ failing$/m.test(text)) return 'failed';
  console.log(text);
  return 'broken';
}

/** Runs the tests of a mutant. */
async function tryMutant(folder: string, { file, from, to, tests }: Mutant): Promise<End> {
  const place = path.join(folder, file);
  const text = readFileSync(place, 'utf8');
  writeFileSync(place, mutate(text, from, to));
  try {
    return await runTests(folder, tests);
  } finally {
    writeFileSync(place, text);
  }
}

const mutants = mutantsOf(LISTS).filter(
  ({ room, file }) => positionals.length === 0 || positionals.some((word) => `${room} ${file}`.includes(word)),
);
const waiting = [...mutants];
const survivors: Mutant[] = [];
const folders = Array.from({ length: Math.max(Number(values.jobs), 1) }, copyTree);

async function work(folder: string): Promise<void> {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const startedMs = performance.now();
    const end = await tryMutant(folder, next);
    const word = { failed: 'caught', passed: 'SURVIVED', broken: 'DOES NOT RUN' }[end];
    if (end !== 'failed') survivors.push(next);
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    console.log(`${word.padEnd(8)} ${seconds.padStart(5)} s  ${next.file}: ${next.wrong}`);
  }
}

try {
  if (mutants.length === 0) throw new Error(`no mutant's room or file has one of the words ${positionals.join(', ')}`);
  const tests = [...new Set(mutants.flatMap((each) => each.tests))];
  console.log(`${mutants.length} mutants, ${tests.length} files of tests; first without any mutant`);
  if ((await runTests(folders[0] ?? '', tests)) !== 'passed') {
    console.log('The tests fail without a mutant: mend them first.');
    process.exitCode = 2;
  } else {
    await Promise.all(folders.map(work));
    console.log(`${mutants.length - survivors.length} of ${mutants.length} caught`);
    for (const { file, wrong } of survivors) console.log(`not caught: ${file}: ${wrong}`);
    process.exitCode = survivors.length > 0 ? 1 : 0;
    if (values.write && positionals.length === 0)
      writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), mutants, survivors));
  }
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
