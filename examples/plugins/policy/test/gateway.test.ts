import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import plugin from '../src/index.ts';
import { openGateway, type TestGateway } from './gateway.ts';

let open: TestGateway;

before(async () => {
  open = await openGateway({ providers: { echo: {} }, policies: { 'my-plugin': { calls: 2 } } }, [plugin]);
});
after(() => open.gateway.close());

it('lets so many calls pass, and refuses the next', async () => {
  const call = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hello' }] };
  assert.equal((await open.post('/v1/chat/completions', call)).headers.get('x-my-plugin-left'), '1');
  assert.equal((await open.post('/v1/chat/completions', { ...call, stream: true })).status, 200);
  const refused = await open.post('/v1/chat/completions', call);
  assert.equal(refused.status, 429);
  assert.match(await refused.text(), /2 calls were made/);
});
