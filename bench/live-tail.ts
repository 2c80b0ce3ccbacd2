/**
 * Measures the cost of one live list of calls (`GET /api/core/admin/calls?follow=true`, as opened by the console): CPU
 * of the gateway's main thread per call, alternately with and without a reader. The gateway is a separate process on
 * sqlite, and calls arrive at a fixed rate.
 *
 *     node --import tsx/esm bench/live-tail.ts [--rate 200 --seconds 10 --rounds 5]
 */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { parseArgs } from 'node:util';
import { installGateway, workedMs } from '../test/support/gateways/gateway-process.ts';
import { median } from './numbers.ts';

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '5' },
  },
});
const RATE = Number(values.rate);
const CALLS = RATE * Number(values.seconds);
const BODY = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hello there' }] });

const installation = await installGateway({ store: 'sqlite:./data', providers: { echo: {} } });
try {
  const { api_key: admin } = await installation.command('keys', 'create', '--user', 'root', '--admin');
  const { url, pid } = await installation.start();

  async function call(): Promise<void> {
    const headers = { authorization: `Bearer ${installation.key}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: BODY });
    if (response.status !== 200) throw new Error(`a call was ${response.status}: ${await response.text()}`);
    await response.arrayBuffer();
  }

  /** CPU of the gateway per call, in microseconds. */
  async function measure(): Promise<number> {
    const before = workedMs(pid);
    const startedMs = performance.now();
    const calls: Promise<void>[] = [];
    for (let made = 0; made < CALLS; made += 1) {
      const earlyMs = (made / RATE) * 1000 - (performance.now() - startedMs);
      if (earlyMs > 1) await new Promise((resolve) => setTimeout(resolve, earlyMs));
      calls.push(call());
    }
    await Promise.all(calls);
    return ((workedMs(pid) - before) * 1000) / CALLS;
  }

  async function follow(): Promise<{ readonly received: () => number; end(): void }> {
    const request = get(`${url}/api/core/admin/calls?follow=true`, { headers: { authorization: `Bearer ${admin}` } });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    let received = 0;
    response.setEncoding('utf8').on('data', (text: string) => {
      received += text.split('event: call').length - 1;
    });
    return { received: () => received, end: () => request.destroy() };
  }

  for (let at = 0; at < 2; at += 1) await measure();
  const without: number[] = [];
  const parallel: number[] = [];
  let received = 0;
  for (let round = 0; round < Number(values.rounds); round += 1) {
    without.push(await measure());
    const reader = await follow();
    parallel.push(await measure());
    received += reader.received();
    reader.end();
  }
  const more = parallel.map((each, at) => each - (without[at] ?? 0));
  const share = (median(more) * RATE) / 10_000;
  process.stdout.write(
    `| ${RATE} calls a second | without: ${median(without).toFixed(0)} µs a call | with a reader: ${median(parallel).toFixed(0)} µs | more: ${median(more).toFixed(0)} µs (${more.map((each) => each.toFixed(0)).join(', ')}), ${share.toFixed(1)} % of a core | ${received} of ${CALLS * Number(values.rounds)} calls reported |\n`,
  );
} finally {
  await installation.remove();
}
process.exit(0);
