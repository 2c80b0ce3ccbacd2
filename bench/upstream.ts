/**
 * What one call to a provider costs the gateway, by client: CPU per request (2 KB each way) and per event of a stream.
 *
 *   npx tsc -p tsconfig.json --noEmit false --rootDir . --outDir dist && node dist/bench/upstream.js [rounds]
 *
 * Compiled, because tsx names every function at run time, which costs as much as some of what is measured here.
 * Every client is a process of its own that does nothing else; they take turns, so that a busy machine is busy for all
 * of them. The figure is `process.cpuUsage()` (user + system) over the number of requests or events, median of rounds.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { median } from './load/numbers.ts';

const REQUESTS = 1500;
const STREAMS = 30;
const EVENTS = 200;
const PARALLEL = 16;
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(1900) }] });
const EVENT = `data: ${JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta: { content: 'word ' } }] })}\n\n`;

/** Sends one request and reads its whole answer; returns how many bytes came. */
type Client = (url: string) => Promise<number>;

const CLIENTS: Readonly<Record<string, () => Promise<Client>>> = {
  async tollgate() {
    const { createUpstream } = await import('../core/upstream/upstream.ts');
    const nothing = () => {};
    const log = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => log };
    const upstream = createUpstream({ log });
    const endpoints = new Map<string, Parameters<typeof upstream.send>[0]>();
    return async (url) => {
      const { origin, pathname } = new URL(url);
      let endpoint = endpoints.get(origin);
      if (!endpoint) {
        endpoint = { baseUrl: origin, error: () => ({ class: 'upstream_error', message: '' }) };
        endpoints.set(origin, endpoint);
      }
      const signal = new AbortController().signal;
      const response = await upstream.send(endpoint, { path: pathname, body: Buffer.from(BODY) }, { signal });
      let size = 0;
      for await (const chunk of response.body) size += chunk.length;
      return size;
    };
  },
  async 'undici dispatch (Pool, no clocks, no bounds)'() {
    const { Pool } = await import('undici');
    let pool: InstanceType<typeof Pool> | undefined;
    return (url) =>
      new Promise((resolve, reject) => {
        const { origin, pathname } = new URL(url);
        pool ??= new Pool(origin, { headersTimeout: 0, bodyTimeout: 0 });
        let size = 0;
        pool.dispatch(
          { path: pathname, method: 'POST', headers: { 'content-type': 'application/json' }, body: BODY },
          {
            onRequestStart() {},
            onResponseStart() {},
            onResponseData(_, chunk) {
              size += chunk.length;
            },
            onResponseEnd: () => resolve(size),
            onResponseError: (_, error) => reject(error),
          },
        );
      });
  },
  async 'undici request (signal, two timeouts)'() {
    const { request } = await import('undici');
    return async (url) => {
      const { body } = await request(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: BODY,
        headersTimeout: 60_000,
        bodyTimeout: 60_000,
        signal: new AbortController().signal,
      });
      let size = 0;
      for await (const chunk of body) size += (chunk as Buffer).length;
      return size;
    };
  },
  async 'got.stream'() {
    const { default: got } = await import('got');
    const agent = { http: new http.Agent({ keepAlive: true }) };
    return async (url) => {
      const options = {
        method: 'POST',
        body: BODY,
        agent,
        retry: { limit: 0 },
        followRedirect: false,
        decompress: false,
      } as const;
      let size = 0;
      for await (const chunk of got.stream(url, options)) size += (chunk as Buffer).length;
      return size;
    };
  },
  async fetch() {
    return async (url) => {
      const headers = { 'content-type': 'application/json' };
      const signal = new AbortController().signal;
      const response = await fetch(url, { method: 'POST', headers, body: BODY, redirect: 'manual', signal });
      let size = 0;
      for await (const chunk of response.body ?? []) size += (chunk as Uint8Array).length;
      return size;
    };
  },
};

async function runVendor(): Promise<void> {
  const server = http.createServer((req, res) => {
    req.resume();
    req.on('end', () => {
      if (req.url !== '/stream') return void res.setHeader('content-type', 'application/json').end(BODY);
      res.setHeader('content-type', 'text/event-stream');
      let left = EVENTS;
      // Each event in a packet of its own, as providers send them.
      const next = () => {
        if (left-- === 0) return void res.end();
        res.write(EVENT, () => setImmediate(next));
      };
      next();
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send?.((server.address() as AddressInfo).port);
}

async function runClient(name: string): Promise<void> {
  const client = await CLIENTS[name]!();
  process.on('message', async ({ url, count }: { url: string; count: number }) => {
    const before = process.cpuUsage();
    let left = count;
    const lane = async () => {
      while (left-- > 0) await client(url);
    };
    await Promise.all(Array.from({ length: PARALLEL }, lane));
    const { user, system } = process.cpuUsage(before);
    process.send?.(user + system);
  });
  process.send?.(0);
}

async function ask(child: ChildProcess, message?: object): Promise<number> {
  if (message) child.send(message);
  const [reply] = (await once(child, 'message')) as [number];
  return reply;
}

async function compare(rounds: number): Promise<void> {
  const self = fileURLToPath(import.meta.url);
  const start = (...args: string[]) => fork(self, args);
  const vendor = start('vendor');
  const port = await ask(vendor);
  const children = new Map<string, ChildProcess>();
  const perRequest: Record<string, number[]> = {};
  const perEvent: Record<string, number[]> = {};
  for (const name of Object.keys(CLIENTS)) {
    const child = start('client', name);
    await ask(child);
    children.set(name, child);
    perRequest[name] = [];
    perEvent[name] = [];
  }
  for (let round = -1; round < rounds; round++) {
    for (const [name, child] of children) {
      const request = (await ask(child, { url: `http://127.0.0.1:${port}/`, count: REQUESTS })) / REQUESTS;
      const event = (await ask(child, { url: `http://127.0.0.1:${port}/stream`, count: STREAMS })) / (STREAMS * EVENTS);
      if (round < 0) continue; // Warming up.
      perRequest[name]!.push(request);
      perEvent[name]!.push(event);
    }
  }
  for (const child of [vendor, ...children.values()]) child.kill();
  console.log('| client | µs CPU / request | µs CPU / event |\n|---|---|---|');
  for (const name of children.keys()) {
    console.log(`| ${name} | ${median(perRequest[name]!).toFixed(0)} | ${median(perEvent[name]!).toFixed(1)} |`);
  }
}

const [role, name] = process.argv.slice(2);
if (role === 'vendor') await runVendor();
else if (role === 'client') await runClient(name!);
else await compare(Number(role ?? 5));
