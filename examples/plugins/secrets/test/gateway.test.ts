import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, it } from 'node:test';
import plugin from '../src/index.ts';
import { openGateway, type TestGateway } from './gateway.ts';
import { SECRETS, safe, TOKEN } from './safe.ts';

let open: TestGateway;
let sent: string | undefined;
/** A vendor that notes the key of a call. */
const vendor = createServer((request, response) => {
  request.resume();
  sent = request.headers.authorization;
  const message = { role: 'assistant', content: 'Hello' };
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
    }),
  );
});

before(async () => {
  for (const server of [safe, vendor]) await once(server.listen(0, '127.0.0.1'), 'listening');
  const [url, baseUrl] = [safe, vendor].map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const acme = { plugin: 'openai-compatible', baseUrl: `${baseUrl}/v1`, apiKey: `\${my-plugin:openai}`, models: ['m'] };
  open = await openGateway({ secrets: { 'my-plugin': { url, token: TOKEN } }, providers: { acme } }, [plugin]);
});
after(async () => {
  await open.gateway.close();
  safe.close();
  vendor.close();
});

it('gives a provider its key', async () => {
  const call = { model: 'acme/m', messages: [{ role: 'user', content: 'Hello' }] };
  assert.equal((await open.post('/v1/chat/completions', call)).status, 200);
  assert.equal(sent, `Bearer ${SECRETS.get('openai')}`);
});
