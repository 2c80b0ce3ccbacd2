import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import plugin from '../src/index.ts';
import { openGateway, type TestGateway } from './gateway.ts';

const TOKEN = 'my-plugin-0123456789abcdef';
let open: TestGateway;

before(async () => {
  open = await openGateway({ providers: { echo: {} }, auth: { 'my-plugin': { tokens: { ann: TOKEN } } } }, [plugin]);
});
after(() => open.gateway.close());

it('lets the right token pass and no other', async () => {
  const call = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hello' }] };
  assert.equal((await open.post('/v1/chat/completions', call, TOKEN)).status, 200);
  assert.equal((await open.post('/v1/chat/completions', call, `${TOKEN}x`)).status, 401);
});
