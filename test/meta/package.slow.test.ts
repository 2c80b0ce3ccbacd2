import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

describe('the Markdown in the package', () => {
  it('has no link to a file that is not in the package (G72)', () => {
    const options = { cwd: PACKAGE_ROOT, encoding: 'utf8', maxBuffer: 1e8 } as const;
    const printed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      ...options,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [{ files }] = JSON.parse(printed) as readonly [{ readonly files: readonly { readonly path: string }[] }];
    const packed = files.map((file) => file.path);
    const pages = packed.filter((file) => file.endsWith('.md'));
    const links = pages.flatMap((page) => linksOf(page).map((link) => ({ page, link })));
    expect(links.length).to.be.greaterThan(300);
    const dead = links.filter(({ page, link }) => {
      const target = path.posix.join(path.posix.dirname(page), link);
      return !packed.some((file) => file === target || file.startsWith(`${target}/`));
    });
    expect(dead).to.deep.equal([]);
  });

  /** Relative links of a page, inline and by reference; code is skipped. */
  function linksOf(page: string): readonly string[] {
    const text = read(page)
      .replaceAll(/^```[\s\S]*?^```$/gm, '')
      .replaceAll(/`[^`\n]*`/g, '');
    const found = [...text.matchAll(/\]\(([^)\s]+)/g), ...text.matchAll(/^\[[^\]]+\]: (\S+)/gm)];
    return found
      .map(([, link = '']) => link.replace(/#.*$/, ''))
      .filter((link) => link !== '' && !/^[a-z]+:/.test(link));
  }
});
