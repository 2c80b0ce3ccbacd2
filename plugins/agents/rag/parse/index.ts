import { isUtf8 } from 'node:buffer';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { type DefaultTreeAdapterTypes, parse as parseDocument } from 'parse5';
import { BadFile, type Parsed, type Section } from '../section.ts';

type Node = DefaultTreeAdapterTypes.Node;

const HIDDEN: ReadonlySet<string> = new Set([
  'script',
  'style',
  'template',
  'noscript',
  'svg',
  'head',
  'nav',
  'iframe',
  'object',
]);
const BLOCK: ReadonlySet<string> = new Set([
  'p',
  'div',
  'li',
  'tr',
  'br',
  'pre',
  'blockquote',
  'section',
  'article',
  'table',
  'ul',
  'ol',
  'dd',
  'dt',
  'figure',
]);

/** Deeper nesting is skipped: a hostile page must not overflow the stack. */
const MAX_HTML_DEPTH = 500;

/** Parses HTML by its headings; omits scripts, styles and navigation. */
function parseHtml(source: string): Parsed {
  const document = parseDocument(source);
  const sections: Section[] = [];
  const path: string[] = [];
  let text = '';
  const close = (nextLevel = 1): void => {
    const headings = path.filter(Boolean);
    // A heading without text below it is content, except when it only groups other headings.
    const own = nextLevel <= path.length ? (path.at(-1) ?? '') : '';
    const body =
      text
        .replace(/[ \t]+/g, ' ')
        .replace(/ ?\n ?/g, '\n')
        .replace(/\n{3,}/g, '\n\n')
        .trim() || own;
    if (body !== '') sections.push({ text: body, location: headings.length > 0 ? { headings } : {} });
    text = '';
  };
  const walk = (node: Node, depth: number): void => {
    if (depth > MAX_HTML_DEPTH) return;
    if (node.nodeName === '#text') {
      text += (node as DefaultTreeAdapterTypes.TextNode).value.replace(/\s+/g, ' ');
      return;
    }
    if (HIDDEN.has(node.nodeName) || ('attrs' in node && node.attrs.some(({ name }) => name === 'hidden'))) return;
    const level = /^h([1-6])$/.exec(node.nodeName)?.[1];
    if (level !== undefined) {
      close(Number(level));
      path.length = Number(level) - 1;
      path[Number(level) - 1] = textOf(node, depth).replace(/\s+/g, ' ').trim();
      return;
    }
    const isBlock = BLOCK.has(node.nodeName);
    if (isBlock) text += '\n';
    for (const child of childrenOf(node)) walk(child, depth + 1);
    if (isBlock) text += '\n';
  };
  walk(document, 0);
  close();
  return { title: titleOf(document) ?? sections[0]?.location.headings?.[0], sections };
}

function childrenOf(node: Node): readonly Node[] {
  return 'childNodes' in node ? node.childNodes : [];
}

function textOf(node: Node, depth: number): string {
  if (depth > MAX_HTML_DEPTH) return '';
  if (node.nodeName === '#text') return (node as DefaultTreeAdapterTypes.TextNode).value;
  return childrenOf(node)
    .map((child) => textOf(child, depth + 1))
    .join('');
}

function titleOf(document: Node): string | undefined {
  const html = childrenOf(document).find(({ nodeName }) => nodeName === 'html');
  const head = html && childrenOf(html).find(({ nodeName }) => nodeName === 'head');
  const title = head && childrenOf(head).find(({ nodeName }) => nodeName === 'title');
  const text = title && textOf(title, 0).replace(/\s+/g, ' ').trim();
  return text || undefined;
}

const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/;
/** Lines with `---` under them that are not headings. */
const OTHER_BLOCK = /^(?:[-*+>|]|\d+[.)] )/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Longest heading; the patterns above never see a longer line. */
const MAX_HEADING = 500;

interface Heading {
  readonly depth: number;
  readonly text: string;
}

