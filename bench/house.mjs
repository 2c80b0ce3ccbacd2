#!/usr/bin/env node
// Prints the size of the tree: files and lines of code of each folder, one-importer files, import cycles, casts, long functions.
// Sizes have no limits; test/meta/architecture.test.ts limits cycles and casts.
// usage: npm run house [-- --json | --list | --calls]
//   --calls builds and runs a gateway (bench/walk.mjs, bench/steps.mjs) and reports the code that runs for a start, a chat, a stream and an agent.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = path.resolve(import.meta.dirname, '..');

/** Folders and files that the product neither ships nor runs; new folders count as shipped until listed here. */
const NOT_SHIPPED =
  /^(\.|bench\/|deploy\/|docs\/|examples\/|test\/)|(^|\/)(test|tests|dist|node_modules)\/|\.test\.\w+$/;
const SOURCE = /\.([cm]?[jt]s|[jt]sx)$/;
const LONG_FUNCTION_LINES = 60;

/**
 * Reads the tree and returns its figures.
 * @param {string} [root] the folder of the repository
 */
export function readHouse(root = ROOT) {
  const sources = readSources(root);
  const rooms = /** @type {Record<string, { files: number, linesOfCode: number }>} */ ({});
  for (const [file, text] of [...sources].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const room = roomOf(file);
    const { files, linesOfCode } = rooms[room] ?? { files: 0, linesOfCode: 0 };
    rooms[room] = { files: files + 1, linesOfCode: linesOfCode + countCode(text) };
  }
  const sum = (/** @type {'files' | 'linesOfCode'} */ figure) =>
    Object.values(rooms).reduce((total, room) => total + room[figure], 0);
  const imports = readImports(sources);
  const importers = new Map([...sources.keys()].map((file) => [file, /** @type {string[]} */ ([])]));
  for (const [file, targets] of imports.direct) for (const target of targets) importers.get(target)?.push(file);
  return {
    rooms,
    tree: {
      files: sum('files'),
      linesOfCode: sum('linesOfCode'),
      oneImporterFiles: [...importers.values()].filter((files) => files.length === 1).length,
      importCircles: findCircles(imports.all).length,
      casts: countMatches(sources, /as unknown as|\bas never\b|\bas any\b|@ts-expect-error|@ts-ignore/g),
      longFunctions: findLongFunctions(sources).length,
    },
    /** Files behind the numbers. */
    lists: {
      oneImporterFiles: [...importers].flatMap(([file, [first, ...more]]) =>
        first !== undefined && more.length === 0 ? [`${file} (${first})`] : [],
      ),
      importCircles: findCircles(imports.all).map((circle) => circle.join(' ')),
      longFunctions: findLongFunctions(sources),
    },
  };
}

/** Files that git knows or would add, so that a new file counts before it is added. */
function readSources(/** @type {string} */ root) {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\0');
  const shipped = [...new Set(files)].filter((file) => SOURCE.test(file) && !NOT_SHIPPED.test(file));
  return new Map(
    shipped
      .filter((file) => existsSync(path.join(root, file)) && statSync(path.join(root, file)).isFile())
      .map((file) => [file, readFileSync(path.join(root, file), 'utf8')]),
  );
}

/** `core/calls/`; `core/` for a file directly in it. */
function roomOf(/** @type {string} */ file) {
  return `${path.posix.dirname(file).split('/').slice(0, 2).join('/')}/`;
}

