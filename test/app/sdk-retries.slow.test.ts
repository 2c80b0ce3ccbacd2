import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import OpenAI from 'openai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { completion } from '../support/vendors/openai-vendor.ts';

const CALLS = 1000;
const AT_ONCE = 100;

/** Kinds of failure; a wait of a few milliseconds keeps the test short. */
const FAILURES = [429, 500, 502, 503, 529, 'reset'] as const;
const WAIT = { 'retry-after-ms': '5', 'content-type': 'application/json' };

/** Pseudo-random number between 0 and 1, constant for the n-th attempt of a call. */
function draw(seed: number): number {
  let x = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
}

interface Vendor {
  readonly url: string;
  /** Starts again with this share of failures. */
  reset(rate: number): void;
  readonly requestCount: number;
  close(): Promise<void>;
}

/**
 * Vendor that fails a share of attempts. The choice does not depend on the client, so that two routes to it can be
 * compared call by call.
 */
async function startShakyVendor(): Promise<Vendor> {
  let rate = 0;
  let requestCount = 0;
  let attempts = new Map<number, number>();
  const server = http.createServer((request, response) => {
    let text = '';
    request.on('data', (bytes) => {
      text += String(bytes);
    });
    request.on('end', () => {
      requestCount += 1;
      const call = Number((JSON.parse(text) as { messages: { content: string }[] }).messages[0]?.content);
      const attempt = attempts.get(call) ?? 0;
      attempts.set(call, attempt + 1);
      const drawn = draw(call * 64 + attempt);
      const failure = FAILURES[Math.floor((drawn / rate) * FAILURES.length)];
      if (drawn >= rate)
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(completion()));
      else if (failure === 'reset') request.socket.destroy();
      else response.writeHead(failure ?? 500, WAIT).end('{"error":{"message":"no","type":"error"}}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reset(next) {
      rate = next;
      requestCount = 0;
      attempts = new Map();
    },
    get requestCount() {
      return requestCount;
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** Number of calls that get a response from an SDK with retries enabled. */
async function countSuccesses(client: OpenAI, model: string): Promise<number> {
  let next = 0;
  let good = 0;
  const work = async (): Promise<void> => {
    for (let call = next++; call < CALLS; call = next++) {
      const body = { model, max_tokens: 10, messages: [{ role: 'user', content: String(call) }] } as const;
      await client.chat.completions.create(body as never).then(
        () => {
          good += 1;
        },
        () => {},
      );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return good;
}

describe('an SDK with its own retries', function () {
  this.timeout(900_000);
  let vendor: Vendor;
  let gateway: TestGateway;
  before(async () => {
    vendor = await startShakyVendor();
    const shaky = { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'sk-test-0123456789', models: ['*'] };
    gateway = await startGateway(
      { providers: { one: shaky, two: shaky }, models: { both: ['one/m', 'two/m'] } },
      { level: 'silent' },
    );
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  for (const percent of [10, 30, 50])
    it(`does no worse through the gateway than directly when ${percent} % of requests fail, over ${CALLS} calls`, async () => {
      vendor.reset(percent / 100);
      const direct = await countSuccesses(new OpenAI({ apiKey: 'k', baseURL: vendor.url }), 'm');
      const figures: Record<string, string> = { directly: `${direct} with ${vendor.requestCount} requests` };
      for (const model of ['one/m', 'both']) {
        vendor.reset(percent / 100);
        const through = await countSuccesses(new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` }), model);
        figures[model] = `${through} with ${vendor.requestCount} requests`;
        expect(through, JSON.stringify(figures)).to.be.at.least(direct);
      }
      if (process.env['FIGURES']) console.log(percent, figures);
    });
});
