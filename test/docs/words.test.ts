import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

const MOST = 96_000;
const MOST_OF_HOW_TO = 800;
const MOST_IN_A_SENTENCE = 25;
const MOST_IN_A_CELL = 20;

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

/** Cells of the tables of a page. */
function cellsOf(page: string): readonly string[] {
  const rows = page.split('\n').filter((line) => line.startsWith('| '));
  return rows.flatMap((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim()));
}

/** Sentences of a page outside of code blocks and tables. Inline code counts as one word. */
function sentencesOf(page: string): readonly string[] {
  const paragraphs = page
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/`[^`\n]*`/g, '`code`')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/^(?:\||#|<).*$/gm, '')
    .split(/\n\s*\n|\n(?=[-*] |\d+\. )/);
  return paragraphs.flatMap((text) =>
    text
      .replaceAll('\n', ' ')
      .replace(/^(?:[-*]|\d+\.) /, '')
      .split(/(?<=[.!?:])\**\s+/)
      .map((sentence) => sentence.replaceAll('**', '').trim()),
  );
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

  it(`make sentences of at most ${MOST_IN_A_SENTENCE} words in the README and how-to pages, none with a relative clause first`, () => {
    const pages = ['../README.md', ...[...words.keys()].filter((name) => name.startsWith('how-to/'))];
    const found = pages.flatMap((name) =>
      sentencesOf(readPage(name)).filter(
        (sentence) =>
          (sentence.match(/\S+/g)?.length ?? 0) > MOST_IN_A_SENTENCE ||
          /^(?:What|How|Whether|Where|Who|Whom|Whose|Of|That (?:is|was)) .*[.:]$/.test(sentence),
      ),
    );
    expect(found).to.deep.equal([]);
  });

  it(`are at most ${MOST_IN_A_CELL} in a cell of a how-to page`, () => {
    const found = [...words.keys()]
      .filter((name) => name.startsWith('how-to/'))
      .flatMap((name) => cellsOf(readPage(name)).filter((cell) => cell.split(/\s+/).length > MOST_IN_A_CELL));
    expect(found).to.deep.equal([]);
  });

  it('are in at most 20 decisions', () => {
    expect([...words.keys()].filter((name) => name.startsWith('decisions/'))).to.have.length.at.most(20);
  });

  it('of the README are at most 750', () => {
    const text = readFileSync(path.join(PACKAGE_ROOT, 'README.md'), 'utf8');
    expect(text.match(/\S+/g)?.length).to.be.at.most(750);
  });
});
