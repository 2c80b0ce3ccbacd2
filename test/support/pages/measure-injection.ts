/**
 * `npm run injection -- <folder>`: measures the guardrail `injection` on public sets, for the table of
 * `docs/measurements.md`. The sets are not in this repository; that page names their sources. The signs were
 * written with half of each set (`seen`), selected by a hash of the text.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { findInjection } from '../../../plugins/guardrails/injection.ts';

const folder = process.argv[2] ?? '.';
const readText = (file: string): string => readFileSync(path.join(folder, file), 'utf8');
const readJson = (file: string): unknown => JSON.parse(readText(file));
const readLines = (file: string): readonly Row[] =>
  readText(file)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Row);

type Row = Readonly<Record<string, unknown>>;

interface PublicSet {
  readonly name: string;
  readonly isAttack: boolean;
  readonly files: readonly string[];
  read(): readonly unknown[];
}

const valid = (wanted: (row: Row) => boolean): readonly unknown[] =>
  (readJson('valid.json') as readonly Row[]).filter(wanted).map(({ prompt }) => prompt);
const isPint = ({ source }: Row): boolean => String(source).startsWith('PINT');

const NOT_INJECT = ['NotInject_one.json', 'NotInject_two.json', 'NotInject_three.json'];
const SETS: readonly PublicSet[] = [
  {
    ...{ name: 'PINT, attacks', isAttack: true, files: ['valid.json'] },
    read: () => valid((row) => isPint(row) && row['label'] === 1),
  },
  {
    ...{ name: 'Giskard', isAttack: true, files: ['prompt_injections.csv'] },
    read: () =>
      (parse(readText('prompt_injections.csv'), { columns: true }) as readonly Row[]).map(({ prompt }) => prompt),
  },
  {
    ...{ name: 'Tensor Trust, extraction', isAttack: true, files: ['extraction_robustness_dataset.jsonl'] },
    read: () => readLines('extraction_robustness_dataset.jsonl').map(({ attack }) => attack),
  },
  {
    ...{ name: 'Tensor Trust, hijacking', isAttack: true, files: ['hijacking_robustness_dataset.jsonl'] },
    read: () => readLines('hijacking_robustness_dataset.jsonl').map(({ attack }) => attack),
  },
  {
    ...{ name: 'BIPIA, texts', isAttack: true, files: ['BIPIA_text.json'] },
    read: () => Object.values(readJson('BIPIA_text.json') as Readonly<Record<string, readonly string[]>>).flat(),
  },
  {
    ...{ name: 'NotInject', isAttack: false, files: NOT_INJECT },
    read: () => NOT_INJECT.flatMap((file) => (readJson(file) as readonly Row[]).map(({ prompt }) => prompt)),
  },
  {
    ...{ name: 'PINT and WildGuard, harmless', isAttack: false, files: ['valid.json'] },
    read: () => valid((row) => row['label'] === 0 && !String(row['source']).startsWith('NotInject')),
  },
];

const isSeen = (text: string): boolean => (createHash('sha256').update(text).digest()[0] ?? 0) % 2 === 0;

let characters = 0;
let cpuUs = 0;
const rows = SETS.filter(({ files }) => files.every((file) => existsSync(path.join(folder, file)))).map((set) => {
  const texts = set.read().map(String);
  const before = process.cpuUsage();
  const found = texts.filter((text) => findInjection(text) !== undefined);
  cpuUs += process.cpuUsage(before).user;
  characters += texts.reduce((sum, text) => sum + text.length, 0);
  const share = (of: boolean): string => {
    const all = texts.filter((text) => isSeen(text) === of).length;
    const hits = found.filter((text) => isSeen(text) === of).length;
    return `${hits} of ${all} (${Math.round((100 * hits) / Math.max(1, all))} %)`;
  };
  return `| ${set.name} | ${set.isAttack ? 'attacks' : 'harmless'} | ${share(true)} | ${share(false)} |`;
});
process.stdout.write(`| Set | Texts | Found, seen half | Found, held half |\n|---|---|---|---|\n${rows.join('\n')}\n`);
process.stdout.write(`\n${Math.round(cpuUs / (characters / 1024))} µs of CPU a KB\n`);
