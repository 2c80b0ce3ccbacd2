import { expect } from 'chai';
import { checkSpeech } from '../../../plugins/operations/speech/check.ts';
import elevenlabs from '../../../plugins/tts/elevenlabs.ts';
import { testSpeech } from '../../conformance/speech.ts';
import { fixture } from '../../support/speech/sound.ts';
import { loadSpeech } from '../../support/speech/speech-vendor.ts';

testSpeech({
  plugin: elevenlabs,
  config: { apiKey: 'xi-test-0123456789' },
  samples: [
    { format: 'mp3', headers: { 'content-type': 'audio/mpeg' }, body: fixture('hi.mp3') },
    { format: 'opus', headers: { 'content-type': 'audio/opus' }, body: fixture('hi.opus') },
    {
      format: 'pcm',
      headers: { 'content-type': 'application/octet-stream' },
      body: fixture('hi.pcm'),
      tellsCuts: false,
    },
    {
      format: 'wav',
      headers: { 'content-type': 'application/octet-stream' },
      body: fixture('hi.pcm'),
      tellsCuts: false,
    },
  ],
  errors: [
    {
      status: 401,
      body: { detail: { status: 'invalid_api_key', message: 'Invalid API key' } },
      class: 'authentication',
    },
    {
      status: 401,
      body: { detail: { status: 'quota_exceeded', message: 'This request exceeds your quota.' } },
      class: 'billing',
    },
    {
      status: 400,
      body: { detail: { status: 'voice_not_found', message: 'no such voice' } },
      class: 'invalid_request',
      param: 'voice',
    },
    {
      status: 400,
      body: { detail: { status: 'max_character_limit_exceeded', message: 'too long' } },
      class: 'invalid_request',
      param: 'text',
    },
    {
      status: 429,
      body: { detail: { status: 'too_many_concurrent_requests', message: 'slow down' } },
      class: 'rate_limit',
    },
    { status: 429, body: { detail: { status: 'system_busy', message: 'busy' } }, class: 'overloaded' },
    {
      status: 422,
      body: { detail: [{ loc: ['body', 'text'], msg: 'field required', type: 'missing' }] },
      class: 'invalid_request',
    },
    { status: 403, body: { detail: 'plain words' }, class: 'permission' },
  ],
  voices: {
    body: {
      voices: [{ voice_id: 'JBFqnCBsd6RMkjVDRZzb', name: 'George', labels: { language: 'en' } }],
      has_more: false,
      total_count: 1,
    },
    id: 'JBFqnCBsd6RMkjVDRZzb',
  },
});

describe('elevenlabs speech', () => {
  it('sends requests as in the reference', async () => {
    const vendor = await loadSpeech(elevenlabs);
    const { input, model } = checkSpeech(vendor, {
      text: 'Hello',
      voice: 'v1',
      speed: 1.1,
      language: 'de-AT',
      model: 'eleven_flash_v2_5',
      options: { stability: 0.4, seed: 7, enable_logging: false },
    });
    expect(vendor.codec.request(input, { model, stream: true, created: 1, id: 'x' })).to.deep.equal({
      path: '/v1/text-to-speech/v1/stream?output_format=mp3_44100_128&enable_logging=false',
      body: {
        seed: 7,
        text: 'Hello',
        model_id: 'eleven_flash_v2_5',
        language_code: 'de',
        voice_settings: { stability: 0.4, speed: 1.1 },
      },
    });
  });

  it('accepts each model’s number of characters', async () => {
    const vendor = await loadSpeech(elevenlabs);
    const text = 'a'.repeat(12_000);
    expect(checkSpeech(vendor, { text, model: 'eleven_flash_v2_5' }).pieces).to.have.length(1);
    expect(() => checkSpeech(vendor, { text })).to.throw('the limit of this model is 10000');
  });
});
