import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { type MutantPoint, pointsOf } from './points.ts';

/** Folders with the product's code. */
const PRODUCT = /^(?:cli|config|contract|core|egress|models|openapi|plugins|routing)\/.*(?<!\.d)\.ts$/;

/** Code that runs in a browser or in the build, which quick tests do not run. */
const EXCLUDED = /^(?:plugins\/console\/app|cli\/generate|config\/build\.ts)/;

/** Files that git tracks or would add. */
export function listFiles(): readonly string[] {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = execFileSync('git', args, { cwd: PACKAGE_ROOT, encoding: 'utf8' }).split('\0');
  return [...new Set(files)].filter((file) => file !== '' && existsSync(path.join(PACKAGE_ROOT, file)));
}

/** Returns all possible mutants of the product. `words` select by parts of their file names. */
export function allPoints(words: readonly string[] = []): readonly MutantPoint[] {
  return listFiles()
    .filter((file) => PRODUCT.test(file) && !EXCLUDED.test(file))
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .toSorted()
    .flatMap((file) => pointsOf(file, readFileSync(path.join(PACKAGE_ROOT, file), 'utf8')));
}

/** Draws mutants: the same for the same seed and code. A function is drawn at most once, whatever its length. */
export function drawMutants(points: readonly MutantPoint[], seed: number, count: number): readonly MutantPoint[] {
  const random = createRandom(seed);
  const functions = new Map<string, MutantPoint[]>();
  for (const point of points) {
    const key = `${point.file} ${point.function}`;
    const own = functions.get(key);
    if (own) own.push(point);
    else functions.set(key, [point]);
  }
  const remaining = [...functions.values()];
  const drawn: MutantPoint[] = [];
  while (drawn.length < count && remaining.length > 0) {
    const [own = []] = remaining.splice(Math.floor(random() * remaining.length), 1);
    const point = own[Math.floor(random() * own.length)];
    if (point) drawn.push(point);
  }
  return drawn;
}

/** Random numbers from 0 to below 1, by mulberry32 (public domain, Tommy Ettinger). */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
