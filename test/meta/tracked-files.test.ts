import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

/** Allowed entries in the root of the repository. The commit that adds one explains it. */
const ROOT = [
  '.ci',
  '.dockerignore',
  '.github',
  '.gitignore',
  '.mocharc.json',
  '.npmrc',
  '.oxlintrc.json',
  'AGENTS.md',
  'bench',
  'biome.json',
  'CHANGELOG.md',
  'cli',
  'config',
  'CONTRIBUTING.md',
  'contract',
  'core',
  'deploy',
  'docs',
  'egress',
  'examples',
  'knip.json',
  'LICENSE',
  'models',
  'openapi',
  'package-lock.json',
  'package.json',
  'plugins',
  'README.md',
  'routing',
  'SECURITY.md',
  'test',
  'tsconfig.build.json',
  'tsconfig.json',
];

describe('the files of the repository', () => {
  let files: readonly string[];

  before(function () {
    // The sources may also be an archive without git.
    if (!existsSync(path.join(PACKAGE_ROOT, '.git'))) this.skip();
    const out = execFileSync('git', ['ls-files', '-z'], { cwd: PACKAGE_ROOT, encoding: 'utf8' });
    files = out.split('\0').filter((file) => file !== '');
  });

  it('include only allowed entries in the root', () => {
    const found = new Set(files.map((file) => file.split('/')[0] ?? ''));
    expect([...found]).to.have.members(ROOT);
  });

  it('are never empty', () => {
    const sizeOf = (file: string) => lstatSync(path.join(PACKAGE_ROOT, file), { throwIfNoEntry: false })?.size;
    expect(files.filter((file) => sizeOf(file) === 0)).to.deep.equal([]);
  });

  it('include only the newest summary of benchmark results', () => {
    expect(files.filter((file) => file.startsWith('bench/results/'))).to.deep.equal(['bench/results/full.md']);
  });
});
