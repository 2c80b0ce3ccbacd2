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
  const options = { apiKey: 'any', baseUrl: `http://127.0.0.1:${port}/v1` };
  open = await openGateway({ providers: { 'my-plugin': options } }, [plugin]);
});
after(async () => {
  await open.gateway.close();
  vendor.close();
});

for (const stream of [false, true])
  it(`answers a chat ${stream ? 'as a stream' : 'as a whole'}`, async () => {
    const messages = [{ role: 'user', content: 'Hello' }];
    const response = await open.post('/v1/chat/completions', { model: 'my-plugin/my-plugin-1', messages, stream });
    assert.equal(response.status, 200);
    assert.match(await response.text(), /"content":"Hello"/);
  });
