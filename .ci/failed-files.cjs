/** A reporter for Mocha: `spec`, and in the file that FAILED_FILES names the test files in which something failed, one a line. */
const { writeFileSync } = require('node:fs');
const Mocha = require('mocha');

const { EVENT_RUN_END, EVENT_TEST_FAIL } = Mocha.Runner.constants;

module.exports = class FailedFiles extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const files = new Set();
    // A hook that failed is told here too, with its file.
    runner.on(EVENT_TEST_FAIL, ({ file, parent }) => files.add(file ?? parent?.file));
    runner.once(EVENT_RUN_END, () => writeFileSync(process.env.FAILED_FILES, [...files].join('\n')));
  }
};
