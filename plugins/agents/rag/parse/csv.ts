import { parse } from 'csv-parse/sync';
import { BadFile, type Parsed } from '../section.ts';

/** The most rows of one table. */
const MAX_ROWS = 100_000;

/** CSV with a head: one section a row, as `column: value` lines. */
export function parseCsv(source: string): Parsed {
  const rows = readRows(source);
  const [head = [], ...body] = rows;
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
      bom: true,
      relax_column_count: true,
      skip_empty_lines: true,
      to: MAX_ROWS,
      max_record_size: 1_000_000,
      delimiter: [',', ';', '\t'],
    }) as string[][];
  } catch (error) {
    throw new BadFile(`not a table: ${error instanceof Error ? error.message : 'unreadable'}`);
  }
}
