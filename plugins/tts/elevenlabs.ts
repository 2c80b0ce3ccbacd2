import {
  definePlugin,
  GatewayError,
  isObject,
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
  convertPcm,
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

/** https://elevenlabs.io/docs/models; the character limits are those of August 2025. */
const MODELS: readonly ModelInfo[] = Object.freeze([
  { id: 'eleven_multilingual_v2', kind: 'speech', maxCharacters: 10_000 },
  { id: 'eleven_flash_v2_5', kind: 'speech', maxCharacters: 40_000 },
  { id: 'eleven_turbo_v2_5', kind: 'speech', maxCharacters: 40_000 },
  { id: 'eleven_flash_v2', kind: 'speech', maxCharacters: 30_000 },
  { id: 'eleven_turbo_v2', kind: 'speech', maxCharacters: 30_000 },
  { id: 'eleven_v3', kind: 'speech', maxCharacters: 3000 },
]);

/** WAV is made from PCM here: the vendor's own does not stream and requires a more expensive plan. */
const OUTPUT: Readonly<Partial<Record<SpeechFormat, string>>> = Object.freeze({
  mp3: 'mp3_44100_128',
  opus: 'opus_48000_64',
  pcm: 'pcm_24000',
  wav: 'pcm_24000',
});

const VOICE_SETTINGS = ['stability', 'similarity_boost', 'style', 'use_speaker_boost'] as const;
const BODY_OPTIONS = [
  'seed',
  'previous_text',
  'next_text',
  'apply_text_normalization',
  'pronunciation_dictionary_locators',
] as const;

/** Voice ids become part of the path. */
const VOICE_ID = /^[\w-]{1,64}$/;

const codec: SpeechCodec = {
  request(input, { model }) {
    if (!VOICE_ID.test(input.voice)) {
      throw new GatewayError('invalid_request', 'voice must be the id of a voice: letters and digits only.', {
        param: 'voice',
      });
    }
    const { text, voice, format, speed, language } = input;
    const options = pickSpeechOptions(input.options, [...VOICE_SETTINGS, ...BODY_OPTIONS, 'enable_logging']);
    const { enable_logging, ...others } = options;
    const settings = Object.entries(others).filter(([name]) => isVoiceSetting(name));
    if (speed !== 1) settings.push(['speed', speed]);
    const query = new URLSearchParams({ output_format: OUTPUT[format] ?? '' });
    if (enable_logging === false) query.set('enable_logging', 'false');
    return {
      path: `/v1/text-to-speech/${voice}/stream?${query}`,
      body: {
        ...Object.fromEntries(Object.entries(others).filter(([name]) => !isVoiceSetting(name))),
        text,
        model_id: model,
        ...(language !== undefined && { language_code: primaryLanguage(language) }),
        ...(settings.length > 0 && { voice_settings: Object.fromEntries(settings) }),
      },
    };
  },
  decode({ format }, headers) {
    const sound = decodeSound(headers);
    return format === 'wav' ? convertPcm(sound, 24_000, 'wav') : sound;
  },
};

function isVoiceSetting(name: string): boolean {
  return (VOICE_SETTINGS as readonly string[]).includes(name);
}

/** `detail.status` is more exact than the HTTP status: an empty account is a 401. */
const FAILURE_OF: Readonly<Record<string, Partial<UpstreamFailure>>> = Object.freeze({
  invalid_api_key: { class: 'authentication' },
  quota_exceeded: { class: 'billing' },
  max_character_limit_exceeded: { class: 'invalid_request', param: 'text' },
  voice_not_found: { class: 'invalid_request', param: 'voice' },
  model_not_found: { class: 'model_not_found', param: 'model' },
  too_many_concurrent_requests: { class: 'rate_limit' },
  system_busy: { class: 'overloaded' },
});

/** `detail` is an object, a text, or FastAPI's list of `{loc, msg}`. */
function readError(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const { detail } = readObject(body);
  const [first] = readArray(detail);
  const message =
    readString(detail) ?? readString(readObject(detail)['message']) ?? readString(readObject(first)['msg']) ?? '';
  const known = isObject(detail) ? FAILURE_OF[String(detail['status'])] : undefined;
  return failureOfStatus(status, message, headers, known);
}

/** First page of the account's voices; the vendor returns at most a hundred. */
const VOICE_LIST: VoiceList = {
  path: '/v2/voices?page_size=100',
  read: (body) =>
    readArray(readObject(body)['voices']).flatMap((row) => {
      const { voice_id, name, labels } = readObject(row);
      return readVoice(voice_id, name, readObject(labels)['language']);
    }),
};

/**
 * Speech by ElevenLabs (https://elevenlabs.io/docs/api-reference/text-to-speech). Accepts any voice id of the
 * account.
 */
export default definePlugin<object, 'tts'>({
  name: 'elevenlabs',
  kind: 'tts',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...SPEECH_OPTIONS } },
  check: checkApiKeys,
  setup(api, config) {
    const endpoint = {
      ...readSpeechOptions(config, {
        baseUrl: 'https://api.elevenlabs.io',
        credential: { header: 'xi-api-key' },
        models: MODELS,
        voice: 'JBFqnCBsd6RMkjVDRZzb',
      }),
      error: readError,
    };
    api.offer('speech', {
      ...endpoint,
      vendor: 'elevenlabs',
      formats: ['mp3', 'wav', 'opus', 'pcm'],
      // For models that the operator adds: the lowest known limit.
      maxCharacters: 3000,
      speed: { min: 0.7, max: 1.2 },
      listVoices: createVoiceLister(api, endpoint, VOICE_LIST),
      codec,
    });
  },
});
