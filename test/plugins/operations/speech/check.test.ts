import { expect } from 'chai';
import { isGatewayError } from '../../../../contract/index.ts';
import { checkSpeech, findSpeechModel } from '../../../../plugins/operations/speech/check.ts';
import type { SpeechRequest } from '../../../../plugins/tts/kit/index.ts';
import { speechVendor } from '../../../support/speech/speech-vendor.ts';

const vendor = speechVendor();

describe('checking a speech request', () => {
  it('fills in omitted options', () => {
    const { input, model, pieces, characters } = checkSpeech(vendor, { text: 'Hello 😀' });
    expect(input).to.deep.equal({ text: 'Hello 😀', voice: 'ann', format: 'mp3', speed: 1 });
    expect({ model, pieces, characters }).to.deep.equal({ model: 'tts-a', pieces: ['Hello 😀'], characters: 7 });
  });

  const refusals: readonly [string, SpeechRequest, string, string, string][] = [
    ['an empty text', { text: '' }, 'invalid_request', 'text', 'is empty or blank'],
    ['a blank text', { text: ' \u00a0\n\u200b\u0000' }, 'invalid_request', 'text', 'is empty or blank'],
    ['G29: SSML', { text: '<speak>Hello</speak>' }, 'invalid_request', 'text', 'SSML'],
    ['G29: SSML as XML', { text: ' <?xml version="1.0"?>\n<speak version="1">Hi' }, 'invalid_request', 'text', 'SSML'],
    [
      'a text over the limit',
      { text: 'a'.repeat(21) },
      'request_too_large',
      'text',
      'has 21 characters; the limit of this model is 20',
    ],
    [
      'a split that cannot be joined',
      { text: 'a'.repeat(21), split: true, format: 'opus' },
      'invalid_request',
      'split',
      'mp3, wav or pcm',
    ],
    [
      'a text of too many pieces',
      { text: 'a'.repeat(801), split: true },
      'request_too_large',
      'text',
      'with "split" is 800',
    ],
    ['a speed below the range', { text: 'a', speed: 0.49 }, 'invalid_request', 'speed', '0.5 to 2'],
    ['a speed above the range', { text: 'a', speed: 2.01 }, 'invalid_request', 'speed', '0.5 to 2'],
    ['a speed that is no number', { text: 'a', speed: Number.NaN }, 'invalid_request', 'speed', '0.5 to 2'],
    ['a format it has not', { text: 'a', format: 'flac' }, 'invalid_request', 'format', 'Use mp3, wav, opus, pcm'],
    ['an unknown voice', { text: 'a', voice: 'karla' }, 'invalid_request', 'voice', 'carla'],
    ['a voice like nothing', { text: 'a', voice: 'zzzzzzzz' }, 'invalid_request', 'voice', 'ann, Bert, carla'],
    ['an empty voice', { text: 'a', voice: ' ' }, 'invalid_request', 'voice', 'remove the field'],
    ['an unknown model', { text: 'a', model: 'tts-x' }, 'unsupported_model', 'model', 'tts-a'],
    ['an empty model', { text: 'a', model: '' }, 'unsupported_model', 'model', 'tts-a, tts-b'],
  ];
  for (const [title, request, code, param, words] of refusals) {
    it(`refuses ${title}`, () => {
      try {
        checkSpeech(vendor, request);
      } catch (error) {
        if (!isGatewayError(error)) throw error;
        expect([error.code, error.param]).to.deep.equal([code, param]);
        expect(error.message).to.include(words);
        return;
      }
      expect.fail('it was taken');
    });
  }

  it('quotes a caller’s own text with a limited length', () => {
    const voice = `"\n${'x'.repeat(5000)}`;
    expect(() => checkSpeech(vendor, { text: 'a', voice }))
      .to.throw()
      .with.property('message')
      .that.satisfies((message: string) => message.length < 300 && !message.includes('\n'));
  });

  it('accepts a voice in any case, and any voice if the list is unknown', () => {
    expect(checkSpeech(vendor, { text: 'a', voice: 'bert' }).input.voice).to.equal('Bert');
    const { voices: _, ...unlisted } = vendor;
    expect(checkSpeech(unlisted, { text: 'a', voice: 'any-id' }).input.voice).to.equal('any-id');
    expect(
      checkSpeech({ ...vendor, acceptsVoice: (id) => id === 'new' }, { text: 'a', voice: 'new' }).input.voice,
    ).to.equal('new');
  });

  it('uses the voice of a language only when none was requested', () => {
    const polyglot = speechVendor({ voiceFor: (language) => (language === 'de' ? 'carla' : undefined) });
    const voiceOf = (request: Partial<SpeechRequest>) => checkSpeech(polyglot, { text: 'a', ...request }).input.voice;
    expect(voiceOf({ language: 'de' })).to.equal('carla');
    expect(voiceOf({ language: 'de', voice: 'ann' })).to.equal('ann');
    expect(voiceOf({ language: 'fr' })).to.equal('ann');
  });

  it('holds a text against its model’s own limit', () => {
    expect(checkSpeech(vendor, { text: 'a'.repeat(50), model: 'tts-b-2026' }).pieces).to.have.length(1);
  });

  it('splits if requested', () => {
    const { pieces, characters } = checkSpeech(vendor, { text: 'One two three. Four five six.', split: true });
    expect(pieces).to.deep.equal(['One two three. ', 'Four five six.']);
    expect(characters).to.equal(29);
  });

  it('finds models by the longest name that the request begins with', () => {
    const models = ['tts', 'tts-1', 'tts-1-hd'].map((id) => ({ id }));
    expect(findSpeechModel({ ...vendor, models }, 'tts-1-hd-2026').info.id).to.equal('tts-1-hd');
    expect(findSpeechModel({ ...vendor, addModels: [{ id: 'own' }] }, 'own').name).to.equal('own');
    expect(findSpeechModel({ ...vendor, anyModel: true }, 'whatever').name).to.equal('whatever');
  });
});
