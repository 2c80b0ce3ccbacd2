import { execFile } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

const run = promisify(execFile);
/** `dist` is a link to the newest build. */
const LINK = path.join(PACKAGE_ROOT, 'dist');
const DIST = existsSync(LINK) ? realpathSync(LINK) : LINK;
const LOG_IMPORTS = new URL('../support/processes/log-imports.mjs', import.meta.url).href;

/** Floors that a plugin may not import. */
const ABOVE = /^(?:core|egress|cli|config|models|routing|openapi)\//;

/** Libraries that are loaded only if the configuration needs them. */
const HEAVY = ['pg', '@keyv/redis', '@keyv/postgres', 'ws', 'nodemailer', 'unpdf', 'parse5', 'csv-parse'];

/** Modules loaded by an import from the build: its own files from `dist/`, and packages. */
async function importsOf(
  module: string,
): Promise<{ readonly files: readonly string[]; readonly packages: readonly string[] }> {
  const code = `await import(${JSON.stringify(module)}); process.exit()`;
  const { stdout } = await run(process.execPath, ['--import', LOG_IMPORTS, '--input-type=module', '-e', code], {
    cwd: PACKAGE_ROOT,
    maxBuffer: 2 ** 24,
  });
  const urls = [...stdout.matchAll(/^IMPORTED (file:.*)$/gm)].map(([, url = '']) => fileURLToPath(url));
  return {
    files: urls.filter((file) => file.startsWith(`${DIST}${path.sep}`)).map((file) => path.relative(DIST, file)),
    packages: [
      ...new Set(
        urls.flatMap((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(file)?.[1] ?? []),
      ),
    ],
  };
}

const fileOf = (name: string): string => pathToFileURL(path.join(DIST, name)).href;

/** Modules of all built-in plugins of a kind. */
function pluginsOf(kind: string): readonly string[] {
  const folder = path.join(DIST, 'plugins', kind);
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isFile()) return entry.name.endsWith('.js') ? [`plugins/${kind}/${entry.name}`] : [];
    const index = `plugins/${kind}/${entry.name}/index.js`;
    return existsSync(path.join(DIST, index)) && entry.name !== 'kit' ? [index] : [];
  });
}

describe('modules loaded by an import', () => {
  before(function () {
    if (!existsSync(path.join(DIST, 'contract/index.js'))) this.skip();
  });

  it('of `tollgate` are the contract only', async () => {
    const { files, packages } = await importsOf('tollgate');
    expect(files.filter((file) => !file.startsWith('contract/'))).to.deep.equal([]);
    expect(files).to.include('contract/index.js');
    expect(packages).to.deep.equal([]);
  });

  it('of `tollgate/gateway` are the server, without optional libraries', async () => {
    const { files, packages } = await importsOf('tollgate/gateway');
    expect(files).to.include('core/app.js');
    expect(packages.filter((name) => HEAVY.includes(name))).to.deep.equal([]);
  });

  for (const kind of [
    'providers',
    'policies',
    'stores',
    'guardrails',
    'dialects',
    'operations',
    'tts',
    'auth',
    'agents',
    'secrets',
  ])
    it(`of each of ${kind} include nothing of core, egress, the program and the configuration`, async () => {
      const plugins = pluginsOf(kind);
      expect(plugins).to.not.be.empty;
      // One process is enough, because the file names identify the plugin.
      const code = plugins.map((name) => `await import(${JSON.stringify(fileOf(name))});`).join('\n');
      const { files } = await importsOf(`data:text/javascript,${encodeURIComponent(code)}`);
      expect(files.filter((file) => ABOVE.test(file))).to.deep.equal([]);
      expect(files).to.include(plugins[0]);
    });
});
