/**
 * Builds the program: `npm run build`, and the first step of `npm start`. A build is a folder `.build/<hash>`, named
 * after the content of all its inputs, so an unchanged tree is not built again. It is written under a temporary name
 * and renamed when complete; `dist` is a link to it. Node resolves links when it loads a file: a running gateway keeps
 * its build, and later builds do not change it. With `--publish` `dist` is a folder to pack or copy.
 */
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from './package-root.ts';

const BUILDS = path.join(PACKAGE_ROOT, '.build');
const DIST = path.join(PACKAGE_ROOT, 'dist');
const LOCK = path.join(BUILDS, 'lock');

/** Inputs of a build. `.package-lock.json` lists the packages that npm has installed. */
export const INPUTS: readonly string[] = Object.freeze([
  ...[
    'cli',
    'config',
    'contract',
    'core',
    'egress',
    'models',
    'openapi',
    'plugins',
    'routing',
    'test/conformance',
    'docs',
  ],
  ...['README.md', 'CHANGELOG.md', 'package.json', 'package-lock.json', 'node_modules/.package-lock.json'],
  ...['tsconfig.json', 'tsconfig.build.json'],
]);

/** Interval at which the owner renews the lock. */
const RENEW_MS = 2_000;
/** Time without renewal after which a lock is stale, even if its process id exists. */
const STALE_MS = 30_000;
const POLL_MS = 200;
/** Ends the name of a build that is complete for the package. */
const COMPLETED = '-package';
const BUILD = new RegExp(`^[0-9a-f]{16}(?:${COMPLETED})?$`);
/** Time after their last start at which unused builds are deleted. */
const KEEP_MS = 24 * 60 * 60_000;

interface Step {
  readonly title: string;
  readonly run: (folder: string) => Promise<void> | void;
}

const STEPS: readonly Step[] = Object.freeze([
  {
    title: 'compile the program (tsc)',
    run: (folder) => runTsc('--outDir', folder),
  },
  {
    title: 'compile the schemas, write the pages of the docs',
    run: (folder) => runNode(['--import', 'tsx/esm', 'cli/generate/generate.ts', '--dist', folder]),
  },
  {
    title: 'bundle the console (vite)',
    run: (folder) =>
      runNode([
        'node_modules/vite/bin/vite.js',
        'build',
        'plugins/console/app',
        '--outDir',
        path.join(folder, 'console'),
      ]),
  },
]);

/** Writes a build into an existing folder; `report` gets one line per step. */
async function buildInto(folder: string, report: (line: string) => void): Promise<void> {
  for (const [index, { title, run }] of STEPS.entries()) {
    report(`[${index + 1}/${STEPS.length}] ${title}`);
    await run(folder);
  }
}

/** Adds to a build what only the published package has: types, and docs that are compressed once more. */
async function completePackage(folder: string): Promise<void> {
  await writeTypes(folder);
  await runNode(['--import', 'tsx/esm', 'cli/generate/shrink-docs.ts', folder]);
}

/** Writes the types of the package's entries: only compilers of plugins read them. */
async function writeTypes(folder: string): Promise<void> {
  await runTsc('--declaration', '--emitDeclarationOnly', '--removeComments', 'false', '--outDir', folder);
  const { exports } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  };
  const entries = Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [] : [entry.types]));
  const used = new Set(entries.map((file) => path.join(folder, path.relative('dist', file))));
  // Iterating a set includes entries added meanwhile.
  for (const file of used)
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /\b(?:from |import\(|import )['"](\.[^'"]+)\.ts['"]/g,
    )) {
      const imported = path.resolve(path.dirname(file), `${name}.d.ts`);
      // Examples in comments import files that do not exist here.
      if (existsSync(imported)) used.add(imported);
    }
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('.d.ts') && !used.has(path.join(folder, name))) rmSync(path.join(folder, name));
}

function runTsc(...words: readonly string[]): Promise<void> {
  return runNode(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', ...words]);
}

function runNode(words: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    // Output of a step goes to stderr: stdout belongs to the program that starts afterwards.
    const child = spawn(process.execPath, words, { cwd: PACKAGE_ROOT, stdio: ['ignore', 2, 2] });
    child.once('error', reject);
    child.once('close', (code, signal) =>
      code === 0 ? resolve() : reject(new Error(`Build failed: ${words.join(' ')} ended with ${signal ?? code}.`)),
    );
  });
}

/** Hash of the names and contents of all inputs. */
function hashInputs(): string {
  const hash = createHash('sha256');
  for (const input of INPUTS)
    for (const file of filesOf(input))
      hash
        .update(`${file}\0`)
        .update(readFileSync(path.join(PACKAGE_ROOT, file)))
        .update('\0');
  return hash.digest('hex').slice(0, 16);
}

