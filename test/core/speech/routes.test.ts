import net from 'node:net';
import { expect } from 'chai';
import OpenAI from 'openai';
import type { SpeechProvider } from '../../../core/index.ts';
import espeak from '../../../plugins/tts/espeak/index.ts';
import openai from '../../../plugins/tts/openai.ts';
import {
  answer,
  chunk,
  head,
  LAST_CHUNK,
  type Script,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../support/scripted-upstream.ts';
import { decode, fixture, hearWav, needProgram } from '../../support/sound.ts';
import { KEY, type SpeechGateway, startSpeechGateway } from '../../support/speech-gateway.ts';
import { loadSpeech } from '../../support/speech-plugin.ts';
import { speechVendor } from '../../support/speech-vendor.ts';
import { until } from '../../support/until.ts';

const mp3 = fixture('hi.mp3');
const MP3 = { 'content-type': 'audio/mpeg' };
const CHUNKED = head(200, { ...MP3, 'transfer-encoding': 'chunked' });

/** Ends when the body does, however it ends. */
async function read(response: Response): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const bytes of response.body ?? []) pieces.push(bytes as Uint8Array);
    return { bytes: Buffer.concat(pieces), whole: true };
  } catch {
    return { bytes: Buffer.concat(pieces), whole: false };
  }
}

