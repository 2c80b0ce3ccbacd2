import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../core/config/package-root.ts';
import { SETUPS } from './set-up.ts';
import { BEHAVIOURS, CLIENTS, NODE } from './table.ts';

/** Cells by the title of the row, then by behaviour. */
export type Matrix = Record<string, Record<string, string>>;

export const PAGE = path.join(PACKAGE_ROOT, 'docs', 'clients.md');
const MATRIX = /(<!-- matrix -->\n)[\s\S]*?(<!-- end of matrix -->)/;
const SET_UP = /(<!-- set-up -->\n)[\s\S]*?(<!-- end of set-up -->)/;

/** The cells of the last run, for those that are not run now. */
export function readMatrix(): Matrix {
  const [, rows = ''] = /<!-- data (.*) -->/.exec(readFileSync(PAGE, 'utf8')) ?? [];
  return rows === '' ? {} : (JSON.parse(rows) as Matrix);
}

export function writePage(matrix: Matrix): void {
  const page = readFileSync(PAGE, 'utf8')
    .replace(MATRIX, (_, start: string, end: string) => start + writeMatrix(matrix) + end)
    .replace(SET_UP, (_, start: string, end: string) => start + writeSetUps() + end);
  writeFileSync(PAGE, page);
}

export function writeMatrix(matrix: Matrix): string {
  const notes: string[] = [];
  const cellOf = (cell: string | undefined): string => {
    const [word = '', ...reason] = (cell ?? '–').split(': ');
    if (reason.length === 0) return word;
    const note = reason.join(': ').replaceAll('|', '\\|').replaceAll('<', '&lt;');
    if (!notes.includes(note)) notes.push(note);
    return `${word === 'fails' ? '**fails**' : word} (${notes.indexOf(note) + 1})`;
  };
  const runs = CLIENTS.flatMap((row) => row.runs);
  const head = `| Client | Format | ${BEHAVIOURS.join(' | ')} |\n|---|---|${BEHAVIOURS.map(() => '---|').join('')}\n`;
  const lines = runs.map(({ title, format }) => {
    const cells = BEHAVIOURS.map((behaviour) => cellOf(matrix[title]?.[behaviour]));
    return `| ${title} | ${format} | ${cells.join(' | ')} |\n`;
  });
  const date = new Date().toISOString().slice(0, 10);
  const numbered = notes.map((note, index) => `${index + 1}. ${note}\n`);
  const kept = Object.fromEntries(runs.flatMap(({ title }) => (matrix[title] ? [[title, matrix[title]]] : [])));
  return `\nRun on ${date} by ${NODE.replace('@', ' ')}.\n\n${head}${lines.join('')}\n${numbered.join('')}\n<!-- data ${JSON.stringify(kept)} -->\n\n`;
}

export function writeSetUps(): string {
  const parts = Object.entries(SETUPS).map(([name, { title, note, steps }]) => {
    const blocks = steps.map(({ language, file, lines }) => {
      const where = file === undefined ? '' : `\`${file}\`:\n\n`;
      return `${where}\`\`\`${language}\n${lines.join('\n')}\n\`\`\`\n`;
    });
    return `### ${title}\n\n\`tollgate init --client ${name}\`\n\n${note === undefined ? '' : `${note}\n\n`}${blocks.join('\n')}\n`;
  });
  return `\n${parts.join('')}`;
}
