import { definePlugin, type ResponseHeaders } from 'tollgate';
import { failureOfStatus } from 'tollgate/codec';
import { decodeSound, pickSpeechOptions, readSpeechOptions, SPEECH_OPTIONS, type SpeechCodec } from 'tollgate/speech';

/** From a request to the vendor's, and from its response to sound. */
const codec: SpeechCodec = {
  request({ text, voice, speed, options }, { model }) {
    const { style } = pickSpeechOptions(options, ['style']); // options of the vendor's own; any other is refused
    return { path: '/v1/speak', body: { model, text, voice, speed, ...(style !== undefined && { style }) } };
  },
  decode: (_input, headers) => decodeSound(headers),
};

/** A vendor of speech. Link its reference here. */
export default definePlugin<object, 'tts'>({
  name: 'my-plugin',
  kind: 'tts',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...SPEECH_OPTIONS } },
  setup(api, config) {
    const options = readSpeechOptions(config, {
      baseUrl: 'https://api.vendor.example',
      // The price is US dollars for a million characters.
      models: [{ id: 'say-1', kind: 'speech', price: { input: 0, output: 0, characters: 15 } }],
      voice: 'ann',
      voices: [{ id: 'ann', name: 'Ann', language: 'en' }],
    });
    api.offer('speech', {
      ...options,
      error: (status: number, _body: unknown, headers: ResponseHeaders) => failureOfStatus(status, '', headers),
      vendor: 'my-plugin',
      formats: ['wav'],
      maxCharacters: 2000,
      speed: { min: 0.5, max: 2 },
      codec,
    });
  },
});
