import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

/** Prints each V8 flag that is set, and whether commander was loaded before it: the program imports commander first. */
const WATCH = `
  import { createRequire, syncBuiltinESMExports } from 'node:module';
  import v8 from 'node:v8';
  const { cache } = createRequire(process.cwd() + '/');
  const { setFlagsFromString } = v8;
  v8.setFlagsFromString = (flag) => {
    const isLoaded = Object.keys(cache).some((file) => file.includes('/commander/'));
    console.log(flag, isLoaded ? 'after the program' : 'before the program');
    setFlagsFromString(flag);
  };
  syncBuiltinESMExports();`;

/** Starts a gateway that stops when its banner is written. */
const START = `data:text/javascript,${encodeURIComponent(`
  const { write } = process.stderr;
  process.stderr.write = (text, ...rest) => {
    if (String(text).includes('http://')) setImmediate(() => process.kill(process.pid, 'SIGTERM'));
    return write.call(process.stderr, text, ...rest);
  };`)}`;

describe('the program', () => {
  it('keeps its bytecode from its first import on, so that a call after half an idle minute is as fast as others', () => {
    const watch = `data:text/javascript,${encodeURIComponent(WATCH)}`;
    const args = ['--import', 'tsx/esm', '--import', watch, 'cli/main.ts', '--version'];
    const out = execFileSync(process.execPath, args, { cwd: PACKAGE_ROOT, encoding: 'utf8' });
    expect(out).to.match(/^--no-flush-bytecode before the program\n\d+\.\d+\.\d+/);
  });

  it('optimizes its functions early once the gateway is ready', () => {
    const watch = `data:text/javascript,${encodeURIComponent(WATCH)}`;
    const args = [
      '--import',
      import.meta.resolve('tsx/esm'),
      '--import',
      watch,
      '--import',
      START,
      path.join(PACKAGE_ROOT, 'cli/main.ts'),
    ];
    const cwd = mkdtempSync(path.join(tmpdir(), 'early-'));
    const out = execFileSync(process.execPath, [...args, 'start', '--port', '0'], {
      cwd,
      encoding: 'utf8',
      stdio: 'pipe',
    });
    rmSync(cwd, { recursive: true });
    expect(out).to.match(/^--(?:invocation-count-for-turbofan=1000|ticks-before-optimization=1) after the program$/m);
  });
});
