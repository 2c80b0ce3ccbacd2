import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { ALL_CASES } from '../support/generated-cases.ts';
import { COPIED, COPIES_VARIABLE, copyPlugins } from '../support/plugins/plugin-copies.ts';

const run = promisify(execFile);

/** Suites that test these plugins in complete gateways. */
const SUITES = [
  'app/keys.test.ts',
  'app/accounts.test.ts',
  'app/limits.test.ts',
  'app/streams.test.ts',
  'app/bad-input.test.ts',
  'app/observability.test.ts',
  'app/openai-client.test.ts',
  'conformance/dialects.test.ts',
  'ingress/messages.test.ts',
  'ingress/google-genai.test.ts',
  'ingress/responses.test.ts',
  'ingress/completions.test.ts',
];

describe('copies of built-in plugins outside the repository', function () {
  this.timeout(600_000);
  const folder = useTempFolder('copies');

  it('pass the suites of the built-in ones', async () => {
    copyPlugins(
      COPIED.map(({ file }) => file),
      folder,
    );
    const mocha = path.join(PACKAGE_ROOT, 'node_modules', 'mocha', 'bin', 'mocha.js');
    const args = [mocha, '--timeout', '60000', ...SUITES.map((suite) => path.join('test', suite))];
    const env = { ...process.env, [COPIES_VARIABLE]: folder, [ALL_CASES]: 'yes' };
    const { stdout, stderr } = await run(process.execPath, args, {
      cwd: PACKAGE_ROOT,
      env,
      maxBuffer: 10_000_000,
    }).catch((error: { stdout: string; stderr: string }) => error);
    expect(stderr, 'a suite that is not there').not.to.include('Cannot find any files');
    expect(stdout, stderr).to.match(/\d+ passing/);
    expect(stdout).not.to.match(/\d+ failing/);
  });
});
