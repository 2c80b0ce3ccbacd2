import { parse } from 'csv-parse/sync';
import { BadFile, type Parsed } from '../section.ts';

/** The most rows of one table. */
const MAX_ROWS = 100_000;

const DELIMITERS = Object.freeze([',', ';', '\t', '|']);

/** CSV with a head: one section a row, as `column: value` lines. The delimiter is the one that its first line has most of. */
export function parseCsv(source: string): Parsed {
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
