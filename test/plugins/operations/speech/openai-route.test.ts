import { expect } from 'chai';
import OpenAI from 'openai';
import espeak from '../../../../plugins/tts/espeak/index.ts';
import openai from '../../../../plugins/tts/openai.ts';
import { decode, fixture, needProgram } from '../../../support/speech/sound.ts';
import { KEY, type SpeechGateway, startSpeechGateway } from '../../../support/speech/speech-gateway.ts';
import { loadSpeech, speechVendor } from '../../../support/speech/speech-vendor.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../../support/vendors/scripted-upstream.ts';

const mp3 = fixture('hi.mp3');
const MP3 = { 'content-type': 'audio/mpeg' };
const CHUNKED = head(200, { ...MP3, 'transfer-encoding': 'chunked' });

describe('speech for OpenAI’s clients', () => {
  let upstream: ScriptedUpstream;
  let gateway: SpeechGateway;
  let client: OpenAI;

  before(async () => {
    upstream = await startScriptedUpstream();
    gateway = await startSpeechGateway(
      {
        openai: await loadSpeech(openai, { baseUrl: upstream.url, apiKey: 'sk-operator', models: ['tts-1'] }),
        espeak: await loadSpeech(espeak),
        unkeyed: await loadSpeech(openai),
      },
      { models: { voice: ['openai/tts-1'] } },
    );
    client = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  });
  after(async () => {
    await gateway.close();
    await upstream.close();
  });

  it('returns the sound to the client', async () => {
    upstream.script(respondWith(200, mp3, MP3));
    const before = upstream.requests.length;
    const response = await client.audio.speech.create({
      model: 'openai/tts-1',
      voice: 'alloy',
      input: 'Hi.',
      speed: 1.25,
    });
    expect(Buffer.from(await response.arrayBuffer()).equals(mp3)).to.equal(true);
    expect((await upstream.request(before)).json()).to.deep.equal({
      model: 'tts-1',
      input: 'Hi.',
      voice: 'alloy',
      response_format: 'mp3',
      speed: 1.25,
    });
  });

  it('returns JSON to Mistral’s clients, and accepts their name of the voice', async () => {
    upstream.script(respondWith(200, mp3, MP3));
    const before = upstream.requests.length;
    // Request of @mistralai/mistralai 2.7.0.
    const response = await gateway.post(
      '/v1/audio/speech',
      { model: 'openai/tts-1', voice_id: 'nova', input: 'Hi.', stream: false, response_format: 'mp3' },
      { accept: 'application/json;q=1, text/event-stream;q=0' },
    );
    expect(await response.json()).to.deep.equal({ audio_data: mp3.toString('base64') });
    expect((await upstream.request(before)).json()).to.include({ voice: 'nova' });
  });

  it('passes instructions on, and accepts an alias', async () => {
    upstream.script(respondWith(200, fixture('hi.aac'), { 'content-type': 'audio/aac' }));
    const before = upstream.requests.length;
    const response = await client.audio.speech.create({
      model: 'voice',
      voice: 'alloy',
      input: 'Hi.',
      instructions: 'calm',
      response_format: 'aac',
    });
    expect(response.headers.get('content-type')).to.equal('audio/aac');
    await response.arrayBuffer();
    expect((await upstream.request(before)).json()).to.include({ instructions: 'calm', response_format: 'aac' });
  });

  for (const format of ['wav', 'pcm', 'mp3', 'opus', 'aac', 'flac'] as const) {
    it(`speaks ${format} through espeak with a voice of OpenAI’s`, async function () {
      needProgram(this as never, 'espeak-ng');
      needProgram(this as never, 'ffmpeg');
      const response = await client.audio.speech.create({
        model: 'espeak',
        voice: 'nova',
        input: 'Hello world',
        response_format: format,
      });
      expect(decode(Buffer.from(await response.arrayBuffer()), format).loudness).to.be.above(0.02);
    });
  }

  it('answers mp3 when no format is named', async function () {
    needProgram(this as never, 'espeak-ng');
    needProgram(this as never, 'ffmpeg');
    const response = await client.audio.speech.create({ model: 'espeak/espeak-ng', voice: 'alloy', input: 'Hello' });
    expect(response.headers.get('content-type')).to.equal('audio/mpeg');
    await response.arrayBuffer();
  });

  it('accepts OpenAI’s 4,096 characters, also for a vendor with a lower limit', async () => {
    const text = `${'This is said again. '.repeat(204)}Now the end, 16.`;
    expect(text.length).to.equal(4096);
    const pcm = fixture('hi.pcm');
    for (let piece = 0; piece < 3; piece++) upstream.script(respondWith(200, pcm, { 'content-type': 'audio/pcm' }));
    const before = upstream.requests.length;
    const short = await startSpeechGateway({ short: speechVendor({ baseUrl: upstream.url, maxCharacters: 2000 }) });
    try {
      const response = await short.post('/v1/audio/speech', { model: 'short', input: text, response_format: 'pcm' });
      expect(response.status).to.equal(200);
      expect((await response.arrayBuffer()).byteLength).to.equal(3 * pcm.length);
      expect(upstream.requests.length).to.equal(before + 3);
      const longer = await short.post('/v1/audio/speech', { model: 'short', input: `${text}!` });
      expect(longer.status).to.equal(413);
    } finally {
      await short.close();
    }
  });

  for (const format of ['mp3', 'opus'] as const) {
    it(`accepts 4,096 characters on espeak as ${format}`, async function () {
      needProgram(this as never, 'espeak-ng');
      needProgram(this as never, 'ffmpeg');
      const input = 'a, '.repeat(1365).concat('b');
      expect(input.length).to.equal(4096);
      const response = await gateway.post('/v1/audio/speech', {
        ...{ model: 'espeak', voice: 'fr', input, response_format: format, speed: 2.5 },
      });
      expect(response.status).to.equal(200);
      expect((await response.arrayBuffer()).byteLength).to.be.above(10_000);
    });
  }

  it('streams events with the sound in them, and their end', async () => {
    upstream.script(respondWith(200, mp3, MP3));
    const response = await gateway.post('/v1/audio/speech', {
      model: 'openai/tts-1',
      input: 'Hi.',
      stream_format: 'sse',
    });
    expect(response.headers.get('content-type')).to.equal('text/event-stream; charset=utf-8');
    const events = (await response.text())
      .trim()
      .split('\n\n')
      .map((line) => JSON.parse(line.slice(6)) as { type: string; audio?: string });
    const sound = Buffer.concat(events.map(({ audio }) => Buffer.from(audio ?? '', 'base64')));
    expect(sound.equals(mp3)).to.equal(true);
    expect(events.at(-1)).to.deep.equal({ type: 'speech.audio.done', usage: { characters: 3 } });
  });

  it('sends an error event when the sound is interrupted, and no end', async () => {
    upstream.script(async (wire) => {
      await wire.send(CHUNKED);
      await wire.send(chunk(mp3.subarray(0, 1500)));
      await wire.send(LAST_CHUNK);
    });
    const response = await gateway.post('/v1/audio/speech', {
      model: 'openai/tts-1',
      input: 'Hi.',
      stream_format: 'sse',
    });
    const text = await response.text();
    expect(text).to.include('"code":"provider_unavailable"');
    expect(text).to.not.include('speech.audio.done');
  });

  it('raises the client’s own error classes', async () => {
    const calls = [
      client.audio.speech.create({ model: 'openai/nope', voice: 'alloy', input: 'Hi.' }),
      client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Hi.' }),
      client.audio.speech.create({ model: 'openai/tts-1', voice: 'aloy', input: 'Hi.' }),
    ];
    const errors = await Promise.all(
      calls.map((call) =>
        call.then(
          () => undefined,
          (error: InstanceType<typeof OpenAI.APIError>) => error,
        ),
      ),
    );
    expect(errors.map((error) => [error?.status, error?.code, error?.param])).to.deep.equal([
      [404, 'unsupported_model', 'model'],
      [404, 'unsupported_model', 'model'],
      [400, 'invalid_request', 'voice'],
    ]);
  });

  it('lists voices and models to Open WebUI without a key, without requests to vendors', async function () {
    needProgram(this, 'espeak-ng');
    const before = upstream.requests.length;
    const [voices, models] = await Promise.all(
      ['voices', 'models'].map(async (what) => (await fetch(`${gateway.url}/v1/audio/${what}`)).json()),
    );
    expect((voices as { voices: object[] }).voices).to.deep.include({ id: 'alloy', name: 'Alloy (openai, espeak)' });
    expect((models as { models: object[] }).models).to.deep.equal([{ id: 'openai/tts-1' }, { id: 'espeak/espeak-ng' }]);
    expect(upstream.requests.length).to.equal(before);
  });
});