function filesOf(input: string): readonly string[] {
  const place = path.join(PACKAGE_ROOT, input);
  if (!existsSync(place)) return [];
  if (!statSync(place).isDirectory()) return [input];
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('~') && !entry.name.startsWith('.'))
    .map((entry) => path.relative(PACKAGE_ROOT, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'))
    .sort();
}

/** Builds the program unless its inputs are unchanged, links `dist` to it, and returns its folder. */
export function buildProgram(report: (line: string) => void = () => {}): Promise<string> {
  return withBuild(report, async (id) => {
    link(id);
    return path.join(BUILDS, id);
  });
}

/** Builds the program as the package has it, once for the same inputs; returns its folder and leaves `dist` alone. */
export function buildForPackage(report: (line: string) => void = () => {}): Promise<string> {
  return withBuild(report, completed);
}

/** Builds the program unless its inputs are unchanged, and calls `use` with the id of the build. */
async function withBuild<T>(report: (line: string) => void, use: (id: string) => Promise<T>): Promise<T> {
  const id = hashInputs();
  mkdirSync(BUILDS, { recursive: true });
  const release = await takeLock(report);
  try {
    if (existsSync(path.join(BUILDS, id))) report('Build is up to date.');
    else await makeBuild(id, report);
    touch(path.join(BUILDS, id));
    deleteUnused(id);
    return await use(id);
  } finally {
    release();
  }
}

function touch(folder: string): void {
  const now = new Date();
  utimesSync(folder, now, now);
}

async function makeBuild(id: string, report: (line: string) => void): Promise<void> {
  const begun = performance.now();
  report(existsSync(DIST) ? 'Building: files changed since the last build.' : 'Building: no build found.');
  const unfinished = path.join(BUILDS, `unfinished-${process.pid}-${randomUUID().slice(0, 8)}`);
  try {
    await buildInto(unfinished, report);
    renameSync(unfinished, path.join(BUILDS, id));
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another process took over this lock and finished first; its build has the same content.
    if (!existsSync(path.join(BUILDS, id))) throw error;
  }
  report(`Built in ${Math.round((performance.now() - begun) / 1000)} s.`);
}

/** Makes `dist` a link to the build; replaces an existing link atomically. */
function link(id: string): void {
  const target = path.join('.build', id);
  if (isLink(DIST) && readlinkSync(DIST) === target) return;
  const fresh = path.join(BUILDS, `link-${process.pid}`);
  rmSync(fresh, { force: true });
  // On Windows a junction needs no privileges, but an absolute path. Elsewhere a relative link lets the clone be moved.
  if (process.platform === 'win32') symlinkSync(path.join(PACKAGE_ROOT, target), fresh, 'junction');
  else symlinkSync(target, fresh, 'dir');
  if (process.platform === 'win32' || !isLink(DIST)) removeDist();
  renameSync(fresh, DIST);
}

/** Makes `dist` a folder to pack or copy. */
function publish(report: (line: string) => void): Promise<void> {
  return withBuild(report, async (id) => {
    const folder = await completed(id);
    const fresh = path.join(BUILDS, `unfinished-${process.pid}-publish`);
    rmSync(fresh, { recursive: true, force: true });
    cpSync(folder, fresh, { recursive: true });
    removeDist();
    renameSync(fresh, DIST);
  });
}

/** Folder of a build that is complete for the package. */
async function completed(id: string): Promise<string> {
  const folder = path.join(BUILDS, `${id}${COMPLETED}`);
  if (!existsSync(folder)) {
    const plain = path.join(BUILDS, id);
    const unfinished = path.join(BUILDS, `unfinished-${process.pid}-${randomUUID().slice(0, 8)}`);
    cpSync(plain, unfinished, { recursive: true, filter: (file) => path.relative(plain, file) !== 'in-use' });
    await completePackage(unfinished);
    renameSync(unfinished, folder);
  }
  touch(folder);
  return folder;
}

function removeDist(): void {
  if (isLink(DIST)) unlinkSync(DIST);
  else rmSync(DIST, { recursive: true, force: true });
}

function isLink(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/** Deletes builds that no process uses and that were not started for a day, and leftovers of killed builds. */
function deleteUnused(current: string): void {
  for (const name of readdirSync(BUILDS)) {
    const place = path.join(BUILDS, name);
    const unfinished = /^unfinished-(\d+)-/.exec(name);
    if (unfinished) {
      if (!isAlive(Number(unfinished[1]))) rmSync(place, { recursive: true, force: true });
      continue;
    }
    if (name.startsWith(current) || !BUILD.test(name)) continue;
    const marks = path.join(place, 'in-use');
    const isUsed = existsSync(marks) && readdirSync(marks).some((pid) => isAlive(Number(pid)));
    if (!isUsed && Date.now() - statSync(place).mtimeMs > KEEP_MS) rmSync(place, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Waits until no other process builds here; returns a function that releases the lock. The lock only saves work:
 * concurrent builds write to separate folders.
 */
async function takeLock(report: (line: string) => void): Promise<() => void> {
  const owner = JSON.stringify({ pid: process.pid, host: os.hostname(), id: randomUUID() });
  for (let isFirst = true; ; isFirst = false) {
    try {
      writeFileSync(LOCK, owner, { flag: 'wx' });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    if (isStale()) {
      rmSync(LOCK, { force: true });
      continue;
    }
    if (isFirst) report('Waiting for another build in this folder to end.');
    await delay(POLL_MS);
  }
  const isOwn = (): boolean => readLock() === owner;
  const timer = setInterval(() => {
    if (isOwn()) utimesSync(LOCK, new Date(), new Date());
  }, RENEW_MS);
  return () => {
    clearInterval(timer);
    if (isOwn()) rmSync(LOCK, { force: true });
  };
}

function readLock(): string | undefined {
  try {
    return readFileSync(LOCK, 'utf8');
  } catch {
    return undefined;
  }
}

function isStale(): boolean {
  const text = readLock();
  const age = Date.now() - (statSync(LOCK, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  if (age > STALE_MS) return true;
  try {
    const { pid, host } = JSON.parse(text ?? '') as { readonly pid?: number; readonly host?: string };
    return host === os.hostname() && pid !== undefined && !isAlive(pid);
  } catch {
    // Its owner is just writing it.
    return false;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { publish: isToPublish = false } = parseArgs({ options: { publish: { type: 'boolean' } } }).values;
  try {
    const report = (line: string): void => void process.stderr.write(`${line}\n`);
    await (isToPublish ? publish(report) : buildProgram(report));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
