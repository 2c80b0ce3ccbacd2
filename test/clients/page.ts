import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readSetups } from '../../cli/init.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { OPENAI_MODELS } from './openai-vendor.ts';
import {
  BEHAVIOURS,
  CLIENTS,
  type ClientRun,
  canChat,
  DEAR_MODELS,
  NODE,
  ON_BUDGET,
  ON_OPENAI,
  ON_OPERATIONS,
  ON_TEMPLATES,
  OPERATIONS,
  TEMPLATE_MODELS,
  WITHOUT_CHAT,
} from './table.ts';

/** Cells (`works`, or a word with its reason after a colon) by row, then by behaviour. */
export type Matrix = Record<string, Record<string, string>>;

const PAGE = path.join(PACKAGE_ROOT, 'docs', 'clients.md');
const MATRIX = /(<!-- matrix -->\n)([\s\S]*?)(<!-- end of matrix -->)/;
const REFUSED = /(<!-- without chat -->\n)([\s\S]*?)(<!-- end of without chat -->)/;
const MODELS = /(<!-- models -->\n)([\s\S]*?)(<!-- end of models -->)/;
const BUDGETS = /(<!-- budgets -->\n)([\s\S]*?)(<!-- end of budgets -->)/;
const SELF_HOSTED = /(<!-- templates -->\n)([\s\S]*?)(<!-- end of templates -->)/;
const NOT_CHAT = /(<!-- operations -->\n)([\s\S]*?)(<!-- end of operations -->)/;
const SET_UP = /(<!-- set-up -->\n)([\s\S]*?)(<!-- end of set-up -->)/;
const NOT_RUN = '–';

export function rowOf({ title, format }: Pick<ClientRun, 'title' | 'format'>): string {
  return `${title} | ${format}`;
}

/** Reads the matrix from the page. */
export function readMatrix(): Matrix {
  return readCells(MATRIX, 2, BEHAVIOURS);
}

/** Reads the results of clients whose own chat format is refused. */
export function readWithoutChat(): Matrix {
  return readCells(REFUSED, 2, WITHOUT_CHAT);
}

/** Reads the results of operations other than chat from the page: cells by client, then by operation. */
export function readOperations(): Matrix {
  return readCells(NOT_CHAT, 1, OPERATIONS);
}

/** Reads a table with notes. The first `named` columns name the client. */
function readCells(place: RegExp, named: number, columns: readonly string[]): Matrix {
  const [, , text = ''] = place.exec(readFileSync(PAGE, 'utf8')) ?? [];
  const lines = text.split('\n');
  const notes = new Map(
    lines.flatMap((line) => [...line.matchAll(/^(\d+)\. (.*)$/g)].map(([, at, note]) => [at, note])),
  );
  const [head = [], ...rows] = lines
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(2, -2).split(' | '));
  return Object.fromEntries(
    rows.map((cells) => {
      // Reads columns by name, because the page may lack a new column.
      const own = columns.flatMap((column) => {
        const [, word = NOT_RUN, note] =
          /^\**(.*?)\**(?: \((\d+)\))?$/.exec(cells[head.indexOf(column)] ?? NOT_RUN) ?? [];
        return word === NOT_RUN ? [] : [[column, note === undefined ? word : `${word}: ${notes.get(note)}`] as const];
      });
      return [cells.slice(0, named).join(' | '), Object.fromEntries(own)];
    }),
  );
}

/** Reads the results of tool loops on OpenAI's models from the page: words by client, then by model. */
export function readModels(): Matrix {
  return readLoops(MODELS, 1);
}

/** Reads the results of tool loops on expensive models with a small budget, by client and format. */
export function readBudgets(): Matrix {
  return readLoops(BUDGETS, 2);
}

/** Reads the results of tool loops on self-hosted models with enforced chat templates. */
export function readTemplates(): Matrix {
  return readLoops(SELF_HOSTED, 2);
}

/** Reads a table whose first `named` columns name the client. */
function readLoops(place: RegExp, named: number): Matrix {
  const [, , text = ''] = place.exec(readFileSync(PAGE, 'utf8')) ?? [];
  const [head = [], , ...rows] = text
    .split('\n')
    .flatMap((line) => (line.startsWith('|') ? [line.slice(2, -2).split(' | ')] : []));
  return Object.fromEntries(
    rows.map((cells) => [
      cells.slice(0, named).join(' | '),
      Object.fromEntries(cells.slice(named).map((cell, at) => [head[at + named] ?? '', cell])),
    ]),
  );
}