/** Parses Markdown by headings. A `#` inside a fenced block is not a heading, and front matter is omitted. */
function parseMarkdown(source: string): Parsed {
  const lines = source.split(/\r\n|\r|\n/);
  const sections: Section[] = [];
  const path: string[] = [];
  let title: string | undefined;
  let body: string[] = [];
  let start = skipFrontMatter(lines);
  let fence: string | undefined;
  const close = (next: Heading | undefined): void => {
    // A heading without text below it is content, except when it only groups other headings.
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

/** Reads a heading with `#`, or a single line with `===` or `---` under it. */
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

/** Index of the first line after `---` … `---`. */
function skipFrontMatter(lines: readonly string[]): number {
  if (lines[0]?.trimEnd() !== '---') return 0;
  const end = lines.findIndex((line, at) => at > 0 && line.trimEnd() === '---');
  return end < 0 ? 0 : end + 1;
}

/** Maximum depth; deeper values are skipped. */
const MAX_DEPTH = 20;

/**
 * Parses JSON: one section per list item, or one for an object. The text of an item is its field `text` (or `content`),
 * and the title its field `title`; otherwise its fields become `name: value` lines.
 */
function parseJsonFile(source: string): Parsed {
  const value = parseJson(source, 'the file');
  const items = Array.isArray(value) ? value : [value];
  return { title: undefined, sections: items.flatMap((item, at) => toSection(item, at + 1)) };
}

/** Parses JSON Lines: one item per line; a broken line makes the file invalid, reported with its number. */
function parseJsonLines(source: string): Parsed {
  const lines = source.split(/\r?\n/);
  return {
    title: undefined,
    sections: lines.flatMap((line, at) =>
      line.trim() === '' ? [] : toSection(parseJson(line, `line ${at + 1}`), at + 1),
    ),
  };
}

function parseJson(source: string, where: string): unknown {
  try {
    return JSON.parse(source);
  } catch {
    throw new BadFile(`${where} is not JSON`);
  }
}

function toSection(item: unknown, row: number): readonly Section[] {
  const record =
    typeof item === 'object' && item !== null && !Array.isArray(item) ? (item as Record<string, unknown>) : {};
  const own = record['text'] ?? record['content'];
  const text = (typeof own === 'string' ? own : flatten(item, '', 0).join('\n')).trim();
  const title = record['title'] ?? record['name'];
  return text === '' ? [] : [{ text, location: { row }, ...(typeof title === 'string' && { title }) }];
}

function flatten(value: unknown, name: string, depth: number): readonly string[] {
  if (depth > MAX_DEPTH || value === null || value === undefined) return [];
  if (typeof value !== 'object') return [name === '' ? String(value) : `${name}: ${String(value)}`];
  return Object.entries(value).flatMap(([key, child]) =>
    flatten(child, Array.isArray(value) ? name : name === '' ? key : `${name}.${key}`, depth + 1),
  );
}

/** Maximum rows of one table. */
const MAX_ROWS = 100_000;

const DELIMITERS = Object.freeze([',', ';', '\t', '|']);

/**
 * Parses CSV with a header: one section per row, as `column: value` lines. The delimiter is the most frequent one in
 * the first line.
 */
function parseCsv(source: string): Parsed {
  const [head = [], ...body] = readRows(source);
  if (body.length > MAX_ROWS) throw new BadFile(`a table of more than ${MAX_ROWS} rows`);
  const sections = body.flatMap((cells, at) => {
    const text = cells
      .flatMap((cell, column) => (cell.trim() === '' ? [] : [head[column] ? `${head[column]}: ${cell}` : cell]))
      .join('\n');
    return text === '' ? [] : [{ text, location: { row: at + 1 } }];
  });
  return { title: undefined, sections };
}

function readRows(source: string): readonly (readonly string[])[] {
  try {
    return parse(source, {
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      to: MAX_ROWS + 2,
      max_record_size: 1_000_000,
      delimiter: findDelimiter(source),
    }) as string[][];
  } catch (error) {
    throw new BadFile(`not a table: ${error instanceof Error ? error.message.slice(0, 200) : 'unreadable'}`);
  }
}

function findDelimiter(source: string): string {
  const line =
    source
      .slice(0, 10_000)
      .trimStart()
      .split(/[\r\n]/, 1)[0] ?? '';
  const bare = line.replace(/"[^"]*"/g, '');
  const counts = DELIMITERS.map((delimiter) => bare.split(delimiter).length - 1);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ',';
}

const TEXT_PARSERS: Readonly<Record<string, (source: string) => Parsed>> = Object.freeze({
  '.md': parseMarkdown,
  '.markdown': parseMarkdown,
  '.txt': parseText,
  '.html': parseHtml,
  '.htm': parseHtml,
  '.json': parseJsonFile,
  '.jsonl': parseJsonLines,
  '.csv': parseCsv,
});

/** Supported file extensions. */
export const ENDINGS: ReadonlySet<string> = new Set([...Object.keys(TEXT_PARSERS), '.pdf']);

/** Parses a file by its extension. Throws {@link BadFile} if the content does not match. */
export async function parseFile(name: string, bytes: Buffer): Promise<Parsed> {
  const ending = path.extname(name).toLowerCase();
  if (ending === '.pdf') return parsePdf(new Uint8Array(bytes));
  const parser = TEXT_PARSERS[ending];
  if (!parser) throw new BadFile(`the extension ${ending} is not supported`);
  return parser(decodeText(bytes, ending === '.html' || ending === '.htm'));
}

/** Parses plain text: one section, which chunking cuts at paragraphs. */
function parseText(source: string): Parsed {
  return { title: undefined, sections: source.trim() === '' ? [] : [{ text: source, location: { line: 1 } }] };
}

/** Maximum pages of one document. */
const MAX_PAGES = 2000;

/** Parses PDF by pages with unpdf (a build of pdf.js for servers, without canvas). Loaded for the first PDF. */
async function parsePdf(bytes: Uint8Array): Promise<Parsed> {
  const { getDocumentProxy } = await import('unpdf');
  try {
    const document = await getDocumentProxy(bytes, { isEvalSupported: false, verbosity: 0 });
    try {
      if (document.numPages > MAX_PAGES) throw new BadFile(`${document.numPages} pages; the limit is ${MAX_PAGES}`);
      const title = ((await document.getMetadata()).info as { readonly Title?: unknown }).Title;
      const sections: Section[] = [];
      for (let number = 1; number <= document.numPages; number += 1) {
        const page = await document.getPage(number);
        const { items } = await page.getTextContent();
        const text = items
          .map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : ''))
          .join('')
          .trim();
        if (text !== '') sections.push({ text, location: { page: number } });
        page.cleanup();
      }
      return { title: typeof title === 'string' && title.trim() !== '' ? title.trim() : undefined, sections };
    } finally {
      await document.destroy();
    }
  } catch (error) {
    if (error instanceof BadFile) throw error;
    throw new BadFile(`not a readable PDF: ${error instanceof Error ? error.message.slice(0, 200) : 'unreadable'}`);
  }
}

