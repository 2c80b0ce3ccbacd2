import { isEventStream } from '../../contract/event-reader.ts';
import {
  definePlugin,
  type ModelInfo,
  parseJson,
  type ResponseHeaders,
  readArray,
  readObject,
  readString,
  type SseEvent,
  StreamFailure,
  type UpstreamFailure,
} from '../../contract/index.ts';
import { failureOfStatus } from '../formats/kit/index.ts';
import {
  type AudioDecoder,
  checkApiKeys,
  createVoiceLister,
  decodeEventSound,
  decodeJsonSound,
  type EventSound,
  pickSpeechOptions,
  readSpeechOptions,
  readVoice,
  SPEECH_OPTIONS,
  type SpeechCodec,
  unwrapWav,
  type VoiceList,
} from './kit/index.ts';

/** https://docs.mistral.ai/studio/audio/text-to-speech */
const MODELS: readonly ModelInfo[] = Object.freeze(
  ['voxtral-mini-tts-3-0', 'voxtral-mini-tts-2603', 'voxtral-mini-tts'].map((id) => ({
    id,
    kind: 'speech',
    price: { input: 0, output: 0, characters: 16 },
  })),
);

const codec: SpeechCodec = {
  request({ text, voice, format, language, options, stream }, { model }) {
    const { ref_audio } = pickSpeechOptions(options, ['ref_audio']);
    return {
      path: '/audio/speech',
      body: {
        model,
        input: text,
        // A reference recording replaces the voice.
        ...(ref_audio === undefined ? { voice_id: voice } : { ref_audio }),
        // The vendor does not document its raw samples; the header of a WAV describes them.
        response_format: format === 'pcm' ? 'wav' : format,
        // Chunks of mp3 can be concatenated; that is undocumented for other formats, so they are not streamed.
        stream: stream !== false && format === 'mp3',
      },
      ...(language !== undefined && { dropped: ['language'] }),
    };
  },
  decode({ format }, headers): AudioDecoder {
    const events = isEventStream(headers);
    const sound = events ? decodeEventSound(readEvent) : decodeJsonSound(readWhole);
    return format === 'pcm' ? unwrapWav(sound) : sound;
  },
};

function readWhole(body: unknown) {
  const base64 = readString(readObject(body)['audio_data']);
  return base64 === undefined ? undefined : { base64 };
}

function readEvent({ event, data }: SseEvent): EventSound | undefined {
  const body = readObject(parseJson(data));
  const type = readString(body['type']) ?? event;
  if (type === 'speech.audio.delta') return { base64: readString(body['audio_data']) ?? '' };
  if (type === 'speech.audio.done') return { done: true };
  if (type === 'error' || body['object'] === 'error' || body['error'])
    throw new StreamFailure(readError(500, body, {}));
  return undefined;
}

/** `{object: "error", message, type, code}`, or FastAPI's `{detail: [{loc, msg}]}`. */
function readError(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const { message, detail, error } = readObject(body);
  const [first] = readArray(detail);
  const text = readString(message) ?? readString(readObject(first)['msg']) ?? readString(detail);
  const field = readArray(readObject(first)['loc']).at(-1);
  const param = field === 'input' ? 'text' : field === 'voice_id' ? 'voice' : undefined;
  const words = text ?? readString(readObject(error)['message']) ?? '';
  return failureOfStatus(status, words, headers, param === undefined ? {} : { param });
}

const VOICE_LIST: VoiceList = {
  path: '/audio/voices?limit=100',
  read: (body) =>
    readArray(readObject(body)['items']).flatMap((row) => {
      const { id, name, languages } = readObject(row);
      return readVoice(id, name, readArray(languages)[0]);
    }),
};

/** Speech by Mistral's Voxtral. Accepts any voice id: presets such as `en_paul_neutral`, and the account's own. */
export default definePlugin<object, 'tts'>({
  name: 'mistral',
  kind: 'tts',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...SPEECH_OPTIONS } },
  check: checkApiKeys,
  setup(api, config) {
    const endpoint = {
      ...readSpeechOptions(config, {
        baseUrl: 'https://api.mistral.ai/v1',
        models: MODELS,
        voice: 'en_paul_neutral',
      }),
      error: readError,
    };
    api.offer('speech', {
      ...endpoint,
      vendor: 'mistral',
      formats: ['mp3', 'wav', 'opus', 'flac', 'pcm'],
      // The vendor publishes no limit; this one is about five minutes of speech.
      maxCharacters: 5000,
      speed: { min: 1, max: 1 },
      listVoices: createVoiceLister(api, endpoint, VOICE_LIST),
      codec,
    });
  },
});
