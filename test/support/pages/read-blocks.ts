import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';

/** Fenced block of a page. */
export interface Block {
  readonly page: string;
  /** Number of its first line in the page. */
  readonly line: number;
  /** Empty for a block without a language. */
  readonly language: string;
  /** Path after the language: a file that the page writes. Otherwise empty. */
  readonly file: string;
  readonly text: string;
}

/** Fenced blocks with a language and without a file, in the README and all pages. */
export function readBlocks(): readonly Block[] {
  return readAllBlocks().filter(({ language, file }) => language !== '' && file === '');
}

/** All fenced blocks of the README and all pages. */
export function readAllBlocks(): readonly Block[] {
  const folder = path.join(PACKAGE_ROOT, 'docs');
  const docs = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
  const pages = ['README.md', ...docs.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)];
  return pages.flatMap(blocksOf);
}

/** Chapter of a page under this heading, up to the next heading of the same rank. Line numbers are preserved. */
export function readChapter(page: string, heading: string): string {
  const lines = readFileSync(path.join(PACKAGE_ROOT, page), 'utf8').split('\n');
  const start = lines.indexOf(heading);
  if (start < 0) throw new Error(`${page} has no heading "${heading}"`);
  const rank = heading.indexOf(' ');
  let isFenced = false;
  const length = lines.slice(start + 1).findIndex((line) => {
    if (line.startsWith('```')) isFenced = !isFenced;
    const hashes = /^#+(?= )/.exec(line)?.[0].length ?? Number.POSITIVE_INFINITY;
    return !isFenced && hashes <= rank;
  });
  const end = length < 0 ? lines.length : start + 1 + length;
  return lines.slice(0, end).fill('', 0, start).join('\n');
}

function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(path.join(PACKAGE_ROOT, page), 'utf8');
  return [...text.matchAll(/^```(\w*)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map((match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length + 1,
    language: match[1] ?? '',
    file: match[2] ?? '',
    text: match[3] ?? '',
  }));
}
