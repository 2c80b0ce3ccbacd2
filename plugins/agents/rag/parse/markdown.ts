import type { Parsed, Section } from '../section.ts';

const HEADING = /^(#{1,6})\s+(.+?)\s*#*$/;
const FENCE = /^\s*(```|~~~)/;

/** Markdown by headings; a `#` inside a fenced block is no heading, and front matter is left out. */
export function parseMarkdown(source: string): Parsed {
  const lines = source.split(/\r\n|\r|\n/);
  const sections: Section[] = [];
  const path: string[] = [];
  let body: string[] = [];
  let start = skipFrontMatter(lines);
  let fence: string | undefined;
  const close = (): void => {
    const text = body.join('\n').trim();
    if (text !== '')
      sections.push({
        text,
        location: { ...(path.length > 0 && { headings: path.filter(Boolean) }), line: start + 1 },
      });
    body = [];
  };
  for (const [at, line] of lines.entries()) {
    if (at < start && body.length === 0) continue;
    const mark = FENCE.exec(line)?.[1];
    if (mark) fence = fence === undefined ? mark : fence === mark ? undefined : fence;
    const heading = fence === undefined ? HEADING.exec(line) : null;
    if (!heading) {
      body.push(line);
      continue;
    }
    close();
    const depth = (heading[1] ?? '#').length;
    path.length = depth - 1;
    path[depth - 1] = heading[2] ?? '';
    start = at;
  }
  close();
  return { title: sections[0]?.location.headings?.[0] ?? firstHeading(lines), sections };
}

/** The index of the first line behind `---` … `---`. */
function skipFrontMatter(lines: readonly string[]): number {
  if (lines[0] !== '---') return 0;
  const end = lines.indexOf('---', 1);
  return end < 0 ? 0 : end + 1;
}

function firstHeading(lines: readonly string[]): string | undefined {
  for (const line of lines) {
    const heading = HEADING.exec(line);
    if (heading) return heading[2];
  }
  return undefined;
}
