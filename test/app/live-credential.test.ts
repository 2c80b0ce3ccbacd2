import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { completion } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

/**
 * Provider that counts its credentials: `sync`, by a promise, or `broken` (none can be created). A 403 renews the
 * credential once.
 */
const plugin = `
export default {
  name: 'signer', kind: 'provider', apiVersion: 1,
  configSchema: { type: 'object', properties: { baseUrl: { type: 'string', format: 'url' }, mode: { type: 'string' } } },
  setup(api, { baseUrl, mode }) {
    let made = 0, again = true;
    const sign = ({ method, url, body }) => ({ 'x-signed': [++made, method, url, JSON.parse(body).model].join(' ') });
    api.provider({
      specVersion: 1, vendor: 'signer', baseUrl, anyModel: true,
      credential: {
        header: 'x-signed', value: undefined, required: false,
        headers: (request) => mode === 'broken' ? Promise.reject(new Error('no key could be made'))
          : mode === 'sync' ? sign(request) : Promise.resolve().then(() => sign(request)),
        refused: (status) => status === 403 && again && !(again = false),
      },
      chat: {
        request: (input, call) => ({ path: '/chat', body: { model: call.model } }),
        response: (body) => body,
        stream: () => { throw new Error('not here'); },
      },
      error: (status) => ({ class: 'authentication', message: 'refused with ' + status }),
    });
  },
};`;

describe('a credential that signs each request', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  const start = async (mode: string): Promise<void> => {
    vendor = await startScriptedUpstream(respondWith(200, completion()));
    gateway = await startGateway(
      { providers: { signer: { plugin: './signer.mjs', baseUrl: `${vendor.url}/v1`, mode } } },
      { files: { 'signer.mjs': plugin } },
    );
  };
  const chat = () =>
    gateway.post('/v1/chat/completions', { model: 'signer/m', messages: [{ role: 'user', content: 'hi' }] });
  const signed = () => vendor.requests.map(({ headers }) => headers['x-signed']);

  afterEach(async () => {
    await gateway.stop();
    await vendor.close();
  });

  for (const mode of ['sync', 'promised'])
    it(`E68: sees the request in its final form (${mode})`, async () => {
      await start(mode);
      expect([(await chat()).status, (await chat()).status]).to.deep.equal([200, 200]);
      expect(signed()).to.deep.equal([`1 POST ${vendor.url}/v1/chat m`, `2 POST ${vendor.url}/v1/chat m`]);
    });

  it('E68: is renewed once after a refusal, if it declares that this helps', async () => {
    await start('sync');
    vendor.script(respondWith(403, {}), respondWith(200, completion()), respondWith(403, {}));
    expect((await chat()).status).to.equal(200);
    expect(signed().map((text) => text?.[0])).to.deep.equal(['1', '2']);
    expect((await chat()).status).to.be.within(500, 599);
    expect(vendor.requests).to.have.length(3);
  });

  it('E68: fails before any request if it cannot be created', async () => {
    await start('broken');
    expect((await chat()).status).to.be.within(500, 599);
    expect(vendor.connections.total).to.equal(0);
    expect(gateway.logText()).to.include('no key could be made');
  });
});
