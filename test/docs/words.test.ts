import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

const MOST = 95_000;
const MOST_OF_HOW_TO = 800;

/** Pages that a program writes completely. */
const WRITTEN = /^providers\//;
/** Generated part of a page. */
const BLOCK = /^<!-- (?!end).*-->$[\s\S]*?^<!-- end.*-->$/gm;

/** Idioms of former texts. Use reported, no one, next to, again, default, invalid. */
const RETIRED = /\b(?:told|nobody|somebody|beside|anew|unless (?:set|told|given)|is none|who calls|left alone)\b/i;

const readPage = (name: string): string => readFileSync(path.join(PACKAGE_ROOT, 'docs', name), 'utf8');

/** Lines of a page without code, link addresses and generated parts. */
function proseOf(page: string): readonly string[] {
  const blank = (text: string): string => text.replaceAll(/[^\n]/g, '');
  return page
    .replaceAll(BLOCK, blank)
    .replaceAll(/^```[\s\S]*?^```$/gm, blank)
    .replaceAll(/`[^`\n]*`/g, '')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .split('\n');
}

/** Counts the handwritten words of each page of docs/, code blocks included. */
function countWords(): ReadonlyMap<string, number> {
  const folder = path.join(PACKAGE_ROOT, 'docs');
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.md') && !WRITTEN.test(name),
  );
  return new Map(
    pages.map((name) => {
      const own = readPage(name).replaceAll(BLOCK, '');
      return [name, own.match(/\S+/g)?.length ?? 0];
    }),
  );
}

describe('the words of the docs', () => {
  const words = countWords();

  it(`are at most ${MOST}, without what programs write`, () => {
    const largest = [...words].sort(([, a], [, b]) => b - a).slice(0, 10);
    const sum = [...words.values()].reduce((all, count) => all + count, 0);
    expect(sum, largest.map(([name, count]) => `${name} ${count}`).join(', ')).to.be.at.most(MOST);
  });

  it(`are at most ${MOST_OF_HOW_TO} in a how-to page`, () => {
    const long = [...words].filter(([name, count]) => name.startsWith('how-to/') && count > MOST_OF_HOW_TO);
    expect(long.map(([name, count]) => `${name} ${count}`)).to.deep.equal([]);
  });

  it('are those of the field, not retired ones', () => {
    const found = [...words.keys()].flatMap((name) =>
      proseOf(readPage(name)).flatMap((line, at) => (RETIRED.test(line) ? [`${name}:${at + 1} ${line}`] : [])),
    );
    expect(found.join('\n')).to.equal('');
  });

  it('of the README are at most 750', () => {
    const text = readFileSync(path.join(PACKAGE_ROOT, 'README.md'), 'utf8');
    expect(text.match(/\S+/g)?.length).to.be.at.most(750);
  });
});
