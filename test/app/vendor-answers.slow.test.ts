import { expect } from 'chai';
import { type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { completion, openAiVendor } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const BYTES = 31_000_000;
const SHAPES: readonly (readonly [what: string, text: () => string])[] = [
  ['objects', () => `[${'{},'.repeat(BYTES / 3)}{}]`],
  ['text', () => JSON.stringify(completion('x'.repeat(BYTES)))],
  ['wide text', () => JSON.stringify(completion(`€${'x'.repeat(BYTES)}`))],
  ['levels', () => '['.repeat(BYTES)],
];

describe('four concurrent responses of 31 MB', function () {
  this.timeout(900_000);
  let vendor: ScriptedUpstream;
  let installation: Installation;
  before(async () => {
    vendor = await startScriptedUpstream();
    installation = await installGateway({ store: 'sqlite:./data', providers: { one: openAiVendor(vendor), echo: {} } });
  });
  after(async () => {
    await installation?.remove();
    await vendor?.close();
  });

  for (const [what, text] of SHAPES)
    it(`E28: leave a gateway of 256 MB running and responsive, when they are ${what}`, async () => {
      const gateway = await installation.start({ NODE_OPTIONS: '--max-old-space-size=256' });
      vendor.script(respondWith(200, text(), { 'content-type': 'application/json' }));
      const send = async (model: string): Promise<number> => {
        const response = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${installation.key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
        });
        await response.text();
        return response.status;
      };
      let isOver = false;
      const large = Promise.all([1, 2, 3, 4].map(() => send('one/m'))).finally(() => {
        isOver = true;
      });
      let alive = 0;
      while (!isOver) {
        const response = await fetch(`${gateway.url}/livez`);
        await response.text();
        expect(response.status).to.equal(200);
        alive += 1;
      }
      expect((await large).every((status) => status === 200 || status === 503)).to.equal(true);
      expect(alive).to.be.greaterThan(0);
      expect(await send('echo/echo')).to.equal(200);
      await gateway.stop();
    });
});