/** Lines without comments and blank lines; approximate, sufficient for formatted code. */
function countCode(/** @type {string} */ text) {
  const code = text.replaceAll(/^\s*\/\*[\s\S]*?\*\/\s*$/gm, '');
  return code.split('\n').filter((line) => line.trim() !== '' && !/^\s*\/\//.test(line)).length;
}

/** `direct` has only imports: a re-export (`export … from`) does not use the names. */
function readImports(/** @type {Map<string, string>} */ sources) {
  const statement = /^\s*(import|export)\s[^'";]*?\sfrom\s+'(\.[^']+)'|^\s*(import)\s+'(\.[^']+)'/gm;
  const call = /\b(?:import|new URL)\(\s*'(\.[^']+)'/g;
  const direct = new Map([...sources.keys()].map((file) => [file, new Set()]));
  const all = new Map([...sources.keys()].map((file) => [file, new Set()]));
  for (const [file, text] of sources) {
    const resolve = (/** @type {string} */ specifier) => {
      const plain = path.posix.join(path.posix.dirname(file), specifier);
      const stem = plain.replace(/\.[cm]?jsx?$/, '');
      return [plain, `${stem}.ts`, `${stem}.tsx`, `${stem}/index.ts`, `${stem}/index.tsx`].find((name) =>
        sources.has(name),
      );
    };
    for (const [, kind, from, bare, side] of text.matchAll(statement)) {
      const target = resolve(from ?? side ?? '');
      if (target === undefined) continue;
      all.get(file)?.add(target);
      if ((kind ?? bare) === 'import') direct.get(file)?.add(target);
    }
    for (const [, specifier = ''] of text.matchAll(call)) {
      const target = resolve(specifier);
      if (target === undefined) continue;
      direct.get(file)?.add(target);
      all.get(file)?.add(target);
    }
  }
  return { direct, all };
}

/** Import cycles, type imports included: two files with such a cycle cannot be read separately (Tarjan). */
function findCircles(/** @type {Map<string, Set<string>>} */ graph) {
  const index = new Map();
  const low = new Map();
  /** @type {string[]} */
  const stack = [];
  /** @type {string[][]} */
  const circles = [];
  const visit = (/** @type {string} */ file) => {
    index.set(file, index.size);
    low.set(file, index.get(file));
    stack.push(file);
    for (const target of graph.get(file) ?? [])
      if (!index.has(target)) {
        visit(target);
        low.set(file, Math.min(low.get(file), low.get(target)));
      } else if (stack.includes(target)) low.set(file, Math.min(low.get(file), index.get(target)));
    if (low.get(file) !== index.get(file)) return;
    const circle = stack.splice(stack.indexOf(file));
    if (circle.length > 1) circles.push(circle);
  };
  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return circles;
}

function countMatches(/** @type {Map<string, string>} */ sources, /** @type {RegExp} */ pattern) {
  return [...sources.values()].reduce((total, text) => total + [...text.matchAll(pattern)].length, 0);
}

function findLongFunctions(/** @type {Map<string, string>} */ sources) {
  const pattern = /^(?:export )?(?:default )?(?:async )?function\*? (\w+)[\s\S]*?^\}/gm;
  return [...sources].flatMap(([file, text]) =>
    [...text.matchAll(pattern)].flatMap(([body, name]) => {
      const lines = body.split('\n').length;
      return lines > LONG_FUNCTION_LINES ? [`${file}: ${name} ${lines}`] : [];
    }),
  );
}

/**
 * Builds the product into a separate folder, starts it twice, and returns the cost of actions.
 * @returns {Record<string, Record<string, number>>}
 */
export function measureCalls() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-house-'));
  try {
    const run = (/** @type {string[]} */ ...args) =>
      execFileSync(process.execPath, args, {
        cwd: ROOT,
        encoding: 'utf8',
        maxBuffer: 2 ** 26,
        env: plainEnvironment(),
      });
    for (const name of ['node_modules', 'config']) symlinkSync(path.join(ROOT, name), path.join(folder, name));
    cpSync(path.join(ROOT, 'package.json'), path.join(folder, 'package.json'));
    const dist = path.join(folder, 'dist');
    run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', dist);
    run('--import', 'tsx/esm', 'cli/generate/generate.ts', '--dist', dist);
    const walks = JSON.parse(run('bench/walk.mjs', '--json', folder));
    const steps = JSON.parse(run('bench/steps.mjs', '--json', folder));
    const rows = ['start', 'chat', 'stream', 'agent'].map((action) => {
      const { files, functions, named } = walks[action];
      return [action, { files, functions, named }];
    });
    return { ...Object.fromEntries(rows), 'warm chat': steps };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Environment without the variables that a test runner sets for its children. */
function plainEnvironment() {
  const { NODE_OPTIONS: _options, ...env } = process.env;
  return env;
}

function printHouse(/** @type {ReturnType<typeof readHouse>} */ { rooms, tree, lists }, /** @type {boolean} */ isFull) {
  console.log('room                              files  lines of code');
  for (const [room, { files, linesOfCode }] of Object.entries(rooms))
    console.log(`${room.padEnd(32)}${String(files).padStart(7)}${String(linesOfCode).padStart(15)}`);
  for (const [figure, value] of Object.entries(tree)) console.log(`${figure}: ${value}`);
  for (const circle of lists.importCircles) console.log(`  circle: ${circle}`);
  for (const long of lists.longFunctions) console.log(`  long: ${long}`);
  if (isFull) for (const file of lists.oneImporterFiles) console.log(`  one importer: ${file}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const has = (/** @type {string} */ flag) => process.argv.includes(flag);
  if (has('--calls')) console.log(JSON.stringify(measureCalls(), null, 2));
  else if (has('--json')) console.log(JSON.stringify(readHouse(), null, 2));
  else printHouse(readHouse(), has('--list'));
}
