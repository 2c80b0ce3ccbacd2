import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, it } from 'node:test';
import plugin from '../src/index.ts';
import { openGateway, type TestGateway } from './gateway.ts';
import { vendor } from './vendor.ts';

let open: TestGateway;

before(async () => {
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  const { port } = vendor.address() as AddressInfo;
  const tts = { 'my-plugin': { apiKey: 'any', baseUrl: `http://127.0.0.1:${port}` } };
  open = await openGateway({ providers: { echo: {} }, tts }, [plugin]);
});
after(async () => {
  await open.gateway.close();
  vendor.close();
});

for (const stream of [false, true])
  it(`speaks ${stream ? 'as a stream' : 'as a whole'}`, async () => {
    const response = await open.post('/my-plugin/tts', { text: 'Hello', stream });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'audio/wav');
    assert.ok((await response.arrayBuffer()).byteLength > 40_000);
  });
