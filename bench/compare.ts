/**
 * Compares two runs of the bench: `node bench/dist/bench/compare.js old.json new.json [tolerance]`. What is compared is each
 * target's ratio to the reference of its own run, so that another machine or a busy hour does not count as a change. Exits
 * with 1 when a ratio of Tollgate's grew by more than the tolerance (0.15 unless told) and its rounds do not overlap the old ones.
 */
import { readFileSync } from 'node:fs';
import type { CaseResult } from './measure.ts';
import { type BenchResult, ratioOf } from './report.ts';

const OTHERS: ReadonlySet<string> = new Set(['bare', 'koa', 'got', 'nginx', 'portkey', 'direct']);

const [before = '', after = '', tolerance = '0.15'] = process.argv.slice(2);
const read = (file: string): BenchResult => JSON.parse(readFileSync(file, 'utf8')) as BenchResult;
const [old, now] = [read(before), read(after)];
const rows: string[] = [];
let worse = 0;

function compare(was: CaseResult, is: CaseResult, name: string): void {
  const [from, to] = [ratioOf(was, name), ratioOf(is, name)];
  if (!from || !to || name === is.reference) return;
  const change = to.median / from.median - 1;
  const isWorse = !OTHERS.has(name) && change > Number(tolerance) && to.min > from.max;
  if (isWorse) worse += 1;
  const sign = change >= 0 ? '+' : '';
  rows.push(
    `| ${is.id} | ${name} | ${from.median.toFixed(2)} | ${to.median.toFixed(2)} | ${sign}${(100 * change).toFixed(0)} %${isWorse ? ' **worse**' : ''} |`,
  );
}

for (const is of now.cases) {
  const was = old.cases.find(({ id, reference }) => id === is.id && reference === is.reference);
  if (was) for (const { name } of is.targets) compare(was, is, name);
}
console.log('| case | target | ratio before | ratio now | change |\n| --- | --- | --- | --- | --- |');
console.log(rows.join('\n'));
console.log(worse > 0 ? `\n${worse} ratios grew by more than ${Number(tolerance) * 100} %.` : '\nNo ratio grew.');
process.exitCode = worse > 0 ? 1 : 0;
