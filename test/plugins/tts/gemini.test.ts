import { expect } from 'chai';
import type { StreamFailure } from '../../../contract/index.ts';
import { checkSpeech } from '../../../plugins/operations/speech/check.ts';
import gemini from '../../../plugins/tts/gemini.ts';
import { testSpeech } from '../../conformance/speech.ts';
import { fixture } from '../../support/speech/sound.ts';
import { loadSpeech } from '../../support/speech/speech-vendor.ts';

const EVENTS = { 'content-type': 'text/event-stream' };
const JSON_TYPE = { 'content-type': 'application/json; charset=UTF-8' };
const events = fixture('gemini-events.sse');
const json = fixture('gemini.json');

testSpeech({
  plugin: gemini,
  config: { apiKey: 'AIza-test-0123456789' },
  samples: [
    {
      format: 'wav',
      headers: EVENTS,
      body: events,
      errorEvent: {
        event: 'data: {"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}\n\n',
        class: 'rate_limit',
      },
    },
    { format: 'wav', stream: false, headers: JSON_TYPE, body: json },
    { format: 'pcm', headers: EVENTS, body: events },
    { format: 'pcm', stream: false, headers: JSON_TYPE, body: json },
  ],
  errors: [
    {
      status: 400,
      body: {
        error: {
          code: 400,
          message: 'API key not valid. Please pass a valid API key.',
          status: 'INVALID_ARGUMENT',
          details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }],
        },
      },
      class: 'authentication',
    },
    {
      status: 429,
      body: {
        error: {
          code: 429,
          message: 'Resource has been exhausted (e.g. check quota).',
          status: 'RESOURCE_EXHAUSTED',
          details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '27s' }],
        },
      },
      class: 'rate_limit',
    },
    {
      status: 404,
      body: { error: { code: 404, message: 'models/x is not found', status: 'NOT_FOUND' } },
      class: 'model_not_found',
    },
    {
      status: 503,
      body: { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } },
      class: 'overloaded',
    },
  ],
});

describe('gemini speech', () => {
  const call = { model: 'gemini-2.5-flash-preview-tts', stream: false, created: 1, id: 'x' };
  const decode = async (response: object) => {
    const vendor = await loadSpeech(gemini);
    const { input } = checkSpeech(vendor, { text: 'Hello' });
    const decoder = vendor.codec.decode(input, JSON_TYPE, call);
    decoder.push(Buffer.from(JSON.stringify(response)));
    return { sound: Buffer.concat(decoder.end()), usage: decoder.usage?.() };
  };

  it('sends requests as in the reference, with the style before the text', async () => {
    const vendor = await loadSpeech(gemini);
    const { input } = checkSpeech(vendor, {
      text: 'Have a nice day',
      voice: 'kore',
      language: 'en-US',
      options: { instructions: 'Say cheerfully:' },
    });
    expect(vendor.codec.request(input, call)).to.deep.equal({
      path: '/models/gemini-2.5-flash-preview-tts:generateContent',
      body: {
        contents: [{ role: 'user', parts: [{ text: 'Say cheerfully: Have a nice day' }] }],
        generationConfig: {
          responseModalities: ['AUDIO'],
          speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } }, languageCode: 'en-US' },
        },
      },
    });
    expect(vendor.codec.request(input, { ...call, stream: true }).path).to.match(/:streamGenerateContent\?alt=sse$/);
  });

  it('reports the used tokens, and adds a header of the true size to the samples', async () => {
    const { sound, usage } = await decode(JSON.parse(json.toString()) as object);
    expect(usage).to.deep.equal({ input: 5, output: 3 });
    expect(sound.readUInt32LE(40)).to.equal(sound.length - 44);
  });

  it('reads Google’s retry delay', async () => {
    const vendor = await loadSpeech(gemini);
    const body = { error: { status: 'RESOURCE_EXHAUSTED', message: 'x', details: [{ retryDelay: '27s' }] } };
    expect(vendor.error(429, body, {})).to.have.property('retryAfterMs', 27_000);
  });

  const refusals: readonly [string, object, string][] = [
    ['a blocked prompt', { promptFeedback: { blockReason: 'SAFETY' } }, 'content_filter'],
    ['a refusal in the end', { candidates: [{ finishReason: 'PROHIBITED_CONTENT' }] }, 'content_filter'],
    ['a sound cut at the limit', { candidates: [{ finishReason: 'MAX_TOKENS' }] }, 'upstream_error'],
    ['an unknown end', { candidates: [{ finishReason: 'OTHER' }] }, 'upstream_error'],
    ['an error with a good status', { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'x' } }, 'rate_limit'],
  ];
  for (const [title, response, kind] of refusals) {
    it(`treats ${title} as ${kind}`, async () => {
      await decode(response).then(
        () => expect.fail('it passed for a sound'),
        (error: unknown) => expect((error as StreamFailure).failure.class).to.equal(kind),
      );
    });
  }

  it('refuses sound of another rate, which would play at the wrong speed', async () => {
    const part = { inlineData: { mimeType: 'audio/L16;codec=pcm;rate=16000', data: 'AAAA' } };
    await decode({ candidates: [{ content: { parts: [part] }, finishReason: 'STOP' }] }).then(
      () => expect.fail('it passed'),
      (error: { code: string }) => expect(error.code).to.equal('provider_invalid_response'),
    );
  });
});
