/**
 * Upstream of the bench: sends whole JSON, or a stream in OpenAI's, Gemini's or Anthropic's format. The model name
 * selects the response: `m-<chunks>-<ms between chunks>`. Every chunk carries its time of writing.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { MESSAGE, RESPONSE, WIRES, type WireName } from './wires.ts';

const MODEL = /m-(\d+)-(\d+)/;

const server = http.createServer((req, res) => {
  let head = '';
  req.on('data', (chunk: Buffer) => {
    if (head.length < 400) head += chunk.toString('latin1', 0, 400);
  });
  req.on('end', () => respond(req, res, head));
});

function respond(req: IncomingMessage, res: ServerResponse, head: string): void {
  const url = req.url ?? '';
  const [, chunks, interval] = MODEL.exec(url) ?? MODEL.exec(head) ?? [];
  if (!chunks || chunks === '0') {
    const body = wireOf(url) === 'anthropic' ? MESSAGE : RESPONSE;
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    res.end(body);
    return;
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.flushHeaders();
  stream(res, wireOf(url), Number(chunks), Number(interval));
}

function wireOf(url: string): WireName {
  if (url.includes('GenerateContent')) return 'gemini';
  return url.includes('/messages') ? 'anthropic' : 'openai';
}

function stream(res: ServerResponse, wire: WireName, count: number, intervalMs: number): void {
  const { open, chunk, close } = WIRES[wire];
  let left = count;
  const next = (): boolean => {
    if (left === count && open) res.write(open);
    left -= 1;
    if (left >= 0) return res.write(chunk(process.hrtime.bigint()));
    res.end(close);
    return false;
  };
  if (intervalMs === 0) {
    // Each event in a separate packet, as fast as the reader accepts them.
    const run = () => {
      if (res.destroyed || left < 0) return;
      if (next()) setImmediate(run);
      else if (left >= 0) res.once('drain', run);
    };
    run();
    return;
  }
  // The first chunk immediately; later ones with an offset, so that concurrent streams do not send in the same instant.
  next();
  setTimeout(() => {
    if (res.destroyed) return;
    const timer = setInterval(() => {
      // Slow readers get no more chunks: an abandoned stream must not affect the others.
      if (!res.writableNeedDrain) next();
    }, intervalMs);
    res.once('close', () => clearInterval(timer));
  }, Math.random() * intervalMs);
}

server.keepAliveTimeout = 600_000;
server.requestTimeout = 0;
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () =>
  process.send?.((server.address() as AddressInfo).port),
);
process.on('disconnect', () => process.exit());
