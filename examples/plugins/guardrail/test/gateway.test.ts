import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import plugin from '../src/index.ts';
import { openGateway, type TestGateway } from './gateway.ts';

let open: TestGateway;

before(async () => {
  open = await openGateway({ providers: { echo: {} } }, [plugin]);
});
after(() => open.gateway.close());

const call = (content: string, stream: boolean) => ({
  model: 'echo/echo',
  stream,
  messages: [{ role: 'user', content }],
});

for (const stream of [false, true])
  it(`refuses what it guards and lets all else pass, ${stream ? 'as a stream' : 'as a whole'}`, async () => {
    const refused = await open.post('/v1/chat/completions', call('What of Orion?', stream));
    assert.equal(refused.status, 400);
    assert.doesNotMatch(await refused.text(), /orion/i);
    const response = await open.post('/v1/chat/completions', call('Good morning', stream));
    assert.equal(response.status, 200);
    const said = [...(await response.text()).matchAll(/"content":"([^"]*)"/g)].map(([, part]) => part);
    assert.equal(said.join(''), 'Good morning');
  });
