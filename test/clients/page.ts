import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readSetups } from '../../cli/init.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { OPENAI_MODELS } from './openai-vendor.ts';
import { BEHAVIOURS, CLIENTS, type ClientRun, NODE, ON_OPENAI } from './table.ts';

/** Cells (`works`, or a word with its reason after a colon) by row, then by behaviour. */
export type Matrix = Record<string, Record<string, string>>;

const PAGE = path.join(PACKAGE_ROOT, 'docs', 'clients.md');
const MATRIX = /(<!-- matrix -->\n)([\s\S]*?)(<!-- end of matrix -->)/;
const MODELS = /(<!-- models -->\n)([\s\S]*?)(<!-- end of models -->)/;
const SET_UP = /(<!-- set-up -->\n)([\s\S]*?)(<!-- end of set-up -->)/;
const NOT_RUN = '–';

export function rowOf({ title, format }: Pick<ClientRun, 'title' | 'format'>): string {
  return `${title} | ${format}`;
}

/** The matrix as the page has it. */
export function readMatrix(): Matrix {
  const [, , text = ''] = MATRIX.exec(readFileSync(PAGE, 'utf8')) ?? [];
  const lines = text.split('\n');
  const notes = new Map(
    lines.flatMap((line) => [...line.matchAll(/^(\d+)\. (.*)$/g)].map(([, at, note]) => [at, note])),
  );
  const rows = lines.filter((line) => line.startsWith('| ')).map((line) => line.slice(2, -2).split(' | '));
  return Object.fromEntries(
    rows.slice(1).map(([title = '', format = '', ...cells]) => {
      const own = BEHAVIOURS.flatMap((behaviour, at) => {
        const [, word = NOT_RUN, note] = /^\**(.*?)\**(?: \((\d+)\))?$/.exec(cells[at] ?? NOT_RUN) ?? [];
        return word === NOT_RUN
          ? []
          : [[behaviour, note === undefined ? word : `${word}: ${notes.get(note)}`] as const];
      });
      return [`${title} | ${format}`, Object.fromEntries(own)];
    }),
  );
}

/** What came of loops of tools on OpenAI's models as the page has it: words by client, then by model. */
export function readModels(): Matrix {
  const [, , text = ''] = MODELS.exec(readFileSync(PAGE, 'utf8')) ?? [];
  const [head = [], , ...rows] = text
    .split('\n')
    .flatMap((line) => (line.startsWith('|') ? [line.slice(2, -2).split(' | ')] : []));
  return Object.fromEntries(
    rows.map(([title = '', ...cells]) => [
      title,
      Object.fromEntries(cells.map((cell, at) => [head[at + 1] ?? '', cell])),
    ]),
  );
}

/** The set-up of every client as the page has it. */
export function readSetUpPart(): string {
  const [, , text = ''] = SET_UP.exec(readFileSync(PAGE, 'utf8')) ?? [];
  return text;
}

export function writePage(matrix: Matrix, models: Matrix): void {
  const page = readFileSync(PAGE, 'utf8')
    .replace(MODELS, (_, start: string, _old: string, end: string) => start + writeModels(models) + end)
    .replace(MATRIX, (_, start: string, _old: string, end: string) => start + writeMatrix(matrix) + end)
    .replace(SET_UP, (_, start: string, _old: string, end: string) => start + writeSetUps() + end);
  writeFileSync(PAGE, page);
}

function writeMatrix(matrix: Matrix): string {
  const notes: string[] = [];
  const write = (cell = NOT_RUN): string => {
    const [word = '', ...reason] = cell.split(': ');
    if (reason.length === 0) return word;
    const note = reason.join(': ').replaceAll('|', '/').replaceAll('<', '&lt;');
    if (!notes.includes(note)) notes.push(note);
    return `${word === 'fails' ? '**fails**' : word} (${notes.indexOf(note) + 1})`;
  };
  const head = `| Client | Format | ${BEHAVIOURS.join(' | ')} |\n|---|---|${BEHAVIOURS.map(() => '---|').join('')}\n`;
  const lines = CLIENTS.flatMap(({ runs }) => runs).map((run) => {
    const cells = BEHAVIOURS.map((behaviour) => write(matrix[rowOf(run)]?.[behaviour]));
    return `| ${rowOf(run)} | ${cells.join(' | ')} |\n`;
  });
  const date = new Date().toISOString().slice(0, 10);
  const numbered = notes.map((note, index) => `${index + 1}. ${note}\n`).join('');
  return `\nRun on ${date} with Node ${NODE.slice('node@'.length)}.\n\n${head}${lines.join('')}\n${numbered}\n`;
}

function writeModels(models: Matrix): string {
  const lines = ON_OPENAI.map(
    (title) => `| ${[title, ...OPENAI_MODELS.map((model) => models[title]?.[model] ?? NOT_RUN)].join(' | ')} |\n`,
  );
  return `\n| Client | ${OPENAI_MODELS.join(' | ')} |\n|---|${OPENAI_MODELS.map(() => '---|').join('')}\n${lines.join('')}\n`;
}

export function writeSetUps(): string {
  const parts = Object.entries(readSetups()).map(([name, { title, note, steps }]) => {
    const blocks = steps.map(({ language, file, lines }) => {
      const where = file === undefined ? '' : `\`${file}\`:\n\n`;
      return `${where}\`\`\`${language}\n${lines.join('\n')}\n\`\`\`\n`;
    });
    const told = note === undefined ? '' : `${note}\n\n`;
    return `### ${title}\n\n\`tollgate init --client ${name}\`\n\n${told}${blocks.join('\n')}\n`;
  });
  return `\n${parts.join('')}`;
}