/** Bytes that never occur in text of a single-byte encoding: controls except tab, line feed, form feed and return. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const BINARY = /[\0-\x08\x0b\x0e-\x1f\x7f]/;

/** Codes without a character in Windows-1252; its decoder returns them as controls. */
const UNASSIGNED = /[\x81\x8d\x8f\x90\x9d]/;

/** Letters outside ASCII are a minority in every language that uses Windows-1252. */
const MAX_HIGH = 0.4;

/** Encoding declared by an HTML page, in its first kilobyte. */
const META = /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i;
const META_BYTES = 1024;

/**
 * Decodes a file's text: UTF-8, UTF-16 with a byte order mark, the encoding declared by an HTML page, else Windows-1252
 * (a superset of Latin-1). Throws {@link BadFile} for bytes that are text in none of them.
 */
export function decodeText(bytes: Buffer, isHtml: boolean): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return decodeAs('utf-16le', bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return decodeAs('utf-16be', bytes);
  const ascii = bytes.toString('latin1');
  if (isUtf8(bytes) && !bytes.includes(0)) return new TextDecoder().decode(bytes);
  const named = isHtml ? META.exec(ascii.slice(0, META_BYTES))?.[1] : undefined;
  const high = bytes.reduce((sum, byte) => sum + (byte > 0x7f ? 1 : 0), 0);
  if (BINARY.test(ascii)) throw new BadFile('not text');
  if (named !== undefined && !/^(utf-?8|windows-1252|latin-?1|iso-8859-1)$/i.test(named)) return decodeAs(named, bytes);
  if (UNASSIGNED.test(ascii) || high > bytes.length * MAX_HIGH)
    throw new BadFile('not text in UTF-8, UTF-16 with a byte order mark or Latin-1');
  return fromWindows(ascii);
}

/** Windows-1252 characters from 0x80 to 0x9f, which are controls in Latin-1; a dot marks an unassigned code. */
const WINDOWS = '€.‚ƒ„…†‡ˆ‰Š‹Œ.Ž..‘’“”•–—˜™š›œ.žŸ';

/** Node's own decoder of Windows-1252 returns Latin-1 in several releases (nodejs/node#56542). */
function fromWindows(latin1: string): string {
  return latin1.replace(/[\x80-\x9f]/g, (character) => WINDOWS[character.charCodeAt(0) - 0x80] ?? '');
}

function decodeAs(encoding: string, bytes: Buffer): string {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw new BadFile(`not text in ${encoding}`);
  }
}
