/**
 * Mutants: draws wrong lines by a seed, puts one at a time into copies of the tree and runs the quick tests that run the
 * changed function. `npm run mutants [-- WORD …] [-- --seed 1 --count 100 --jobs 2 --tests test/conformance --write]`:
 * words select by file name; `--tests` uses only tests below a folder; `--write` writes the table of
 * `docs/reliability.md`. Exits with 2 if the tests fail without a mutant.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
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
import { allPoints, drawMutants, listFiles } from './draw.ts';
import { idOf, type MutantPoint, mutate } from './points.ts';
import type { RunFunctions } from './record-functions.ts';
import { type TriedMutant, withTable } from './table.ts';

const PAGE = path.join(PACKAGE_ROOT, 'docs/reliability.md');

/** Real path, by which mocha recognizes that it is the main program. */
const MOCHA = realpathSync(path.join(PACKAGE_ROOT, 'node_modules/mocha/lib/cli/cli.js'));

/** The tests of `npm test`. */
const QUICK = ['--fgrep', '@slow', '--invert'];

/** Maximum time of the tests of one mutant: a wrong line may make a test wait forever. */
const MAX_MS = 600_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '100' },
    jobs: { type: 'string', default: '2' },
    tests: { type: 'string', default: 'test' },
    write: { type: 'boolean', default: false },
  },
});

/** Copies the tree; packages are shared with this one. */
function copyTree(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-mutants-'));
  for (const file of listFiles()) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    cpSync(path.join(PACKAGE_ROOT, file), path.join(folder, file));
  }
  symlinkSync(path.join(PACKAGE_ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  return folder;
}

interface Ended {
  readonly code: number | null;
  readonly text: string;
}

async function runMocha(
  folder: string,
  args: readonly string[],
  { env = {}, timeout }: { readonly env?: NodeJS.ProcessEnv; readonly timeout?: number } = {},
): Promise<Ended> {
  // Not through mocha's program, which runs in a child process that a kill would not reach.
  const child = spawn(process.execPath, ['--import', 'tsx/esm', MOCHA, ...QUICK, '--reporter', 'dot', ...args], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(timeout !== undefined && { timeout }),
    killSignal: 'SIGKILL',
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, text };
}

/** Runs all quick tests once without a mutant, and returns the functions that each test file runs. */
async function recordFunctions(folder: string): Promise<readonly RunFunctions[]> {
  const functions = mkdtempSync(path.join(os.tmpdir(), 'tollgate-functions-'));
  const hooks = ['--require', './test/mutants/record-functions.ts'];
  const files = [`${values.tests}/**/*.test.ts`, '--ignore', 'test/**/*.slow.test.ts', '--ignore', 'test/meta/**'];
  try {
    const args = [...hooks, '--parallel', '--jobs', values.jobs, ...files];
    const { code, text } = await runMocha(folder, args, { env: { TOLLGATE_FUNCTIONS: functions } });
    if (code !== 0) {
      console.log(text.slice(-4000));
      return [];
    }
    return readdirSync(functions).map(
      (name) => JSON.parse(readFileSync(path.join(functions, name), 'utf8')) as RunFunctions,
    );
  } finally {
    rmSync(functions, { recursive: true, force: true });
  }
}

/** Returns the test files that run a function, the quickest first. V8 names methods without their class. */
function testsOf(recorded: readonly RunFunctions[], { file, function: name }: MutantPoint): readonly string[] {
  const short = name.slice(name.lastIndexOf('.') + 1);
  const isSame = (run: string): boolean => run.replace(/^(?:get|set) |^.*\./, '') === short;
  return recorded
    .filter(({ functions }) => functions[file]?.some(isSame))
    .toSorted((a, b) => a.ms - b.ms)
    .map(({ test }) => test);
}

/** Tests a mutant: `caught` by a test, `survived`, or `not run` by any quick test. */
async function tryMutant(folder: string, point: MutantPoint, tests: readonly string[]): Promise<TriedMutant['end']> {
  if (tests.length === 0) return 'not run';
  const place = path.join(folder, point.file);
  const text = readFileSync(place, 'utf8');
  writeFileSync(place, mutate(text, point));
  try {
    // Exits although a failed test leaves handles open. A test that never ends, or a file that does not load, is a failure too.
    const { code } = await runMocha(folder, ['--bail', '--exit', '--sort', ...tests], { timeout: MAX_MS });
    return code === 0 ? 'survived' : 'caught';
  } finally {
    writeFileSync(place, text);
  }
}

const drawn = drawMutants(allPoints(positionals), Number(values.seed), Number(values.count));
const waiting = [...drawn];
const tried: TriedMutant[] = [];
const folders = Array.from({ length: Math.max(Number(values.jobs), 1) }, copyTree);

async function work(folder: string, recorded: readonly RunFunctions[]): Promise<void> {
  for (let point = waiting.shift(); point; point = waiting.shift()) {
    const startedMs = performance.now();
    const tests = testsOf(recorded, point);
    const end = await tryMutant(folder, point, tests);
    tried.push({ point, end });
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    console.log(`${end.padEnd(8)} ${seconds.padStart(6)} s  ${tests.length} test files  ${idOf(point)}`);
  }
}

try {
  if (drawn.length === 0) throw new Error(`no file name contains one of the words ${positionals.join(', ')}`);
  console.log(`seed ${values.seed}: ${drawn.length} mutants; recording the functions that each test file runs`);
  const recorded = await recordFunctions(folders[0] ?? '');
  if (recorded.length === 0) {
    console.log('The tests fail without a mutant. Fix them first.');
    process.exitCode = 2;
  } else {
    await Promise.all(folders.map((folder) => work(folder, recorded)));
    const caught = tried.filter(({ end }) => end === 'caught').length;
    console.log(`${caught} of ${tried.length} caught`);
    for (const { point, end } of tried) if (end !== 'caught') console.log(`${end}: ${idOf(point)}`);
    if (values.write && positionals.length === 0)
      writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), Number(values.seed), tried));
  }
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
