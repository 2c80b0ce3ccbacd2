import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import plugin from '../src/index.ts';
import { openGateway, type TestGateway } from './gateway.ts';

let open: TestGateway;

before(async () => {
  open = await openGateway({ providers: { echo: {} } }, [plugin]);
});
after(() => open.gateway.close());

for (const stream of [false, true])
  it(`answers in its format ${stream ? 'as a stream' : 'as a whole'}`, async () => {
    const response = await open.post('/my-plugin', { model: 'echo/echo', say: 'Good morning', stream });
    assert.equal(response.status, 200);
    assert.match(await response.text(), /"text":"[^"]*morning/);
  });

it('says an error in its format', async () => {
  const response = await open.post('/my-plugin', { model: 'missing/knows', say: 'Hello' });
  assert.equal(response.status, 404);
  assert.ok('error' in ((await response.json()) as object));
});
