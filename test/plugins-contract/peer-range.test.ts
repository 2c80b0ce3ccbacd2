import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT, VERSION } from '../../config/package-root.ts';

const semver = createRequire(import.meta.url)('semver') as {
  satisfies(version: string, range: string, options: { readonly includePrerelease: boolean }): boolean;
  inc(version: string, release: 'minor' | 'major'): string;
};

/** Files that show authors how to require this package. */
function listFiles(folder: string): readonly string[] {
  return readdirSync(path.join(PACKAGE_ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:md|json|ts|mjs)$/.test(entry.name))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => !file.includes('node_modules'));
}

describe('G72: the peer range of plugins', () => {
  const ranges = ['docs', 'examples/plugins', 'cli'].flatMap(listFiles).flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    return [...text.matchAll(/"?peerDependencies"?:\s*\{\s*"?tollgate"?:\s*"([^"]+)"/g)].map(([, range = '']) => range);
  });

  it('is the same in the templates and the docs', () => {
    expect(ranges.length).to.be.at.least(2);
    expect(new Set(ranges).size).to.equal(1);
  });

  it('accepts this version and the next minor ones until 1.0', () => {
    const [range = ''] = ranges;
    const next = semver.inc(VERSION, 'minor');
    for (const version of [VERSION, next, `${next}-beta.1`, semver.inc(next, 'minor')])
      expect(semver.satisfies(version, range, { includePrerelease: true }), version).to.equal(true);
    expect(semver.satisfies('1.0.0', range, { includePrerelease: true })).to.equal(false);
  });
});
