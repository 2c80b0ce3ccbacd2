/** This package as installed from the registry, in its own folder. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { buildForPackage } from '../../../config/build.ts';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';

const run = promisify(execFile);

export interface PackedTollgate {
  /** Files in this folder resolve `tollgate` and its dependencies, as next to an installation. */
  readonly folder: string;
  /** The packed file itself. */
  readonly tarball: string;
  /** Arguments of a process that runs `tollgate`. */
  readonly program: readonly string[];
  /** Environment of processes that find `tollgate` and `npm` by name, and no registry. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Packs and unpacks this package, which is built once for all files. It is removed after the tests of the file. Call it
 * inside `describe`.
 */
export function usePackedTollgate(): PackedTollgate {
  const root = mkdtempSync(path.join(os.tmpdir(), 'tollgate-packed-'));
  const folder = path.join(root, 'home');
  const installed = path.join(folder, 'node_modules', 'tollgate');
  const bin = path.join(folder, 'node_modules', '.bin');
  const tarball = path.join(root, 'tollgate.tgz');
  before(() => layOut(root, folder, tarball));
  after(() => rmSync(root, { recursive: true, force: true }));
  return {
    folder,
    tarball,
    program: [process.execPath, path.join(installed, 'dist', 'cli', 'main.js')],
    env: {
      PATH: `${bin}${path.delimiter}${path.dirname(process.execPath)}${path.delimiter}${process.env['PATH'] ?? ''}`,
      // Packages that npm requests are cached, or the request fails at once.
      ...{
        npm_config_offline: 'true',
        npm_config_cache: path.join(root, 'cache'),
        npm_config_update_notifier: 'false',
      },
    },
  };
}

async function layOut(root: string, folder: string, tarball: string): Promise<void> {
  const stage = path.join(root, 'stage');
  mkdirSync(stage);
  const manifest = path.join(PACKAGE_ROOT, 'package.json');
  const { files } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly files: readonly string[] };
  cpSync(manifest, path.join(stage, 'package.json'));
  for (const file of files.flatMap((pattern) => matching(pattern)))
    cpSync(path.join(PACKAGE_ROOT, file), path.join(stage, file), { recursive: true });
  const tsc = path.join(PACKAGE_ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  cpSync(await buildForPackage(), path.join(stage, 'dist'), { recursive: true });
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', root], {
    cwd: stage,
  });
  cpSync(path.join(root, stdout.trim()), tarball);
  const modules = path.join(folder, 'node_modules');
  mkdirSync(modules, { recursive: true });
  for (const name of readdirSync(path.join(PACKAGE_ROOT, 'node_modules')))
    if (name !== '.bin') symlinkSync(path.join(PACKAGE_ROOT, 'node_modules', name), path.join(modules, name));
  const installed = path.join(modules, 'tollgate');
  mkdirSync(installed);
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  mkdirSync(path.join(modules, '.bin'));
  symlinkSync(path.join(installed, 'dist', 'cli', 'main.js'), path.join(modules, '.bin', 'tollgate'));
  symlinkSync(tsc, path.join(modules, '.bin', 'tsc'));
  await run('chmod', ['+x', path.join(installed, 'dist', 'cli', 'main.js')]);
}

/** Files that match a line of `files`; `dist` is built separately, and npm itself leaves out what follows a `!`. */
function matching(pattern: string): readonly string[] {
  if (pattern === 'dist' || pattern.startsWith('!')) return [];
  if (!pattern.includes('*')) return [pattern];
  const [folder = '', suffix = ''] = pattern.split('/*');
  return readdirSync(path.join(PACKAGE_ROOT, folder))
    .filter((name) => name.endsWith(suffix))
    .map((name) => path.join(folder, name));
}
