import { execFile, execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { createRandom, pick } from '../chaos/random.ts';

const MOCHA = path.join(PACKAGE_ROOT, 'node_modules/mocha/bin/mocha.js');
const COUNT = 10;
/** Most time of one file: the slowest take a minute on two busy cores. */
const MAX_MS = 300_000;

/** Files of the quick tests, which run in a worker of `npm test` that ends whatever a file leaves open. */
const FILES = execFileSync('git', ['ls-files', 'test/**/*.test.ts'], { cwd: PACKAGE_ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && !file.endsWith('.slow.test.ts'));

/** Other files each day, the same all day. `TOLLGATE_TEST_SEED` repeats a draw. */
const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? Math.floor(Date.now() / 86_400_000));

/** Runs one file as a person does; rejects if it fails or does not end by itself. */
function runAlone(file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [MOCHA, '--reporter', 'dot', file],
      // A group of its own: mocha runs the tests in a child process, which a signal to mocha alone would leave.
      { cwd: PACKAGE_ROOT, timeout: 0, maxBuffer: 2 ** 26, detached: true } as object,
      (error, stdout) => {
        clearTimeout(timer);
        if (error) reject(new Error(`${file} fails or does not end by itself:\n${stdout.slice(-4000)}`));
        else resolve();
      },
    );
    const timer = setTimeout(() => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    }, MAX_MS);
  });
}

describe(`ten files of the quick tests, drawn by the seed ${SEED},`, function () {
  this.timeout(COUNT * MAX_MS);
  const random = createRandom(SEED);
  const drawn = new Set<string>();
  while (drawn.size < COUNT) drawn.add(pick(random, FILES));

  it('are among all of them', () => {
    expect(FILES.length).to.be.above(400);
  });

  for (const file of drawn) it(`pass alone, and end by themselves: ${file}`, () => runAlone(file));
});
