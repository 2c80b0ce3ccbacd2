/**
 * Profiles Tollgate under the bench's load: `node bench/dist/bench/profile.js requests|stream|gemini [seconds]`.
 * Prints where the time went, by function and by package; the `.cpuprofile` opens in Chrome's developer tools.
 */
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { benchCases } from './cases.ts';
import { measureCase } from './measure.ts';
import { forkProgram, LOAD_CORES, stopAll } from './programs.ts';
import { startNginxUpstream } from './targets/others.ts';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly children?: readonly number[];
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const [what = 'requests', seconds = '6'] = process.argv.slice(2);
const CASES: Readonly<Record<string, readonly [id: string, target: string]>> = {
  requests: ['requests-2kb', 'tollgate'],
  bones: ['plugins', 'bare-bones'],
  stream: ['stream-paced', 'tollgate-openai'],
  parsed: ['stream-paced', 'tollgate-parsed'],
  gemini: ['stream-paced', 'tollgate-gemini'],
  anthropic: ['stream-paced', 'tollgate-anthropic'],
};

const [id, target] = CASES[what] ?? ['requests-2kb', 'tollgate'];
const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-profile-'));
const chosen = benchCases({ quick: true, stores: {}, nodes: {} }).find((each) => each.id === id);
if (!chosen) throw new Error(`there is no case ${id}`);
const vendor = await forkProgram<number>('./vendor.js', [], { cores: LOAD_CORES });
const nginx = await startNginxUpstream(folder, LOAD_CORES);
const stream = `http://127.0.0.1:${vendor.ready}`;
process.env['BENCH_NODE_ARGUMENTS'] = `--cpu-prof --cpu-prof-dir=${folder} --cpu-prof-interval=250`;
const only = {
  ...chosen,
  targets: chosen.targets.filter(({ name }) => name === target),
  rounds: 1,
  windowMs: Number(seconds) * 1000,
};
await measureCase(only, { folder, stream, json: nginx ? `http://127.0.0.1:${nginx.port}` : stream }, (text) =>
  console.error(text),
);
await stopAll();

const newest = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
const profiles = newest.map((name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as Profile);
const profile = profiles.sort((a, b) => busy(b) - busy(a))[0];
if (profile) print(profile);
console.log(`\n${folder}`);

/** The gateway is the process that did most; the load's is written too. */
function busy({ nodes, samples }: Profile): number {
  const own = new Set(
    nodes.filter(({ callFrame }) => /dist\/(core|bench\/targets)/.test(callFrame.url)).map((node) => node.id),
  );
  return samples.filter((sample) => own.has(sample)).length;
}

function print({ nodes, samples, timeDeltas }: Profile): void {
  const byId = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  /** Where Node's own code was called from. */
  const callerOf = (id: number): string => {
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const frame = byId.get(at);
      if (frame?.url.startsWith('file:')) return `${frame.functionName || '(anonymous)'} ${placeOf(frame.url, '')}`;
    }
    return 'Node itself';
  };
  const callers = new Map<string, number>();
  const functions = new Map<string, number>();
  const places = new Map<string, number>();
  let total = 0;
  // The first half is the start and the compiler's warming up.
  const half = timeDeltas.reduce((sum, delta) => sum + delta, 0) / 2;
  let elapsed = 0;
  for (const [at, sample] of samples.entries()) {
    const frame = byId.get(sample);
    const time = timeDeltas[at] ?? 0;
    elapsed += time;
    if (elapsed < half || !frame || frame.functionName === '(idle)') continue;
    total += time;
    add(callers, callerOf(sample), time);
    const place = placeOf(frame.url, frame.functionName);
    add(functions, `${frame.functionName || '(anonymous)'} ${place}:${frame.lineNumber + 1}`, time);
    add(places, place.replace(/\/[^/]+$/, ''), time);
  }
  const show = (title: string, table: ReadonlyMap<string, number>, count: number): void => {
    console.log(`\n${title}`);
    const rows = [...table].sort(([, a], [, b]) => b - a).slice(0, count);
    for (const [name, time] of rows) console.log(`${((100 * time) / total).toFixed(1).padStart(6)} %  ${name}`);
  };
  show('By folder', places, 25);
  show('By function that called into Node', callers, 60);
  show('By function', functions, 60);
}

function placeOf(url: string, name: string): string {
  if (url === '') return name.startsWith('(') ? name : '(native)';
  const file = url.replace(/^file:\/\//, '').replace(/\?.*/, '');
  return /node_modules\/(.+)$/.exec(file)?.[1] ?? /dist\/(.+)$/.exec(file)?.[1] ?? file;
}

function add(table: Map<string, number>, name: string, time: number): void {
  table.set(name, (table.get(name) ?? 0) + time);
}
process.exit();
