import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import type { Tried } from './client.ts';
import type { Sample, Share, Verdict } from './judge.ts';

export interface Report {
  /** Text for the terminal. */
  readonly text: string;
  /** Text for the page. */
  readonly page: string;
  readonly isGood: boolean;
}

interface Options {
  readonly minutes: number;
  readonly rate: number;
  readonly seed: number;
}

const GOAL = 0.999;

/** Maximum share of streams lost to a vendor that interrupts its streams, after its first ten seconds. */
const MOST_CUT = 0.05;
const percent = ({ good, of }: Share): string => `${((100 * good) / Math.max(of, 1)).toFixed(3)} %`;
const number = (value: number): string => value.toLocaleString('en-US');
const some = <T>(items: readonly T[], format: (item: T) => string): string[] => items.slice(0, 15).map(format);

export function formatReport(options: Options, verdict: Verdict, exits: readonly (number | null)[]): Report {
  const rows = rowsOf(verdict, exits);
  const isGood = rows.every(([, , isRight]) => isRight !== false);
  const table = ['| | |', '|---|---|', ...rows.map(([what, figure]) => `| ${what} | ${figure} |`)].join('\n');
  const command = `npm run chaos -- --minutes ${options.minutes} --rate ${options.rate} --seed ${options.seed}`;
  const date = new Date().toISOString().slice(0, 10);
  const machine = `${os.availableParallelism()} cores of ${os.cpus()[0]?.model.trim() ?? 'an unknown processor'}, Node ${process.versions.node}`;
  return {
    isGood,
    page: `\`${command}\`, ${date}, ${machine}, load average ${loadOf(verdict.samples)} (processes that want a core, those of the run among them).\n\n${table}`,
    text: [
      ...rows.map(([what, figure, isRight]) => `${isRight === false ? 'NOT GOOD ' : ''}${what}: ${figure}`),
      ...some(verdict.failures, (each) => `failed ${JSON.stringify(each)}`),
      ...some(verdict.unexplained, (each) => `lost ${JSON.stringify(each)}`),
      ...some(verdict.quiet, (each) => `quiet ${JSON.stringify(each)}`),
      ...some(verdict.wrong, (each) => `wrong charge ${JSON.stringify(each)}`),
      ...some(verdict.done.failed, (each) => `command failed ${each}`),
      ...some(verdict.errors, (each) => `error ${each}`),
    ].join('\n'),
  };
}

type Row = readonly [what: string, figure: string, isRight?: boolean];

