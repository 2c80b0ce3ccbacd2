import { expect } from 'chai';
import { checkSpeech } from '../../../plugins/operations/speech/check.ts';
import deepgram from '../../../plugins/tts/deepgram.ts';
import type { SpeechRequest } from '../../../plugins/tts/kit/index.ts';
import { testSpeech } from '../../conformance/speech.ts';
import { fixture } from '../../support/speech/sound.ts';
import { loadSpeech } from '../../support/speech/speech-vendor.ts';

testSpeech({
  plugin: deepgram,
  config: { apiKey: 'dg-test-0123456789' },
  samples: [
    { format: 'mp3', headers: { 'content-type': 'audio/mpeg' }, body: fixture('hi.mp3') },
    { format: 'wav', headers: { 'content-type': 'audio/wav' }, body: fixture('streamed.wav'), tellsCuts: false },
    { format: 'opus', headers: { 'content-type': 'audio/ogg' }, body: fixture('hi.opus') },
    { format: 'pcm', headers: { 'content-type': 'audio/l16;rate=24000' }, body: fixture('hi.pcm'), tellsCuts: false },
    { format: 'flac', headers: { 'content-type': 'audio/flac' }, body: fixture('hi.flac'), tellsCuts: false },
  ],
  errors: [
    {
      status: 400,
      body: { err_code: 'INVALID_QUERY_PARAMETER', err_msg: "Invalid 'model' value", request_id: 'r' },
      class: 'invalid_request',
    },
    { status: 401, body: { err_code: 'INVALID_AUTH', err_msg: 'Invalid credentials.' }, class: 'authentication' },
    { status: 402, body: { err_code: 'ASR_PAYMENT_REQUIRED', err_msg: 'no credit' }, class: 'billing' },
    { status: 413, body: { err_code: 'X', err_msg: 'too long' }, class: 'request_over_limit', param: 'text' },
    { status: 429, body: { err_code: 'TOO_MANY_REQUESTS', err_msg: 'slow down' }, class: 'rate_limit' },
  ],
  voices: {
    body: { tts: [{ name: 'agathe', canonical_name: 'aura-2-agathe-fr', languages: ['fr'] }] },
    id: 'aura-2-agathe-fr',
  },
});

describe('deepgram speech', () => {
  const pathOf = async (request: Omit<SpeechRequest, 'text'>) => {
    const vendor = await loadSpeech(deepgram);
    const { input, model } = checkSpeech(vendor, { text: 'Hello', ...request });
    return vendor.codec.request(input, { model, stream: true, created: 1, id: 'x' }).path;
  };

  const cases: readonly [string, Omit<SpeechRequest, 'text'>, string][] = [
    ['sends no container with mp3', {}, '/v1/speak?model=aura-2-thalia-en&encoding=mp3'],
    [
      'asks for WAV at 24 kHz',
      { format: 'wav' },
      '/v1/speak?model=aura-2-thalia-en&encoding=linear16&container=wav&sample_rate=24000',
    ],
    ['sends no rate with opus', { format: 'opus' }, '/v1/speak?model=aura-2-thalia-en&encoding=opus&container=ogg'],
    ['sends the speed', { speed: 0.9 }, '/v1/speak?model=aura-2-thalia-en&encoding=mp3&speed=0.9'],
    ['finds a voice for a language', { language: 'fr-CA' }, '/v1/speak?model=aura-2-agathe-fr&encoding=mp3'],
    ['takes a model that names a voice', { model: 'aura-2-zeus-en' }, '/v1/speak?model=aura-2-zeus-en&encoding=mp3'],
    [
      'takes voices that are newer than its list',
      { voice: 'aura-2-newone-en' },
      '/v1/speak?model=aura-2-newone-en&encoding=mp3',
    ],
  ];
  for (const [title, request, path] of cases) {
    it(title, async () => {
      expect(await pathOf(request)).to.equal(path);
    });
  }

  it('names near voices for one it does not know', async () => {
    await pathOf({ voice: 'aura-2-thalia' }).then(
      () => expect.fail('it took the voice'),
      (error: Error) => expect(error.message).to.include('aura-2-thalia-en'),
    );
  });
});
