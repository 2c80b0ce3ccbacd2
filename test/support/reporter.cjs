/**
 * A reporter for runs of many files: a dot a file (an F where a test failed), then what failed, the commands that run those files alone,
 * and the files that took longest. FAILED_FILES names a file that gets the failed ones, one a line.
 */
const { writeFileSync } = require('node:fs');
const path = require('node:path');
const Mocha = require('mocha');

const { EVENT_RUN_BEGIN, EVENT_RUN_END, EVENT_TEST_FAIL, EVENT_TEST_END, EVENT_HOOK_END } = Mocha.Runner.constants;

const DOTS_A_LINE = 100;
const SLOWEST = 10;

/** The file of a test, or of a hook that failed. */
function fileOf(runnable) {
  for (let at = runnable; at; at = at.parent) if (at.file) return path.relative(process.cwd(), at.file);
  return '(no file)';
}

module.exports = class Files extends Mocha.reporters.Base {
  #tookMs = new Map();
  #failed = new Set();
  #current;
  #dots = 0;

  constructor(runner, options) {
    super(runner, options);
    runner.once(EVENT_RUN_BEGIN, () => process.stdout.write('\n'));
    // With `--parallel` all events of a file come one after the other, when it has ended.
    for (const event of [EVENT_TEST_END, EVENT_HOOK_END])
      runner.on(event, (runnable) => {
        this.#enter(fileOf(runnable));
        this.#tookMs.set(this.#current, (this.#tookMs.get(this.#current) ?? 0) + (runnable.duration ?? 0));
      });
    runner.on(EVENT_TEST_FAIL, (runnable) => {
      this.#enter(fileOf(runnable));
      this.#failed.add(this.#current);
    });
    runner.once(EVENT_RUN_END, () => this.#end());
  }

  #enter(file) {
    if (file === this.#current) return;
    this.#leave();
    this.#current = file;
  }

  #leave() {
    if (this.#current === undefined) return;
    process.stdout.write(this.#failed.has(this.#current) ? 'F' : '.');
    this.#dots += 1;
    if (this.#dots % DOTS_A_LINE === 0) process.stdout.write('\n');
  }

  #end() {
    this.#leave();
    this.epilogue();
    const slowest = [...this.#tookMs].sort(([, a], [, b]) => b - a).slice(0, SLOWEST);
    if (this.#tookMs.size > SLOWEST) {
      console.log('  slowest files:');
      for (const [file, ms] of slowest) console.log(`    ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}`);
    }
    if (this.#failed.size > 0) {
      console.log('\n  run what failed alone:');
      for (const file of this.#failed) console.log(`    npx mocha ${file}`);
    }
    console.log();
    const list = process.env['FAILED_FILES'];
    if (list !== undefined) writeFileSync(list, [...this.#failed].join('\n'));
  }
};
