import { expect } from 'chai';
import { type Installation, installGateway } from '../../support/gateways/gateway-process.ts';
import { completion, openAiVendor } from '../../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../../support/vendors/scripted-upstream.ts';
import { eventually } from '../../support/wait.ts';
import { type ScriptedManager, startScriptedManager } from './scripted-manager.ts';

describe('a secret that ends', function () {
  this.timeout(120_000);
  for (const workers of [1, 2])
    it(`is read again before its expiry, and a gateway of ${workers} processes uses the new one; an unavailable one stays`, async () => {
      let manager: ScriptedManager | undefined;
      let vendor: ScriptedUpstream | undefined;
      let installed: Installation | undefined;
      try {
        manager = await startScriptedManager();
        vendor = await startScriptedUpstream(respondWith(200, completion('hi')));
        let reads = 0;
        let status = 200;
        manager.responses['GET /v1/openai/creds/gate'] = () => [
          status,
          { lease_id: `openai/creds/gate/${reads}`, lease_duration: 2, data: { key: `sk-number-${++reads}` } },
        ];
        installed = await installGateway({
          server: { port: 0, workers, drainTimeout: '1s' },
          store: 'sqlite:./data',
          secrets: { vault: { address: manager.url, token: 't-1' } },
          providers: { main: { ...openAiVendor(vendor), apiKey: `$\{vault:openai/creds/gate#key}` } },
        });
        const gateway = await installed.start();
        const call = async (): Promise<string> => {
          const response = await fetch(`${gateway.url}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${installed?.key}`, 'content-type': 'application/json' },
            body: JSON.stringify({ model: 'main/m', messages: [{ role: 'user', content: 'Hi' }] }),
          });
          expect(response.status).to.equal(200);
          return String(vendor?.requests.at(-1)?.headers['authorization']);
        };
        const first = await call();
        expect(first).to.match(/^Bearer sk-number-\d+$/);
        await eventually(async () => expect(await call()).not.to.equal(first));
        status = 503;
        const kept = await call();
        const requestCount = manager.requests.length;
        await eventually(async () => expect(manager?.requests.length).to.be.above(requestCount));
        expect(await call()).to.match(/^Bearer sk-number-\d+$/);
        expect(kept).to.match(/^Bearer sk-number-\d+$/);
      } finally {
        await installed?.remove();
        await vendor?.close();
        await manager?.close();
      }
    });
});
