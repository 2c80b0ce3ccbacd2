import { expect } from 'chai';
import { startGateway } from '../support/gateways/gateway.ts';

/** Speech vendor without a network: returns silence in PCM. */
const BEEP = `
export default {
  name: 'beep', kind: 'tts', apiVersion: 1, configSchema: { type: 'object', properties: {} },
  setup(api) {
    api.offer('speech', {
      specVersion: 1, vendor: 'beep', baseUrl: 'http://beep.invalid', models: [{ id: 'one', kind: 'speech', price: { input: 0, output: 0, characters: 0 } }],
      formats: ['pcm'], defaultVoice: 'b', maxCharacters: 100, speed: { min: 1, max: 1 },
      error: () => ({ class: 'upstream_error', message: 'no' }),
      transport: async () => ({ status: 200, headers: {}, body: (async function* () { yield Buffer.alloc(4800, 7); })() }),
      codec: { request: () => ({ path: '/', body: {} }), decode: () => ({ push: (bytes) => [bytes], end: () => [] }) },
    });
  },
};`;

describe('an alias of a speech model', () => {
  it('is configured like one of a chat model, and is available to a key limited to it', async () => {
    const gateway = await startGateway(
      { tts: { beep: { plugin: './beep.mjs' } }, models: { voice: 'beep/one' } },
      { files: { 'beep.mjs': BEEP } },
    );
    try {
      const { api_key } = await gateway.command<{ api_key: string }>(
        'keys',
        'create',
        '--user',
        'ann',
        '--models',
        'voice',
      );
      const headers = { authorization: `Bearer ${api_key}` };
      const body = { input: 'hello', response_format: 'pcm' };
      const allowed = await gateway.post('/v1/audio/speech', { ...body, model: 'voice' }, headers);
      expect(allowed.status, await allowed.clone().text()).to.equal(200);
      expect((await allowed.arrayBuffer()).byteLength).to.equal(4800);
      const other = await gateway.post('/v1/audio/speech', { ...body, model: 'beep/one' }, headers);
      expect(other.status).to.equal(403);
    } finally {
      await gateway.stop();
    }
  });
});
