import type { Machine } from './machine.ts';
import type { CaseResult, Sample } from './measure.ts';
import { type Spread, spread } from './numbers.ts';

export interface BenchResult {
  readonly createdAt: string;
  readonly command: string;
  readonly machine: Machine;
  readonly seconds: number;
  readonly cases: readonly CaseResult[];
}

type Figure = readonly [field: keyof Sample, label: string];

/** Figures whose ratios to the reference are reported, the main one first. */
const RATIOS: Readonly<Record<CaseResult['measures'], readonly [Figure, ...Figure[]]>> = {
  requests: [
    ['cpuUs', 'CPU'],
    ['perSecond', 'requests / s'],
    ['p99', 'p99'],
  ],
  latency: [
    ['p50', 'p50'],
    ['p99', 'p99'],
    ['cpuUs', 'CPU'],
  ],
  chunks: [
    ['cpuUs', 'CPU'],
    ['p99', 'p99'],
  ],
  memory: [['kbEach', 'KB']],
  boot: [['bootMs', 'ms']],
};

const COLUMNS: Readonly<Record<CaseResult['measures'], readonly (readonly [keyof Sample, string, number])[]>> = {
  requests: [
    ['cpuUs', 'µs CPU / request', 0],
    ['perSecond', 'requests / s', 0],
    ['p50', 'p50 ms', 2],
    ['p99', 'p99 ms', 2],
    ['rssMb', 'RSS MB', 0],
  ],
  latency: [
    ['p50', 'p50 ms', 3],
    ['p99', 'p99 ms', 3],
    ['cpuUs', 'µs CPU / request', 0],
  ],
  chunks: [
    ['cpuUs', 'µs CPU / chunk', 1],
    ['perSecond', 'chunks / s', 0],
    ['p50', 'chunk delay p50 ms', 2],
    ['p99', 'chunk delay p99 ms', 2],
  ],
  memory: [
    ['kbEach', 'KB / stream', 0],
    ['rssMb', 'RSS MB', 0],
    ['p50', 'chunk delay p50 ms', 2],
    ['p99', 'chunk delay p99 ms', 2],
  ],
  boot: [
    ['bootMs', 'ms', 0],
    ['rssMb', 'RSS MB', 0],
  ],
};

/** Ratio of a target's figure (default: the main one) to the reference's in the same round, over all rounds. */
export function ratioOf(
  result: CaseResult,
  name: string,
  field: keyof Sample = RATIOS[result.measures][0][0],
): Spread | undefined {
  const own = result.targets.find((target) => target.name === name)?.samples ?? [];
  const reference = result.targets.find((target) => target.name === result.reference)?.samples ?? [];
  const ratios = own.flatMap((sample, round) => {
    const value = sample[field];
    const by = reference[round]?.[field];
    return value === undefined || by === undefined ? [] : [value / by];
  });
  return ratios.length > 0 ? spread(ratios) : undefined;
}

export function renderReport(result: BenchResult): string {
  const { machine } = result;
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `\`${result.command}\`, ${result.createdAt.slice(0, 16)}Z, ${result.seconds} s`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.kernel}; load before ${machine.loadBefore.toFixed(1)}`,
    versions.join(', '),
    'Medians over interleaved rounds, in brackets the least and the most; a ratio is taken between figures of the same round.',
    ...result.cases.map(renderCase),
    '',
  ].join('\n\n');
}

function renderCase(result: CaseResult): string {
  const columns = COLUMNS[result.measures];
  const reference = result.targets.find(({ name }) => name === result.reference)?.label ?? result.reference;
  const ratios = RATIOS[result.measures];
  const head = ['', ...columns.map(([, label]) => label), ...ratios.map(([, label]) => `× ${label}`)];
  const rows = result.targets.map(({ name, label, samples }) => [
    label,
    ...columns.map(([field, , digits]) => renderSpread(samples, field, digits)),
    ...ratios.map(([field]) => renderRatio(result, name, field)),
  ]);
  const failed = result.targets.flatMap(({ label, error }) => (error ? [`${label} was not measured: ${error}.`] : []));
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return [`### ${result.title}`, `Ratios to: ${reference}.`, lines.join('\n'), ...failed].join('\n\n');
}

function renderSpread(samples: readonly Sample[], field: keyof Sample, digits: number): string {
  const values = samples.flatMap((sample) => sample[field] ?? []).filter((value) => !Number.isNaN(value));
  if (values.length === 0) return '–';
  const { median, min, max } = spread(values);
  const show = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return values.length === 1 ? show(median) : `${show(median)} (${show(min)}–${show(max)})`;
}

function renderRatio(result: CaseResult, name: string, field: keyof Sample): string {
  const ratio = ratioOf(result, name, field);
  if (!ratio) return '–';
  return `**${ratio.median.toFixed(2)}** (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)})`;
}