/** Reads the set-up of every client from the page. */
export function readSetUpPart(): string {
  const [, , text = ''] = SET_UP.exec(readFileSync(PAGE, 'utf8')) ?? [];
  return text;
}

/** Results of a run, by table. */
interface Found {
  readonly matrix: Matrix;
  readonly models: Matrix;
  readonly budgets: Matrix;
  readonly operations: Matrix;
  readonly templates: Matrix;
}

export function writePage({ matrix, models, budgets, operations, templates }: Found): void {
  const runs = CLIENTS.flatMap((row) => row.runs);
  const withoutChat = runs.filter((each) => !canChat(each));
  const date = new Date().toISOString().slice(0, 10);
  const run = `\nRun on ${date} with Node ${NODE.slice('node@'.length)}.\n`;
  const otherThanChat = Object.values(ON_OPERATIONS).flatMap((rows) => rows.map(({ title }) => title));
  const parts = [
    [MODELS, writeLoops(['Client'], OPENAI_MODELS, ON_OPENAI, models)],
    [SELF_HOSTED, writeLoops(['Client', 'Format'], Object.keys(TEMPLATE_MODELS), ON_TEMPLATES, templates)],
    [BUDGETS, writeLoops(['Client', 'Format'], Object.keys(DEAR_MODELS), ON_BUDGET, budgets)],
    [MATRIX, run + writeCells(['Client', 'Format'], BEHAVIOURS, runs.filter(canChat).map(rowOf), matrix)],
    [REFUSED, writeCells(['Client', 'Format'], WITHOUT_CHAT, withoutChat.map(rowOf), matrix)],
    [NOT_CHAT, writeCells(['Client'], OPERATIONS, otherThanChat, operations)],
    [SET_UP, writeSetUps()],
  ] as const;
  let page = readFileSync(PAGE, 'utf8');
  for (const [place, text] of parts)
    page = page.replace(place, (_, start: string, _old: string, end: string) => start + text + end);
  writeFileSync(PAGE, page);
}

function writeCells(
  named: readonly string[],
  columns: readonly string[],
  rows: readonly string[],
  cells: Matrix,
): string {
  const notes: string[] = [];
  const write = (cell = NOT_RUN): string => {
    const [word = '', ...reason] = cell.split(': ');
    if (reason.length === 0) return word;
    const note = reason.join(': ').replaceAll('|', '/').replaceAll('<', '&lt;');
    if (!notes.includes(note)) notes.push(note);
    return `${word === 'fails' ? '**fails**' : word} (${notes.indexOf(note) + 1})`;
  };
  const table = writeTable(
    [...named, ...columns],
    rows.map((row) => [row, ...columns.map((column) => write(cells[row]?.[column]))]),
  );
  return `${table}${notes.map((note, index) => `${index + 1}. ${note}\n`).join('')}${notes.length > 0 ? '\n' : ''}`;
}

function writeTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const [first, ...lines] = [head, ...rows].map((cells) => `| ${cells.join(' | ')} |\n`);
  return `\n${first}|${head.map(() => '---|').join('')}\n${lines.join('')}\n`;
}

function writeLoops(
  named: readonly string[],
  models: readonly string[],
  clients: readonly string[],
  loops: Matrix,
): string {
  return writeTable(
    [...named, ...models],
    clients.map((client) => [client, ...models.map((model) => loops[client]?.[model] ?? NOT_RUN)]),
  );
}

export function writeSetUps(): string {
  const parts = Object.entries(readSetups()).map(([name, { title, note, steps }]) => {
    const blocks = steps.map(({ language, file, lines }) => {
      const where = file === undefined ? '' : `\`${file}\`:\n\n`;
      return `${where}\`\`\`${language}\n${lines.join('\n')}\n\`\`\`\n`;
    });
    const reported = note === undefined ? '' : `${note}\n\n`;
    return `### ${title}\n\n\`tollgate init --client ${name}\`\n\n${reported}${blocks.join('\n')}\n`;
  });
  return `\n${parts.join('')}`;
}