function rowsOf(verdict: Verdict, exits: readonly (number | null)[]): readonly Row[] {
  const { withRetries, withoutRetries, ms, firstTokenMs, overClocks, done, left, samples, whileCut } = verdict;
  const share = withRetries.good / Math.max(withRetries.of, 1);
  const [memory, files] = [growth(samples, 'bytes'), growth(samples, 'files')];
  return [
    [
      'calls; HTTP requests; attempts at vendors',
      [verdict.calls, verdict.requests, verdict.attempts].map(number).join('; '),
    ],
    [
      'done to the gateways',
      `${verdict.reloaded} reloads of workers and gateways (${done.reloads} files), ${done.spoiled} bad files, ${done.kills.length} workers killed (${verdict.replaced} replaced), ${done.clocks} clocks set wrong`,
      done.failed.length === 0,
    ],
    [
      'calls that had a live target all the time: come to their end, by the first request',
      `${percent(withoutRetries)} of ${number(withoutRetries.of)}`,
    ],
    ['… with the two retries of an SDK', `${percent(withRetries)} of ${number(withRetries.of)}`, share >= GOAL],
    ['those that did not', causesOf(verdict.failures)],
    ['without a live target all the time', number(verdict.noLiveTarget)],
    [
      'streams that their vendor broke off after the first words, not counted above: reported as an error; ended silently',
      `${number(verdict.broken)}; ${verdict.quiet.length}`,
      verdict.quiet.length === 0,
    ],
    [
      'streams from ten seconds after a vendor began to cut all of its streams: cut by it, of all',
      `${number(whileCut.of - whileCut.good)} of ${number(whileCut.of)}`,
      whileCut.of - whileCut.good <= MOST_CUT * whileCut.of,
    ],
    [
      'connections lost with a killed worker; otherwise',
      `${verdict.lost - verdict.unexplained.length}; ${verdict.unexplained.length}`,
      verdict.unexplained.length === 0,
    ],
    [
      'a response took, in ms: median; p99; p99.9; longest',
      [ms.p50, ms.p99, ms.p999, ms.longest].map(number).join('; '),
    ],
    [
      'the first token of a stream took, in ms: median; p99',
      [firstTokenMs.p50, firstTokenMs.p99].map(number).join('; '),
    ],
    [
      'the p99 of a response next to the time limits of attempts at vendors that hung, as a share of one clock (whole 5 s, streams 3 s)',
      `${Math.round(100 * overClocks)} %`,
      overClocks <= 1,
    ],
    [
      'charges; wrong; the books balance',
      `${number(verdict.charges)}; ${verdict.wrong.length}; ${verdict.isBalanced ? 'yes' : 'no'}`,
      verdict.wrong.length === 0 && verdict.isBalanced,
    ],
    [
      'left at the end: nano-dollars held; connections to vendors; from clients',
      `${left.held}; ${left.toVendors}; ${left.fromClients}`,
      left.held + left.toVendors + left.fromClients === 0,
    ],
    [
      'memory of a gateway with its workers, in MB: after a fifth of the time; at its end',
      memory.map((bytes) => Math.round(bytes / 1e6)).join('; '),
    ],
    ['open files: after a fifth of the time; at its end; when all was quiet', files.join('; ')],
    ['exit codes', exits.join('; '), exits.every((code) => code === 0)],
  ];
}

function loadOf(samples: readonly Sample[]): string {
  return (samples.reduce((sum, { load }) => sum + load, 0) / Math.max(samples.length, 1)).toFixed(1);
}

/** Causes of failed calls, with their numbers. */
function causesOf(failures: readonly Tried[]): string {
  const counts = new Map<string, number>();
  for (const { came, hadContent, status, words } of failures) {
    const [, code] = /"(?:code|type)":"((?!server_error|error")[a-z_]+)"/.exec(words) ?? [];
    const lost = hadContent ? 'cut with a killed worker after the first words' : 'refused or cut by a killed worker';
    const cause = came === 'lost' ? lost : came === 'error' ? `${status ?? ''} ${code ?? ''}`.trim() : came;
    counts.set(cause, (counts.get(cause) ?? 0) + 1);
  }
  return [...counts].map(([cause, count]) => `${count} ${cause}`).join('; ') || 'none';
}

/** Median of a fifth of the samples early in a run, median of the last fifth, and the last sample. */
function growth(samples: readonly Sample[], what: 'bytes' | 'files'): readonly number[] {
  const values = samples.flatMap(({ nodes }) => [nodes.reduce((sum, node) => sum + node[what], 0) / nodes.length]);
  const fifth = Math.max(1, Math.floor(values.length / 5));
  const during = values.slice(0, -1);
  return [
    median(during.slice(fifth, 2 * fifth)),
    median(during.slice(-fifth)),
    ...(what === 'files' ? values.slice(-1) : []),
  ];
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

const PAGE = new URL('../../docs/reliability.md', import.meta.url);
const START = '<!-- chaos: written by npm run chaos -- --write -->';
const END = '<!-- end of chaos -->';

/** Replaces the figures on the page. */
export function writePage(figures: string): void {
  const page = readFileSync(PAGE, 'utf8');
  const [before = '', rest = ''] = page.split(START);
  const [, after = ''] = rest.split(END);
  writeFileSync(PAGE, `${before}${START}\n\n${figures}\n\n${END}${after}`);
}
