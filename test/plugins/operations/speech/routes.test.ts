import { expect } from 'chai';
import { fixture, hearWav, needProgram } from '../../../support/speech/sound.ts';
import { KEY, readAll, type SpeechGateway, startScriptedSpeech } from '../../../support/speech/speech-gateway.ts';
import { respondWith, type ScriptedUpstream } from '../../../support/vendors/scripted-upstream.ts';

const mp3 = fixture('hi.mp3');
const MP3 = { 'content-type': 'audio/mpeg' };

describe('the routes of speech', () => {
  let upstream: ScriptedUpstream;
  let gateway: SpeechGateway;

  before(async () => {
    ({ upstream, gateway } = await startScriptedSpeech());
  });
  after(async () => {
    await gateway.close();
    await upstream.close();
  });

  it('returns the bytes of the vendor with their type and format', async () => {
    upstream.script(respondWith(200, mp3, MP3));
    const response = await gateway.post('/openai/tts', { text: 'Hi.' });
    expect(response.status).to.equal(200);
    expect(response.headers.get('content-type')).to.equal('audio/mpeg');
    expect(response.headers.get('x-tollgate-provider')).to.equal('openai');
    expect(response.headers.get('x-tollgate-model')).to.equal('tts-1');
    expect(response.headers.get('x-tollgate-voice')).to.equal('alloy');
    expect(response.headers.get('x-tollgate-characters')).to.equal('3');
    expect((await readAll(response)).bytes.equals(mp3)).to.equal(true);
  });

  it('sends the operator’s key to the vendor, and nothing of the caller', async () => {
    upstream.script(respondWith(200, mp3, MP3));
    const before = upstream.requests.length;
    await readAll(await gateway.post('/openai/tts', { text: 'Hi.' }));
    const { headers } = await upstream.request(before);
    expect(headers['authorization']).to.equal('Bearer sk-operator');
    expect(JSON.stringify(headers)).to.not.include(KEY);
  });

  it('answers base64 in JSON to callers that take JSON and no audio', async () => {
    upstream.script(respondWith(200, mp3, MP3));
    const response = await gateway.post('/openai/tts', { text: 'Hi.', voice: 'nova' }, { accept: 'application/json' });
    expect(await response.json()).to.deep.equal({
      audio: mp3.toString('base64'),
      format: 'mp3',
      content_type: 'audio/mpeg',
      characters: 3,
      model: 'tts-1',
      voice: 'nova',
    });
  });

  for (const accept of ['*/*', 'application/json, text/plain, */*', 'audio/mpeg', 'audio/*, application/json;q=0.5']) {
    it(`answers sound to callers that accept ${accept}`, async () => {
      upstream.script(respondWith(200, mp3, MP3));
      const response = await gateway.post('/openai/tts', { text: 'Hi.' }, { accept });
      expect(response.headers.get('content-type')).to.equal('audio/mpeg');
      await readAll(response);
    });
  }

  it('sends the length and the true sizes of a WAV without a stream', async () => {
    upstream.script(respondWith(200, fixture('streamed.wav'), { 'content-type': 'audio/wav' }));
    const response = await gateway.post('/bare/tts', { text: 'Hi.', stream: false });
    expect(response.headers.get('content-length')).to.equal(String(fixture('streamed.wav').length));
    expect(hearWav((await readAll(response)).bytes).seconds).to.be.closeTo(0.1, 0.001);
  });

  const bad: readonly [string, object, string][] = [
    ['no text', {}, 'text'],
    ['a text that is no string', { text: 1 }, 'text'],
    ['a field that does not exist', { text: 'a', voise: 'x' }, 'voise'],
    ['a speed over 4', { text: 'a', speed: 4.1 }, 'speed'],
    ['a speed under 0.25', { text: 'a', speed: 0.2 }, 'speed'],
    ['an unknown format', { text: 'a', format: 'ogg' }, 'format'],
    ['an invalid language', { text: 'a', language: 'de_AT; rm' }, 'language'],
    ['an unknown option', { text: 'a', options: { callback: 'http://evil' } }, 'options.callback'],
  ];
  for (const [title, body, param] of bad) {
    it(`refuses ${title}`, async () => {
      const response = await gateway.post('/openai/tts', body);
      expect(response.status).to.equal(400);
      const { error } = (await response.json()) as { error: { code: string; param: string } };
      expect(error).to.include({ code: 'invalid_request', param });
    });
  }

  it('needs a key, also for the voices', async () => {
    const post = await fetch(`${gateway.url}/espeak/tts`, { method: 'POST', body: '{}' });
    const get = await fetch(`${gateway.url}/espeak/tts/voices`);
    expect([post.status, get.status]).to.deep.equal([401, 401]);
  });

  it('lists the voices of a vendor', async () => {
    const response = await fetch(`${gateway.url}/openai/tts/voices`, { headers: { 'x-api-key': KEY } });
    const { voices } = (await response.json()) as { voices: { id: string }[] };
    expect(voices.map(({ id }) => id)).to.include.members(['alloy', 'nova']);
  });

  it('generates real speech through espeak, with and without a stream', async function () {
    needProgram(this as never, 'espeak-ng');
    const response = await gateway.post('/espeak/tts', { text: 'hello' });
    expect(response.headers.get('content-type')).to.equal('audio/wav');
    const { bytes, whole } = await readAll(response);
    expect(whole).to.equal(true);
    expect(hearWav(bytes).loudness).to.be.above(0.02);
  });
});
