import {
  definePlugin,
  type ModelInfo,
  type ResponseHeaders,
  readArray,
  readObject,
  readString,
  type UpstreamFailure,
} from '../../contract/index.ts';
import { failureOfStatus } from '../formats/kit/index.ts';
import {
  checkApiKeys,
  createVoiceLister,
  decodeSound,
  pickSpeechOptions,
  primaryLanguage,
  readSpeechOptions,
  readVoice,
  SPEECH_OPTIONS,
  type SpeechCodec,
  type SpeechFormat,
  type VoiceList,
} from './kit/index.ts';

/** Version of the API; the vendor requires one with every request. */
const API_VERSION = '2026-08-14';

/** https://docs.cartesia.ai/build-with-cartesia/tts-models */
const MODELS: readonly ModelInfo[] = Object.freeze(
  ['sonic-3.5', 'sonic-3', 'sonic-latest'].map((id) => ({ id, kind: 'speech' })),
);

const OUTPUT: Readonly<Partial<Record<SpeechFormat, object>>> = Object.freeze({
  mp3: { container: 'mp3', sample_rate: 44_100, bit_rate: 128_000 },
  wav: { container: 'wav', encoding: 'pcm_s16le', sample_rate: 44_100 },
  pcm: { container: 'raw', encoding: 'pcm_s16le', sample_rate: 24_000 },
});

const codec: SpeechCodec = {
  request({ text, voice, format, speed, language, options }, { model }) {
    const { volume, emotion, ...others } = pickSpeechOptions(options, [
      'volume',
      'emotion',
      'locale',
      'pronunciation_dict_id',
    ]);
    const generation = {
      ...(speed !== 1 && { speed }),
      ...(volume !== undefined && { volume }),
      ...(emotion !== undefined && { emotion }),
    };
    return {
      path: '/tts/bytes',
      body: {
        ...others,
        model_id: model,
        transcript: text,
        voice: { mode: 'id', id: voice },
        output_format: OUTPUT[format],
        ...(language !== undefined && { language: primaryLanguage(language) }),
        ...(Object.keys(generation).length > 0 && { generation_config: generation }),
      },
    };
  },
  decode: (_input, headers) => decodeSound(headers),
};

/** JSON with a title and a message; older versions of the API send plain text. */
function readError(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const { message, title, error_code } = readObject(body);
  const known: Partial<UpstreamFailure> =
    error_code === 'voice_not_found' ? { class: 'invalid_request', param: 'voice' } : {};
  return failureOfStatus(status, readString(message) ?? readString(title) ?? readString(body) ?? '', headers, known);
}

const VOICE_LIST: VoiceList = {
  path: '/voices?limit=100',
  read: (body) => {
    const rows = Array.isArray(body) ? body : readArray(readObject(body)['data']);
    return rows.flatMap((row) => {
      const { id, name, language } = readObject(row);
      return readVoice(id, name, language);
    });
  },
};

/** Speech by Cartesia (https://docs.cartesia.ai/api-reference/tts/bytes). Accepts any voice id of the account. */
export default definePlugin<object, 'tts'>({
  name: 'cartesia',
  kind: 'tts',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...SPEECH_OPTIONS } },
  check: checkApiKeys,
  setup(api, config) {
    const endpoint = {
      ...readSpeechOptions(config, {
        baseUrl: 'https://api.cartesia.ai',
        headers: { 'cartesia-version': API_VERSION },
        models: MODELS,
        voice: '694f9389-aac1-45b6-b726-9d9369183238',
      }),
      error: readError,
    };
    api.offer('speech', {
      ...endpoint,
      vendor: 'cartesia',
      formats: ['mp3', 'wav', 'pcm'],
      // The vendor publishes no limit; this one is about five minutes of speech.
      maxCharacters: 5000,
      speed: { min: 0.6, max: 1.5 },
      listVoices: createVoiceLister(api, endpoint, VOICE_LIST),
      codec,
    });
  },
});
