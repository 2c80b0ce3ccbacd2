import { expect } from 'chai';
import { checkSpeech } from '../../../plugins/operations/speech/check.ts';
import openai from '../../../plugins/tts/openai.ts';
import { testSpeech } from '../../conformance/speech.ts';
import { fixture } from '../../support/speech/sound.ts';
import { loadSpeech } from '../../support/speech/speech-vendor.ts';

const bare = (format: 'wav' | 'opus' | 'aac' | 'flac' | 'pcm', contentType: string, tellsCuts = true) => ({
  format,
  headers: { 'content-type': contentType },
  body: fixture(`hi.${format}`),
  tellsCuts,
});

testSpeech({
  plugin: openai,
  config: { apiKey: 'sk-test-0123456789' },
  samples: [
    {
      format: 'mp3',
      headers: { 'content-type': 'text/event-stream' },
      body: fixture('openai-events.sse'),
      errorEvent: {
        event:
          'data: {"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota"}}\n\n',
        class: 'billing',
      },
    },
    { format: 'mp3', stream: false, headers: { 'content-type': 'audio/mpeg' }, body: fixture('hi.mp3') },
    bare('wav', 'audio/wav'),
    bare('opus', 'audio/opus'),
    bare('aac', 'audio/aac'),
    bare('flac', 'audio/flac', false),
    bare('pcm', 'audio/pcm', false),
  ],
  errors: [
    {
      status: 401,
      body: {
        error: { message: 'Incorrect API key provided: sk-….', type: 'invalid_request_error', code: 'invalid_api_key' },
      },
      class: 'authentication',
    },
    {
      status: 429,
      body: {
        error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' },
      },
      class: 'billing',
    },
    {
      status: 429,
      body: { error: { message: 'Rate limit reached', type: 'requests', code: 'rate_limit_exceeded' } },
      class: 'rate_limit',
    },
    {
      status: 404,
      body: { error: { message: 'The model `x` does not exist', code: 'model_not_found' } },
      class: 'model_not_found',
      param: 'model',
    },
    {
      status: 400,
      body: { error: { message: 'Invalid value', type: 'invalid_request_error', param: 'input', code: null } },
      class: 'invalid_request',
      param: 'text',
    },
    {
      status: 500,
      body: { error: { message: 'The server had an error', type: 'server_error' } },
      class: 'upstream_error',
    },
  ],
});

describe('openai speech', () => {
  const call = { model: 'tts-1', stream: true, created: 1, id: 'x' };

  it('sends requests as in the reference', async () => {
    const vendor = await loadSpeech(openai);
    const { input, model } = checkSpeech(vendor, {
      text: 'Hello',
      voice: 'alloy',
      speed: 1.5,
      options: { instructions: 'calm' },
    });
    expect(vendor.codec.request(input, { ...call, model })).to.deep.equal({
      path: '/audio/speech',
      body: {
        instructions: 'calm',
        model: 'gpt-4o-mini-tts',
        input: 'Hello',
        voice: 'alloy',
        response_format: 'mp3',
        speed: 1.5,
        stream_format: 'sse',
      },
    });
  });

  it('requests plain sound from models without events', async () => {
    const vendor = await loadSpeech(openai);
    const { input } = checkSpeech(vendor, { text: 'Hello', model: 'tts-1', language: 'de' });
    const request = vendor.codec.request(input, call);
    expect(request.body).to.not.have.property('stream_format');
    expect(request.dropped).to.deep.equal(['language']);
  });

  it('sends a custom voice as the object that it is', async () => {
    const vendor = await loadSpeech(openai);
    const { input } = checkSpeech(vendor, { text: 'Hello', voice: 'voice_abc' });
    expect(vendor.codec.request(input, call).body).to.have.deep.property('voice', { id: 'voice_abc' });
  });

  it('reads other servers’ models and voices from its configuration', async () => {
    const vendor = await loadSpeech(openai, {
      baseUrl: 'http://127.0.0.1:8880/v1',
      models: ['kokoro'],
      voices: ['af_bella'],
    });
    const { input, model } = checkSpeech(vendor, { text: 'Hello' });
    expect([model, input.voice, vendor.baseUrl]).to.deep.equal(['kokoro', 'af_bella', 'http://127.0.0.1:8880/v1']);
    expect(() => checkSpeech(vendor, { text: 'Hello', voice: 'alloy' })).to.throw('voice "alloy" is unknown');
  });
});
