/** Small pieces of a request, alone and warm: `node bench/dist/bench/pieces.js`. Microseconds, the best of five rounds. */
import Router from '@koa/router';
import { createExactTextReader } from '../core/calls/exact-text.ts';
import { parseBaseUrl } from '../core/upstream/address.ts';
import { createEventReader } from '../core/upstream/event-reader.ts';
import { parseKey } from '../plugins/auth/api-key/format.ts';
import { decodeStream } from '../plugins/providers/openai-compatible/stream.ts';
import { chatRequest, WIRES } from './wires.ts';

const ROUNDS = 5;
const TIMES = 20_000;

function time(name: string, piece: () => unknown): void {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const began = performance.now();
    for (let at = 0; at < TIMES; at += 1) piece();
    return ((performance.now() - began) * 1000) / TIMES;
  });
  console.log(`| ${name} | ${Math.min(...rounds).toFixed(2)} |`);
}

console.log('| piece | µs |\n| --- | --- |');

const router = new Router();
const CHAT = '/api/core/:provider/chat/completions';
for (const path of [...Array.from({ length: 300 }, (_, at) => `/plugin${at}/:id/things`), CHAT])
  router.register(path, ['post'], () => {});
const PATH = '/api/core/openai/chat/completions';
time('route of 301, @koa/router', () => router.match(PATH, 'POST'));

time('base URL parsed', () => parseBaseUrl('https://api.example.com/v1'));

const key = `tg_${'a'.repeat(12)}_${'b'.repeat(49)}`;
time('shape of a key, with its checksum', () => parseKey(key));

const body = chatRequest(2048, 'm', false);
time('JSON of 2 KB parsed', () => JSON.parse(body));

const call = { model: 'm', stream: true, created: 1, id: 'call_1' };
const event = Buffer.from(WIRES.openai.chunk(123_456_789_012n));
const readText = createExactTextReader({ id: 'chatcmpl-bench', created: 1_790_000_000, model: 'm' });
if (!readText(event)) throw new Error('the event of the bench is not exact text');
time('event of a stream, matched and passed', () => readText(event));
const reader = createEventReader();
const decoder = decodeStream(call, { baseUrl: '' });
for (const opening of reader.push(Buffer.from(WIRES.openai.open))) decoder.push(opening);
time('event of a stream, parsed and written', () => {
  for (const each of reader.push(event)) for (const chunk of decoder.push(each)) JSON.stringify(chunk);
});

time('setTimeout and clear', () => clearTimeout(setTimeout(() => {}, 30_000)));
