import { expect } from 'chai';
import { checkSpeech } from '../../../plugins/operations/speech/check.ts';
import type { SpeechFormat } from '../../../plugins/tts/kit/index.ts';
import mistral from '../../../plugins/tts/mistral.ts';
import { testSpeech } from '../../conformance/speech.ts';
import { fixture } from '../../support/speech/sound.ts';
import { loadSpeech } from '../../support/speech/speech-vendor.ts';

/** Response of the vendor: the sound as base64 in JSON. */
const json = (format: SpeechFormat, file: string) => ({
  format,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify({ audio_data: fixture(file).toString('base64') })),
});

testSpeech({
  plugin: mistral,
  config: { apiKey: 'mistral-test-0123456789' },
  samples: [
    {
      format: 'mp3',
      headers: { 'content-type': 'text/event-stream' },
      body: fixture('mistral-events.sse'),
      errorEvent: {
        event: 'event: error\ndata: {"object":"error","message":"overloaded"}\n\n',
        class: 'upstream_error',
      },
    },
    { ...json('mp3', 'hi.mp3'), stream: false },
    json('wav', 'hi.wav'),
    json('opus', 'hi.opus'),
    json('flac', 'hi.flac'),
    json('pcm', 'hi.wav'),
  ],
  errors: [
    { status: 401, body: { detail: 'Unauthorized' }, class: 'authentication' },
    {
      status: 422,
      body: { detail: [{ loc: ['body', 'voice_id'], msg: 'unknown voice', type: 'value_error' }] },
      class: 'invalid_request',
      param: 'voice',
    },
    {
      status: 422,
      body: { detail: [{ loc: ['body', 'input'], msg: 'Field required', type: 'missing' }] },
      class: 'invalid_request',
      param: 'text',
    },
    {
      status: 429,
      body: { object: 'error', message: 'Rate limit exceeded', type: 'rate_limited', code: '1300' },
      class: 'rate_limit',
    },
  ],
  voices: { body: { items: [{ id: '5b7c', name: 'My voice', languages: ['fr'] }], total: 1 }, id: '5b7c' },
});

describe('mistral speech', () => {
  const bodyOf = async (request: object) => {
    const vendor = await loadSpeech(mistral);
    const { input, model } = checkSpeech(vendor, { text: 'Hello', ...request });
    return vendor.codec.request(input, { model, stream: true, created: 1, id: 'x' }).body;
  };

  it('sends requests as in the reference', async () => {
    expect(await bodyOf({ voice: 'gb_jane_neutral' })).to.deep.equal({
      model: 'voxtral-mini-tts-3-0',
      input: 'Hello',
      voice_id: 'gb_jane_neutral',
      response_format: 'mp3',
      stream: true,
    });
  });

  it('requests WAV for pcm, because its own bare samples are of an unknown kind', async () => {
    expect(await bodyOf({ format: 'pcm' })).to.include({ response_format: 'wav', stream: false });
  });

  it('accepts a recording as a voice', async () => {
    const body = await bodyOf({ options: { ref_audio: 'UklGRg==' } });
    expect(body).to.have.property('ref_audio', 'UklGRg==');
    expect(body).to.not.have.property('voice_id');
  });

  it('has one speed', async () => {
    await bodyOf({ speed: 1.2 }).then(
      () => expect.fail('it took the speed'),
      (error: Error) => expect(error.message).to.include('one speed'),
    );
  });
});
