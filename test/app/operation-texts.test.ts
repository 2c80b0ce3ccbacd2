import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const TRANSCRIPT = { text: 'Call orion today', usage: { input_tokens: 10, output_tokens: 4 } };

describe('texts in the responses of operations', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let says: object = {};
  before(async () => {
    vendor = await startScriptedUpstream(({ send }) => send(respondWith(200, says)));
    const provider = { plugin: 'vllm', apiKey: 'k', baseUrl: `${vendor.url}/v1`, models: ['*'] };
    gateway = await startGateway({
      providers: { acme: provider },
      policies: { words: { words: ['orion'], action: 'mask', with: '[name]' } },
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const transcribe = (fields: Readonly<Record<string, string>>) => {
    const form = new FormData();
    for (const [name, value] of Object.entries({ model: 'acme/m', ...fields })) form.append(name, value);
    form.append('file', new Blob([Buffer.alloc(400)], { type: 'audio/wav' }), 'a.wav');
    says = TRANSCRIPT;
    return fetch(`${gateway.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}` },
      body: form,
    });
  };

  it('are checked in a transcription (G62)', async () => {
    expect(await (await transcribe({})).json()).to.include({ text: 'Call [name] today' });
    expect(await (await transcribe({ response_format: 'text' })).text()).to.equal('Call [name] today\n');
  });

  it('are checked in a streamed transcription, whose provider is sent no `stream` (G62)', async () => {
    const events = await (await transcribe({ stream: 'true' })).text();
    expect(events).to.include('"type":"transcript.text.done","text":"Call [name] today"');
    expect(events).not.to.include('orion');
    expect(String(vendor.requests.at(-1)?.body)).not.to.match(/name="stream"\r\n\r\ntrue/);
  });

  it('are not searched in vectors, which have none', async () => {
    const embedding = Buffer.from('orion orion').toString('base64');
    says = { object: 'list', data: [{ index: 0, embedding: `orion${embedding}` }], model: 'm', usage: {} };
    const response = await gateway.post('/v1/embeddings', { model: 'acme/m', input: 'a', encoding_format: 'base64' });
    expect(await response.text()).to.include(`orion${embedding}`);
  });
});
