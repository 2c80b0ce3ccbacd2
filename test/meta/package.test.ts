import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { readChapter } from '../support/pages/read-blocks.ts';

interface LockEntry {
  readonly version?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly files: readonly string[];
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');
const manifest = JSON.parse(read('package.json')) as Manifest;
const { packages } = JSON.parse(read('package-lock.json')) as {
  readonly packages: Readonly<Record<string, LockEntry>>;
};
const nameOf = (place: string): string => place.split('node_modules/').at(-1) ?? '';

/** Releases that contain malicious code or lost data; never to be installed. */
const KNOWN_BAD: readonly (readonly [name: string, version: string])[] = [
  ['keyv', '6.0.0'],
  ['cacheable-request', '13.0.20'],
  ['cache-manager', '7.2.10'],
  ['@cacheable/utils', '2.5.1'],
  ['flat-cache', '6.1.24'],
  ['file-entry-cache', '11.1.6'],
  ['axios', '1.14.1'],
  ['axios', '0.30.4'],
];

/** Packages that work without their install script, and the reason. */
const WORKS_WITHOUT_SCRIPT: Readonly<Record<string, string>> = {
  '@photostructure/sqlite': 'its binaries for every platform are inside the package',
};

describe('package.json', () => {
  it('pins every version exactly', () => {
    const all = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
    expect(all.filter(([, version]) => !/^(?:npm:@ai-sdk\/[a-z-]+@)?\d+\.\d+\.\d+$/.test(version))).to.deep.equal([]);
  });

  it('exports only existing source files', () => {
    const targets = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : [entry.types, entry.default],
    );
    const sources = [...targets, ...Object.values(manifest.bin)].map((target) =>
      target.replace(/^(\.\/)?dist\//, '').replace(/\.d\.ts$|\.js$/, '.ts'),
    );
    expect(sources.filter((source) => !existsSync(path.join(PACKAGE_ROOT, source)))).to.deep.equal([]);
  });

  it('publishes files that exist', () => {
    const plain = manifest.files.filter((file) => !/[*!]/.test(file) && file !== 'dist');
    expect(plain.filter((file) => !existsSync(path.join(PACKAGE_ROOT, file)))).to.deep.equal([]);
  });

  it('publishes no source maps, which are useless without the sources (E65)', () => {
    const { compilerOptions } = JSON.parse(read('tsconfig.build.json')) as { readonly compilerOptions: object };
    expect(compilerOptions).not.to.have.any.keys('sourceMap', 'declarationMap', 'inlineSourceMap');
  });

  for (const group of ['dependencies', 'devDependencies'] as const) {
    it(`has a line in docs/architecture.md for each of its ${group}, and the page none for others`, () => {
      const heading = group === 'dependencies' ? '### At run time' : '### To develop and test';
      const page = readChapter('docs/architecture.md', heading);
      const rows = [...page.matchAll(/^\| `([^`]+)` \| /gm)].map(([, name]) => name);
      expect(rows).to.have.members(Object.keys(manifest[group]));
    });
  }
});

describe('the lockfile', () => {
  it('contains no known bad release', () => {
    const found = Object.entries(packages).filter(([place, { version }]) =>
      KNOWN_BAD.some(([name, bad]) => nameOf(place) === name && version === bad),
    );
    expect(found.map(([place]) => place)).to.deep.equal([]);
  });

  it('contains the version that package.json pins', () => {
    const wanted = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
    // A second release of a package has a name of its own: `npm:<package>@<version>`.
    const others = wanted.filter(
      ([name, version]) => packages[`node_modules/${name}`]?.version !== version.replace(/^npm:.+@/, ''),
    );
    expect(others).to.deep.equal([]);
  });

  it('contains the binaries of every platform, without which npm ci refuses it', () => {
    const missing = Object.entries(packages).flatMap(([place, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !isResolved(place, name)),
    );
    expect(missing).to.deep.equal([]);
  });

  it('needs no install script at run time', () => {
    const scripted = Object.entries(packages).filter(([, entry]) => entry.hasInstallScript && !entry.dev);
    expect(scripted.map(([place]) => nameOf(place))).to.have.members(Object.keys(WORKS_WITHOUT_SCRIPT));
  });

  /** Returns true if a package finds another one, searching upwards as Node does. */
  function isResolved(place: string, name: string): boolean {
    const parts = place.split('/node_modules/');
    return (
      parts.some((_, cut) => {
        const folder = parts.slice(0, parts.length - cut).join('/node_modules/');
        return `${folder === '' ? '' : `${folder}/`}node_modules/${name}` in packages;
      }) || `node_modules/${name}` in packages
    );
  }
});
