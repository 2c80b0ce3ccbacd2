/**
 * Process that sends one body many times concurrently and prints the number of responses by status: `{ "200": 2, "503":
 * 58 }`.
 */
import http from 'node:http';
import { type BodyShape, chatBody } from './large-bodies.ts';

const [url = '', key = '', shape = '', bytes = '', count = '', framing = 'length'] = process.argv.slice(2);
const body = chatBody(shape as BodyShape, Number(bytes));

function send(): Promise<string> {
  return new Promise((resolve) => {
    const request = http.request(url, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(framing === 'length' && { 'content-length': body.length }),
      },
    });
    request.on('error', (error) => resolve(error.message));
    request.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(String(response.statusCode)));
      response.on('error', (error) => resolve(error.message));
    });
    request.end(body);
  });
}

const tally: Record<string, number> = {};
for (const result of await Promise.all(Array.from({ length: Number(count) }, send)))
  tally[result] = (tally[result] ?? 0) + 1;
process.stdout.write(JSON.stringify(tally));
