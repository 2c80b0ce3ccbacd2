import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import plugin from '../src/index.ts';
import { openGateway, type TestGateway } from './gateway.ts';

let open: TestGateway;

before(async () => {
  open = await openGateway({ providers: { echo: {} }, agents: { team: { model: 'echo/echo' } } }, [plugin]);
});
after(() => open.gateway.close());

it('works for the team', async () => {
  const response = await open.post('/api/core/agent', { message: 'How long is this text?' });
  assert.equal(response.status, 200, await response.clone().text());
});
