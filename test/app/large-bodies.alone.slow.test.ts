import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect } from 'chai';
import {
  type GatewayProcess,
  type Installation,
  installGateway,
  workedMs,
} from '../support/gateways/gateway-process.ts';
import type { BodyShape } from './large-bodies.ts';

const MB = 1_000_000;
const SENDER = path.resolve(import.meta.dirname, './send-bodies.ts');

interface Attack {
  readonly heapMb: number;
  readonly count: number;
  readonly bytes: number;
  readonly shape: BodyShape;
  readonly framing?: 'chunks';
}

const ATTACKS: readonly Attack[] = [
  { heapMb: 512, count: 6, bytes: 19 * MB, shape: 'objects' },
  { heapMb: 512, count: 6, bytes: 19 * MB, shape: 'objects', framing: 'chunks' },
  { heapMb: 256, count: 60, bytes: 10 * MB, shape: 'objects' },
  { heapMb: 256, count: 60, bytes: 10 * MB, shape: 'text' },
  { heapMb: 256, count: 60, bytes: 10 * MB, shape: 'wide text', framing: 'chunks' },
  { heapMb: 256, count: 20, bytes: 10 * MB, shape: 'escapes' },
  { heapMb: 256, count: 60, bytes: 1 * MB, shape: 'most objects' },
  { heapMb: 256, count: 60, bytes: 1 * MB, shape: 'numbers' },
  { heapMb: 256, count: 20, bytes: 2 * MB, shape: 'fields' },
];

describe('many concurrent large bodies', function () {
  this.timeout(900_000);
  let installation: Installation;
  before(async () => {
    installation = await installGateway({ store: 'sqlite:./data', providers: { echo: {} } });
  });
  after(() => installation.remove());

  for (const { heapMb, count, bytes, shape, framing = 'length' } of ATTACKS)
    it(`leave a gateway of ${heapMb} MB running, also for others: ${count} × ${bytes / MB} MB of ${shape}, by ${framing}`, async () => {
      const gateway = await installation.start({ NODE_OPTIONS: `--max-old-space-size=${heapMb}` });
      let isOver = false;
      const slowest = watchHealth(gateway, () => isOver);
      const calls = callMeanwhile(gateway, installation.key, () => isOver);
      const url = `${gateway.url}/v1/chat/completions`;
      const statuses = await sendBodies([url, installation.key, shape, String(bytes), String(count), framing]);
      isOver = true;
      expect(await slowest, 'milliseconds that the gateway worked before it answered /livez').to.be.lessThan(1000);
      expect(await calls, 'statuses of small calls').to.deep.equal([200]);
      expect(Object.keys(statuses), JSON.stringify(statuses)).to.satisfy((each: string[]) =>
        each.every((status) => ['200', '413', '429', '503'].includes(status)),
      );
      await gateway.stop();
    });
});

/** Runs the sender in its own process: a busy one could not measure the gateway's latency. */
async function sendBodies(words: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx/esm'), SENDER, ...words]);
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    out += String(chunk);
  });
  await once(child, 'close');
  return JSON.parse(out) as Readonly<Record<string, number>>;
}

/**
 * Maximum processor time of the gateway during a `/livez` request, in milliseconds. Other load on the machine does not
 * count.
 */
async function watchHealth({ url, pid }: GatewayProcess, isOver: () => boolean): Promise<number> {
  let slowest = 0;
  while (!isOver()) {
    const began = workedMs(pid);
    const response = await fetch(`${url}/livez`);
    await response.text();
    expect(response.status).to.equal(200);
    slowest = Math.max(slowest, workedMs(pid) - began);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return slowest;
}

/** Statuses of small calls in the meantime. */
async function callMeanwhile({ url }: GatewayProcess, key: string, isOver: () => boolean): Promise<readonly number[]> {
  const statuses = new Set<number>();
  while (!isOver()) {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hi' }] }),
    });
    await response.text();
    statuses.add(response.status);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return [...statuses];
}
