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
  type Voice,
  type VoiceList,
} from './kit/index.ts';

/** https://developers.deepgram.com/docs/tts-models; Deepgram's model names include the voice. */
const MODELS: readonly ModelInfo[] = Object.freeze([
  { id: 'aura-2', kind: 'speech', price: { input: 0, output: 0, characters: 30 } },
]);

/** Best known voices, by language; other names of the form `aura-2-name-language` are accepted too. */
const NAMES: Readonly<Record<string, string>> = Object.freeze({
  en: 'thalia andromeda apollo arcas aries asteria athena atlas aurora callista cora cordelia delia draco electra harmonia helena hera hermes hyperion iris janus juno jupiter luna mars minerva neptune odysseus ophelia orion orpheus pandora phoebe pluto saturn selene theia vesta zeus',
  es: 'celeste estrella nestor agustina alvaro antonia aquila carina diana gloria luciano olivia silvia valerio',
  de: 'viktoria aurelia elara fabian julius kara lara',
  fr: 'agathe hector',
  it: 'livia cesare cinzia demetra dionisio elio flavio maia melia',
  ja: 'izanami ama ebisu',
  nl: 'rhea beatrix cornelia daphne hestia lars leda roman sander',
});

const VOICES: readonly Voice[] = Object.freeze(
  Object.entries(NAMES).flatMap(([language, names]) =>
    names.split(' ').map((name) => ({ id: `aura-2-${name}-${language}`, name, language })),
  ),
);

const FULL_NAME = /^aura-2-[a-z0-9]{2,32}-[a-z]{2}$/;

/** Supported combinations only: a container with mp3, or a rate with opus, is a 400. */
const OUTPUT: Readonly<Partial<Record<SpeechFormat, Readonly<Record<string, string>>>>> = Object.freeze({
  mp3: { encoding: 'mp3' },
  wav: { encoding: 'linear16', container: 'wav', sample_rate: '24000' },
  pcm: { encoding: 'linear16', container: 'none', sample_rate: '24000' },
  opus: { encoding: 'opus', container: 'ogg' },
  flac: { encoding: 'flac', sample_rate: '48000' },
});

const codec: SpeechCodec = {
  request({ text, voice, format, speed, language, options }, { model }) {
    const { mip_opt_out, tag, bit_rate } = pickSpeechOptions(options, ['mip_opt_out', 'tag', 'bit_rate']);
    // A model that includes a voice, as Deepgram's own clients send it, takes precedence.
    const query = new URLSearchParams({ model: FULL_NAME.test(model) ? model : voice, ...OUTPUT[format] });
    if (speed !== 1) query.set('speed', String(speed));
    if (mip_opt_out === true) query.set('mip_opt_out', 'true');
    if (typeof tag === 'string') query.set('tag', tag);
    if (typeof bit_rate === 'number' && format !== 'wav' && format !== 'pcm') query.set('bit_rate', String(bit_rate));
    return {
      path: `/v1/speak?${query}`,
      body: { text },
      // Used to choose the voice; a voice given by name speaks its own language.
      ...(language !== undefined && !voice.endsWith(`-${primaryLanguage(language)}`) && { dropped: ['language'] }),
    };
  },
  decode: (_input, headers) => decodeSound(headers),
};

const FAILURE_OF: Readonly<Record<string, Partial<UpstreamFailure>>> = Object.freeze({
  INVALID_AUTH: { class: 'authentication' },
  INSUFFICIENT_PERMISSIONS: { class: 'permission' },
  ASR_PAYMENT_REQUIRED: { class: 'billing' },
  TOO_MANY_REQUESTS: { class: 'rate_limit' },
});

function readError(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const { err_code, err_msg } = readObject(body);
  const known = FAILURE_OF[String(err_code)] ?? (status === 413 ? { param: 'text' } : {});
  return failureOfStatus(status, readString(err_msg) ?? '', headers, known);
}

const VOICE_LIST: VoiceList = {
  path: '/v1/models',
  read: (body) =>
    readArray(readObject(body)['tts']).flatMap((row) => {
      const { canonical_name, name, languages } = readObject(row);
      const id = readString(canonical_name);
      return id !== undefined && FULL_NAME.test(id) ? readVoice(id, name, readArray(languages)[0]) : [];
    }),
};

/** Speech by Deepgram's Aura 2 (https://developers.deepgram.com/reference/text-to-speech). Accepts 2,000 characters. */
export default definePlugin<object, 'tts'>({
  name: 'deepgram',
  kind: 'tts',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...SPEECH_OPTIONS } },
  check: checkApiKeys,
  setup(api, config) {
    const endpoint = {
      ...readSpeechOptions(config, {
        baseUrl: 'https://api.deepgram.com',
        // Bearer is for short-lived tokens, Token for keys.
        credential: { header: 'authorization', prefix: 'Token ' },
        models: MODELS,
        voice: 'aura-2-thalia-en',
        voices: VOICES,
      }),
      error: readError,
    };
    api.offer('speech', {
      acceptsVoice: (id) => FULL_NAME.test(id),
      ...endpoint,
      voiceFor: (language) => VOICES.find((voice) => voice.language === primaryLanguage(language))?.id,
      vendor: 'deepgram',
      formats: ['mp3', 'wav', 'opus', 'pcm', 'flac'],
      maxCharacters: 2000,
      speed: { min: 0.7, max: 1.5 },
      listVoices: createVoiceLister(api, endpoint, VOICE_LIST),
      codec,
    });
  },
});
