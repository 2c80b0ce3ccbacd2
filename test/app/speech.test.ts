import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { fixture, hearWav, needProgram } from '../support/speech/sound.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

const mp3 = fixture('hi.mp3');
const MP3 = { 'content-type': 'audio/mpeg' };

interface Books {
  readonly spent: string;
  readonly held: string;
}

describe('speech through the complete gateway', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startScriptedUpstream();
    gateway = await startGateway({
      billing: 'enforce',
      tts: {
        espeak: {},
        openai: {
          apiKey: 'sk-operator-secret',
          baseUrl: upstream.url,
          models: ['tts-1'],
          prices: { 'tts-1': { characters: 1000 } },
        },
        elevenlabs: { prices: { '*': { characters: 1 } } },
      },
    });
    await gateway.command('accounts', 'credit', 'local', '1.00');
  });
  after(async () => {
    await (gateway as TestGateway | undefined)?.stop();
    await upstream.close();
  });

  const books = async () => (await (await gateway.get('/api/core/balance')).json()) as Books;
  const settled = async (spent: string) => {
    let now = await books();
    for (let round = 0; round < 100 && (now.spent !== spent || now.held !== '0.00'); round++) now = await books();
    return now;
  };

  it('returns real speech to OpenAI’s client, free of charge', async function () {
    needProgram(this as never, 'espeak-ng');
    const response = await gateway.openai().audio.speech.create({
      model: 'espeak',
      voice: 'alloy',
      input: 'A private sentence',
      response_format: 'wav',
    });
    expect(hearWav(Buffer.from(await response.arrayBuffer())).loudness).to.be.above(0.02);
    expect(await settled('0.00')).to.include({ spent: '0.00', held: '0.00' });
  });

  it('charges the sent characters once the sound has ended', async () => {
    upstream.script(respondWith(200, mp3, MP3));
    const response = await gateway.post('/openai/tts', { text: 'Hi.' });
    expect(Buffer.from(await response.arrayBuffer()).equals(mp3)).to.equal(true);
    // Three characters at 1,000 dollars per million.
    expect(await settled('0.003')).to.include({ spent: '0.003', held: '0.00' });
    const usage = (await (await gateway.get('/api/core/usage?group_by=model')).json()) as {
      data: { characters: number }[];
    };
    expect(usage.data.some(({ characters }) => characters === 3)).to.equal(true);
  });

  it('charges nothing when the vendor refuses', async () => {
    upstream.script(respondWith(429, { error: { message: 'slow down' } }));
    const before = await books();
    const response = await gateway.post('/v1/audio/speech', { model: 'openai/tts-1', input: 'Hi.' });
    expect(response.status).to.equal(429);
    await response.text();
    expect(await settled(before.spent)).to.include({ spent: before.spent, held: '0.00' });
  });

  it('charges the sent characters when the sound is interrupted, and cuts the connection', async () => {
    upstream.script(async (wire) => {
      await wire.send(head(200, { ...MP3, 'transfer-encoding': 'chunked' }));
      await wire.send(chunk(mp3.subarray(0, 1500)));
      await wire.send(LAST_CHUNK);
    });
    const outcome = await gateway
      .post('/openai/tts', { text: 'Bye' })
      .then((response) => response.arrayBuffer())
      .then(
        () => 'a whole clip',
        () => 'cut',
      );
    expect(outcome).to.equal('cut');
    expect(await settled('0.006')).to.include({ spent: '0.006', held: '0.00' });
  });

  it('refuses a text that costs more than the account has, before any request', async () => {
    const before = upstream.requests.length;
    const response = await gateway.post('/openai/tts', { text: 'a'.repeat(2000) });
    expect(response.status).to.equal(402);
    expect(((await response.json()) as { error: { code: string } }).error.code).to.equal('insufficient_balance');
    expect(upstream.requests.length).to.equal(before);
  });

  it('is limited to the models and providers of the key', async () => {
    const keyFor = async (...words: string[]) =>
      ((await gateway.command('keys', 'create', '--user', 'local', ...words)) as { api_key: string }).api_key;
    const statusOf = async (key: string, path: string) => {
      upstream.script(respondWith(200, mp3, MP3));
      const response = await gateway.post(path, { text: 'Hi' }, { authorization: `Bearer ${key}` });
      await response.arrayBuffer();
      return response.status;
    };
    const byModel = await keyFor('--models', 'openai/tts-1');
    const byProvider = await keyFor('--providers', 'openai');
    const byOther = await keyFor('--models', 'echo/echo');
    expect(await statusOf(byModel, '/openai/tts')).to.equal(200);
    expect(await statusOf(byProvider, '/openai/tts')).to.equal(200);
    expect(await statusOf(byOther, '/openai/tts')).to.equal(403);
    expect(await statusOf(byModel, '/elevenlabs/tts')).to.equal(403);
  });

  it('names the vendor without a key', async () => {
    const response = await gateway.post('/elevenlabs/tts', { text: 'Hi' });
    const { error } = (await response.json()) as { error: { code: string } };
    expect(error.code).to.equal('provider_not_configured');
  });

  it('writes neither texts nor the operator’s key to the log', async () => {
    await until('the access log has the calls', () => gateway.logText().includes('POST /:vendor/tts'));
    expect(gateway.logText()).to.not.include('private sentence');
    expect(gateway.logText()).to.not.include('sk-operator-secret');
  });

  it('replays a sound free of charge, to the same account only, with the cache enabled', async () => {
    const cached = await startGateway({
      speechCache: { maxSize: '10mb' },
      tts: { openai: { apiKey: 'k', baseUrl: upstream.url, models: ['tts-1'], prices: { '*': { characters: 1000 } } } },
    });
    try {
      upstream.script(respondWith(200, mp3, MP3));
      const before = upstream.requests.length;
      const say = async (headers: Record<string, string> = {}) => {
        const response = await cached.post('/openai/tts', { text: 'Again.' }, headers);
        const bytes = Buffer.from(await response.arrayBuffer());
        return [response.headers.get('x-tollgate-cache'), bytes.equals(mp3)];
      };
      expect(await say()).to.deep.equal(['miss', true]);
      expect(await say()).to.deep.equal(['hit', true]);
      const other = (await cached.command('keys', 'create', '--user', 'other')) as { api_key: string };
      expect(await say({ authorization: `Bearer ${other.api_key}` })).to.deep.equal(['miss', true]);
      expect(upstream.requests.length).to.equal(before + 2);
      const { spent } = (await (await cached.get('/api/core/balance')).json()) as Books;
      expect(spent).to.equal('0.006');
    } finally {
      await cached.stop();
    }
  });

  it('describes its routes in the OpenAPI document', async () => {
    const { paths } = (await (await gateway.get('/openapi.json')).json()) as { paths: object };
    expect(paths).to.include.keys(
      '/{vendor}/tts',
      '/{vendor}/tts/voices',
      '/v1/audio/speech',
      '/v1/audio/voices',
      '/v1/audio/models',
    );
  });
});
