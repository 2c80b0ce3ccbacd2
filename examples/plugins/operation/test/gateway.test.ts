import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import counter from '../src/counter.ts';
import plugin from '../src/index.ts';
import { openGateway, type TestGateway } from './gateway.ts';

let open: TestGateway;

before(async () => {
  open = await openGateway({}, [plugin, counter]);
});
after(() => open.gateway.close());

it('responds with the cost, and rejects an invalid request', async () => {
  const response = await open.post('/v1/my-plugin', { model: 'counter/words', text: 'How many words?' });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('x-tollgate-cost-usd'), '0.000015');
  assert.deepEqual(await response.json(), { words: 3 });
  assert.equal((await open.post('/v1/my-plugin', { model: 'counter/words' })).status, 400);
});
