import type { Parsed, Section } from '../section.ts';

const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/;
/** What a line with `---` under it is, other than a heading. */
const OTHER_BLOCK = /^(?:[-*+>|]|\d+[.)] )/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** No heading is longer; and the patterns above see no line that is. */
const MAX_HEADING = 500;

interface Heading {
  readonly depth: number;
  readonly text: string;
}

/** Markdown by headings; a `#` inside a fenced block is no heading, and front matter is left out. */
export function parseMarkdown(source: string): Parsed {
  const lines = source.split(/\r\n|\r|\n/);
  const sections: Section[] = [];
  const path: string[] = [];
  let title: string | undefined;
  let body: string[] = [];
  let start = skipFrontMatter(lines);
  let fence: string | undefined;
  const close = (next: Heading | undefined): void => {
    // A heading with nothing below it says something itself, unless it only holds others.
    const isLeaf = path.length > 0 && (next === undefined || next.depth <= path.length);
    const text = body.join('\n').trim() || (isLeaf ? (path.at(-1) ?? '') : '');
    const blank = body.findIndex((line) => line.trim() !== '');
    const line = start + 1 + Math.max(blank, 0);
    const headings = path.filter(Boolean);
    if (text !== '') sections.push({ text, location: { ...(headings.length > 0 && { headings }), line } });
    body = [];
  };
  const open = (heading: Heading, after: number): void => {
    close(heading);
    title ??= heading.text;
    path.length = heading.depth - 1;
    path[heading.depth - 1] = heading.text;
    start = after;
  };
  for (let at = start; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const mark = FENCE.exec(line)?.[1];
    if (mark !== undefined && fence === undefined) fence = mark;
    else if (fence !== undefined && mark?.startsWith(fence)) fence = undefined;
    const heading = fence === undefined && mark === undefined ? readHeading(line, lines[at + 1], body.at(-1)) : null;
    if (!heading) {
      body.push(line);
      continue;
    }
    if (heading.underlined) at += 1;
    open(heading, at + 1);
  }
  close(undefined);
  return { title, sections };
}

/** A heading with `#`, or a line that stands alone with `===` or `---` under it. */
function readHeading(
  line: string,
  next: string | undefined,
  before: string | undefined,
): (Heading & { readonly underlined: boolean }) | null {
  if (line.length > MAX_HEADING) return null;
  const marked = HEADING.exec(line);
  if (marked) {
    const text = (marked[2] ?? '').trim().replace(/(?:^|[ \t])#+$/, '');
    return text === '' ? null : { depth: (marked[1] ?? '#').length, text: text.trim(), underlined: false };
  }
  const under = next !== undefined && next.length <= MAX_HEADING ? UNDERLINE.exec(next)?.[1] : undefined;
  const text = line.trim();
  if (under === undefined || text === '' || OTHER_BLOCK.test(text) || (before ?? '').trim() !== '') return null;
  return { depth: under.startsWith('=') ? 1 : 2, text, underlined: true };
}

/** The index of the first line behind `---` … `---`. */
function skipFrontMatter(lines: readonly string[]): number {
  if (lines[0]?.trimEnd() !== '---') return 0;
  const end = lines.findIndex((line, at) => at > 0 && line.trimEnd() === '---');
  return end < 0 ? 0 : end + 1;
}
