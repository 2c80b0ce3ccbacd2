import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

interface Component {
  readonly name: string;
  readonly version: string;
  readonly properties?: readonly { readonly name: string }[];
}

const DEVELOPMENT = 'cdx:npm:package:development';

describe('the bill of materials of a release', () => {
  const manifest = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    scripts: Readonly<Record<string, string>>;
    dependencies: Readonly<Record<string, string>>;
  };

  it('lists every package that it ships, as CycloneDX', () => {
    const [, ...words] = (manifest.scripts['sbom'] ?? '').split(' ');
    const printed = execFileSync('npm', words, {
      cwd: PACKAGE_ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 1e8,
    });
    const bom = JSON.parse(printed) as { bomFormat: string; components: readonly Component[] };
    expect(bom.bomFormat).to.equal('CycloneDX');
    const shipped = bom.components.filter(
      ({ properties = [] }) => !properties.some(({ name }) => name === DEVELOPMENT),
    );
    const named = shipped.map(({ name, version }) => `${name}@${version}`);
    const wanted = Object.entries(manifest.dependencies).map(([name, version]) => `${name}@${version}`);
    expect(named).to.include.members(wanted);
    expect(shipped.length).to.be.below(bom.components.length);
    expect(named.filter((name) => /^(?:mocha|chai|nock)@/.test(name))).to.deep.equal([]);
  });
});
