import path from 'node:path';
import { BadFile, type Parsed } from '../section.ts';
import { parseCsv } from './csv.ts';
import { decodeText } from './decode-text.ts';
import { parseHtml } from './html.ts';
import { parseJsonFile, parseJsonLines } from './json.ts';
import { parseMarkdown } from './markdown.ts';
import { parsePdf } from './pdf.ts';
import { parseText } from './text.ts';

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

/** The endings that are read. */
export const ENDINGS: ReadonlySet<string> = new Set([...Object.keys(TEXT_PARSERS), '.pdf']);

/** Reads a file's bytes by its ending. Throws {@link BadFile} for what is not what its ending says. */
export async function parseFile(name: string, bytes: Buffer): Promise<Parsed> {
  const ending = path.extname(name).toLowerCase();
  if (ending === '.pdf') return parsePdf(new Uint8Array(bytes));
  const parser = TEXT_PARSERS[ending];
  if (!parser) throw new BadFile(`the ending ${ending} is not one that is read`);
  return parser(decodeText(bytes, ending === '.html' || ending === '.htm'));
}