describe('the routes of speech', () => {
  let upstream: ScriptedUpstream;
  let gateway: SpeechGateway;

  before(async () => {
    upstream = await startScriptedUpstream();
    const vendors: Record<string, SpeechProvider> = {
      openai: await loadSpeech(openai, { baseUrl: upstream.url, apiKey: 'sk-operator', models: ['tts-1'] }),
      espeak: await loadSpeech(espeak),
      bare: speechVendor({ baseUrl: upstream.url, formats: ['wav', 'pcm'], maxCharacters: 100 }),
    };
    gateway = await startSpeechGateway(vendors);
  });
  after(async () => {
    await gateway.close();
    await upstream.close();
  });

  it('answers the bytes of the vendor with their type, and says what they are', async () => {
    upstream.script(answer(200, mp3, MP3));
    const response = await gateway.post('/openai/tts', { text: 'Hi.' });
    expect(response.status).to.equal(200);
    expect(response.headers.get('content-type')).to.equal('audio/mpeg');
    expect(response.headers.get('x-tollgate-provider')).to.equal('openai');
    expect(response.headers.get('x-tollgate-model')).to.equal('tts-1');
    expect(response.headers.get('x-tollgate-voice')).to.equal('alloy');
    expect(response.headers.get('x-tollgate-characters')).to.equal('3');
    expect((await read(response)).bytes.equals(mp3)).to.equal(true);
  });

  it('sends the operator’s key to the vendor, and none of the caller’s', async () => {
    upstream.script(answer(200, mp3, MP3));
    const before = upstream.requests.length;
    await read(await gateway.post('/openai/tts', { text: 'Hi.' }));
    const { headers } = await upstream.request(before);
    expect(headers['authorization']).to.equal('Bearer sk-operator');
    expect(JSON.stringify(headers)).to.not.include(KEY);
  });

  it('passes the first bytes on before the vendor has sent the last', async () => {
    let finish = () => {};
    const more = new Promise<void>((resolve) => {
      finish = resolve;
    });
    upstream.script(async (wire) => {
      await wire.send(CHUNKED);
      await wire.send(chunk(mp3.subarray(0, 1500)));
      await more;
      await wire.send(chunk(mp3.subarray(1500)));
      await wire.send(LAST_CHUNK);
    });
    const response = await gateway.post('/openai/tts', { text: 'Hi.' });
    const reader = response.body?.getReader();
    const first = await reader?.read();
    expect(first?.value?.length).to.equal(1500);
    finish();
    const rest = await reader?.read();
    expect(rest?.value?.length).to.equal(mp3.length - 1500);
    expect((await reader?.read())?.done).to.equal(true);
  });

  it('answers base64 in JSON to callers that take JSON and no audio', async () => {
    upstream.script(answer(200, mp3, MP3));
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
      upstream.script(answer(200, mp3, MP3));
      const response = await gateway.post('/openai/tts', { text: 'Hi.' }, { accept });
      expect(response.headers.get('content-type')).to.equal('audio/mpeg');
      await read(response);
    });
  }

  it('tells the length and the true sizes of a WAV that was not streamed', async () => {
    upstream.script(answer(200, fixture('streamed.wav'), { 'content-type': 'audio/wav' }));
    const response = await gateway.post('/bare/tts', { text: 'Hi.', stream: false });
    expect(response.headers.get('content-length')).to.equal(String(fixture('streamed.wav').length));
    expect(hearWav((await read(response)).bytes).seconds).to.be.closeTo(0.1, 0.001);
  });

  const errors: readonly [string, Buffer, number, string][] = [
    ['a bad key of the operator', answer(401, { error: { message: 'no' } }), 503, 'provider_auth_failed'],
    ['a limit of the vendor', answer(429, { error: { message: 'no' } }), 429, 'upstream_rate_limited'],
    ['an overloaded vendor', answer(503, 'busy'), 503, 'provider_unavailable'],
    ['a vendor’s refusal', answer(400, { error: { message: 'bad', param: 'input' } }), 400, 'invalid_request'],
    ['an answer without sound', answer(200, '', MP3), 503, 'provider_unavailable'],
    ['JSON with a good status', answer(200, { oops: true }), 503, 'provider_invalid_response'],
    ['sound of another format', answer(200, fixture('hi.opus'), MP3), 503, 'provider_invalid_response'],
  ];
  for (const [title, bytes, status, code] of errors) {
    it(`makes a JSON error of ${title}`, async () => {
      upstream.script(bytes);
      const response = await gateway.post('/openai/tts', { text: 'Hi.' });
      expect(response.status).to.equal(status);
      expect(response.headers.get('content-type')).to.include('application/json');
      const { error } = (await response.json()) as { error: { code: string } };
      expect(error.code).to.equal(code);
    });
  }

  const cuts: readonly [string, Script][] = [
    [
      'breaks the connection',
      async (wire) => {
        await wire.send(CHUNKED);
        await wire.send(chunk(mp3.subarray(0, 1500)));
        wire.reset();
      },
    ],
    [
      'ends cleanly inside a frame',
      async (wire) => {
        await wire.send(CHUNKED);
        await wire.send(chunk(mp3.subarray(0, 1500)));
        await wire.send(LAST_CHUNK);
      },
    ],
    [
      'sends less than it said',
      async (wire) => {
        await wire.send(head(200, { ...MP3, 'content-length': String(mp3.length) }));
        await wire.send(mp3.subarray(0, 1500));
        wire.end();
      },
    ],
  ];
  for (const [title, script] of cuts) {
    it(`never ends a clip as if it were whole when the vendor ${title}`, async () => {
      upstream.script(script);
      // Cut before the head has left, the caller gets no answer at all; after it, one that breaks off.
      const streamed = await gateway.post('/openai/tts', { text: 'Hi.' }).catch(() => undefined);
      if (streamed?.status === 200) expect((await read(streamed)).whole).to.equal(false);
      else expect(streamed?.status).to.be.oneOf([undefined, 503]);
      upstream.script(script);
      const json = await gateway.post('/openai/tts', { text: 'Hi.', stream: false });
      expect(json.status).to.equal(503);
      await json.text();
    });
  }

  it('tells callers of HTTP/1.0, who could not see a cut, the length', async () => {
    upstream.script(async (wire) => {
      await wire.send(CHUNKED);
      await wire.send(chunk(mp3));
      await wire.send(LAST_CHUNK);
    });
    const body = JSON.stringify({ text: 'Hi.' });
    const { port, hostname } = new URL(gateway.url);
    const socket = net.connect(Number(port), hostname);
    socket.write(
      `POST /openai/tts HTTP/1.0\r\nHost: x\r\nx-api-key: ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    let raw = '';
    for await (const bytes of socket) raw += (bytes as Buffer).toString('latin1');
    expect(raw.toLowerCase()).to.include(`content-length: ${mp3.length}`);
  });

  it('hangs up on the vendor when the caller hangs up', async () => {
    upstream.script(async (wire) => {
      await wire.send(CHUNKED);
      await wire.send(chunk(mp3));
      await wire.hang();
    });
    const before = upstream.requests.length;
    const response = await gateway.post('/openai/tts', { text: 'Hi.' });
    const reader = response.body?.getReader();
    await reader?.read();
    const request = await upstream.request(before);
    await reader?.cancel();
    await request.closed;
  });

  it('takes from the vendor only as fast as the caller listens', async () => {
    let sent = 0;
    let finished = false;
    upstream.script(async (wire) => {
      await wire.send(head(200, { 'content-type': 'audio/pcm', 'transfer-encoding': 'chunked' }));
      for (let round = 0; round < 30 && !wire.isGone; round++) {
        await wire.send(chunk(Buffer.alloc(1024 * 1024, 1)));
        sent += 1;
      }
      await wire.send(LAST_CHUNK);
      finished = true;
    });
    const { port, hostname } = new URL(gateway.url);
    const socket = net.connect(Number(port), hostname);
    const body = JSON.stringify({ text: 'Hi.', format: 'pcm' });
    socket.write(
      `POST /bare/tts HTTP/1.1\r\nHost: x\r\nx-api-key: ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    await until('the way is full', () => {
      const stuck = sent > 0 && sent === seen;
      seen = sent;
      rounds = stuck ? rounds + 1 : 0;
      return rounds > 50;
    });
    expect(finished).to.equal(false);
    expect(sent).to.be.below(25);
    socket.destroy();
  });
  let seen = -1;
  let rounds = 0;

  const bad: readonly [string, object, string][] = [
    ['no text', {}, 'text'],
    ['a text that is no string', { text: 1 }, 'text'],
    ['a field that does not exist', { text: 'a', voise: 'x' }, 'voise'],
    ['a speed over 4', { text: 'a', speed: 4.1 }, 'speed'],
    ['a speed under 0.25', { text: 'a', speed: 0.2 }, 'speed'],
    ['a format nobody has', { text: 'a', format: 'ogg' }, 'format'],
    ['a language that is none', { text: 'a', language: 'de_AT; rm' }, 'language'],
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

  it('speaks real words through espeak, whole and streamed', async function () {
    needProgram(this as never, 'espeak-ng');
    const response = await gateway.post('/espeak/tts', { text: 'hello' });
    expect(response.headers.get('content-type')).to.equal('audio/wav');
    const { bytes, whole } = await read(response);
    expect(whole).to.equal(true);
    expect(hearWav(bytes).loudness).to.be.above(0.02);
  });
});

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
      { alias: (name) => (name === 'voice' ? { vendor: 'openai', model: 'tts-1' } : undefined) },
    );
    client = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  });
  after(async () => {
    await gateway.close();
    await upstream.close();
  });

  it('gives the client its sound', async () => {
    upstream.script(answer(200, mp3, MP3));
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

  it('passes instructions on, and takes an alias', async () => {
    upstream.script(answer(200, fixture('hi.aac'), { 'content-type': 'audio/aac' }));
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

  it('streams events with the sound in them, and their end', async () => {
    upstream.script(answer(200, mp3, MP3));
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

  it('tells an error in the events when the sound breaks off, and no end', async () => {
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

  it('lists voices and models to Open WebUI without a key, and asks no vendor for it', async () => {
    const before = upstream.requests.length;
    const [voices, models] = await Promise.all(
      ['voices', 'models'].map(async (what) => (await fetch(`${gateway.url}/v1/audio/${what}`)).json()),
    );
    expect((voices as { voices: object[] }).voices).to.deep.include({ id: 'alloy', name: 'Alloy (openai, espeak)' });
    expect((models as { models: object[] }).models).to.deep.equal([{ id: 'openai/tts-1' }, { id: 'espeak/espeak-ng' }]);
    expect(upstream.requests.length).to.equal(before);
  });
});
