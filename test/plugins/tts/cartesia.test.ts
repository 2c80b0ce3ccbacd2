import { expect } from 'chai';
import { checkSpeech } from '../../../plugins/operations/speech/check.ts';
import cartesia from '../../../plugins/tts/cartesia.ts';
import { testSpeech } from '../../conformance/speech.ts';
import { fixture } from '../../support/speech/sound.ts';
import { loadSpeech } from '../../support/speech/speech-vendor.ts';

testSpeech({
  plugin: cartesia,
  config: { apiKey: 'sk_car_test_0123456789' },
  samples: [
    { format: 'mp3', headers: { 'content-type': 'audio/mpeg' }, body: fixture('hi.mp3') },
    { format: 'wav', headers: { 'content-type': 'audio/wav' }, body: fixture('hi.wav') },
    {
      format: 'pcm',
      headers: { 'content-type': 'application/octet-stream' },
      body: fixture('hi.pcm'),
      tellsCuts: false,
    },
  ],
  errors: [
    {
      status: 401,
      body: { title: 'Unauthorized', message: 'invalid key', error_code: 'unauthorized', status_code: 401 },
      class: 'authentication',
    },
    { status: 402, body: 'credits exhausted', class: 'billing' },
    {
      status: 404,
      body: { title: 'Not found', message: 'no such voice', error_code: 'voice_not_found' },
      class: 'invalid_request',
      param: 'voice',
    },
    { status: 429, body: 'too many concurrent requests', class: 'rate_limit' },
  ],
  voices: {
    body: { data: [{ id: '694f9389-aac1-45b6-b726-9d9369183238', name: 'Sarah', language: 'en' }], has_more: false },
    id: '694f9389-aac1-45b6-b726-9d9369183238',
  },
});

describe('cartesia speech', () => {
  it('sends requests as in the reference, with the version of its API', async () => {
    const vendor = await loadSpeech(cartesia);
    const { input, model } = checkSpeech(vendor, {
      text: 'Hello',
      model: 'sonic-3',
      format: 'wav',
      language: 'en-US',
      speed: 0.8,
      options: { emotion: 'neutral' },
    });
    expect(vendor.headers).to.have.property('cartesia-version', '2026-08-14');
    expect(vendor.codec.request(input, { model, stream: true, created: 1, id: 'x' })).to.deep.equal({
      path: '/tts/bytes',
      body: {
        model_id: 'sonic-3',
        transcript: 'Hello',
        voice: { mode: 'id', id: '694f9389-aac1-45b6-b726-9d9369183238' },
        output_format: { container: 'wav', encoding: 'pcm_s16le', sample_rate: 44_100 },
        language: 'en',
        generation_config: { speed: 0.8, emotion: 'neutral' },
      },
    });
  });
});
