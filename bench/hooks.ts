/**
 * Measures the cost of hooks: CPU of a call through the whole gateway, in memory, without policies, with hooks that do
 * nothing. Also measures a stream with ten guardrails.
 *
 *     npm run bench:hooks [-- --quick]
 *
 * Compiled, because tsx names every function at run time. Every round runs each set once, interleaved. A figure is the
 * median of the rounds, and a ratio is that of two medians of the same run.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { definePlugin } from '../contract/plugin.ts';
import { createGateway, type Gateway } from '../core/app.ts';
import { median } from './numbers.ts';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const ROUNDS = values.quick ? 7 : 25;
const CALLS = values.quick ? 40 : 200;
/** Length of the first round, which warms up, in rounds. */
const WARM_UP = 5;
const HOOKS = 10;

/** Policy that inspects each request without changes. */
const watcher = definePlugin({
  name: 'watcher',
  kind: 'policy',
  apiVersion: 1,
  setup(api) {
    api.hook('prepare', () => undefined);
  },
});

const many = (make: (at: number) => object, count = HOOKS): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, make(at)]));
const guardrail = (at: number) => ({
  plugin: 'words',
  action: 'mask',
  words: [`orion${at}`, `project ${at} andromeda`],
});

interface Subject {
  readonly name: string;
  readonly stream: boolean;
  readonly policies: object;
}

const SUBJECTS: readonly Subject[] = [
  { name: 'call', stream: false, policies: {} },
  { name: 'call, ten hooks', stream: false, policies: many(() => ({ plugin: 'watcher' })) },
  { name: 'stream', stream: true, policies: {} },
  { name: 'stream, a guardrail', stream: true, policies: many(guardrail, 1) },
  { name: 'stream, ten guardrails', stream: true, policies: many(guardrail) },
];

const TEXT = 'The quick brown fox jumps over the lazy dog and is gone. '.repeat(20);
const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-hooks-'));

async function call({ inject, announcements }: Gateway, stream: boolean): Promise<void> {
  const body = { model: 'echo/echo', stream, messages: [{ role: 'user', content: TEXT }] };
  const response = await inject('/v1/chat/completions', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${announcements.find(({ use }) => use === 'key')?.value}`,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== 200 || !text.includes('fox')) throw new Error(`the bench got ${response.status}: ${text}`);
}

async function measure(gateway: Gateway, stream: boolean, calls: number): Promise<number> {
  const before = process.cpuUsage();
  for (let left = calls; left > 0; left -= 1) await call(gateway, stream);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

const gateways = await Promise.all(
  SUBJECTS.map(({ policies }) =>
    createGateway({
      ...{ cwd: folder, env: {}, plugins: [watcher] },
      config: {
        providers: { echo: {} },
        auth: { 'api-key': { bootstrap: true } },
        policies: { watcher: false, 'access-log': false, overload: false, ...policies },
      },
      listen: false,
    }),
  ),
);
const samples = SUBJECTS.map((): number[] => []);
for (let round = 0; round <= ROUNDS; round += 1) {
  process.stderr.write(`round ${round} of ${ROUNDS}\n`);
  for (const [at, { stream }] of SUBJECTS.entries()) {
    const cpu = await measure(gateways[at] as Gateway, stream, round === 0 ? CALLS * WARM_UP : CALLS);
    if (round > 0) samples[at]?.push(cpu);
  }
}
const [plain = 0, hooked = 0, streamed = 0, one = 0, guarded = 0] = samples.map((own) => median(own));
process.stdout.write(`| | µs CPU |\n|---|---|\n`);
for (const [at, { name }] of SUBJECTS.entries())
  process.stdout.write(`| ${name} | ${median(samples[at] ?? []).toFixed(1)} |\n`);
process.stdout.write(
  `\nOne hook: ${(((hooked - plain) / HOOKS / plain) * 100).toFixed(2)} % of a call. A guardrail on a stream: ${(one / streamed).toFixed(2)} ×, ten ${(guarded / streamed).toFixed(2)} ×.\n`,
);
for (const gateway of gateways) await gateway.close();
rmSync(folder, { recursive: true, force: true });
