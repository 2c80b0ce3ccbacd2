import { isEventStream } from '../../contract/event-reader.ts';
import {
  definePlugin,
  type ModelInfo,
  parseJson,
  type ResponseHeaders,
  readObject,
  type SseEvent,
  StreamFailure,
  type UpstreamFailure,
} from '../../contract/index.ts';
import { failureOfStatus } from '../formats/kit/index.ts';
import {
  type AudioDecoder,
  checkApiKeys,
  decodeEventSound,
  decodeSound,
  type EventSound,
  pickSpeechOptions,
  readSpeechOptions,
  SPEECH_OPTIONS,
  type SpeechCodec,
  type Voice,
} from './kit/index.ts';

/** https://platform.openai.com/docs/api-reference/audio/createSpeech */
const MODELS: readonly ModelInfo[] = Object.freeze([
  // Billed by tokens, which its stream of events reports.
  { id: 'gpt-4o-mini-tts', kind: 'speech', price: { input: 0.6, output: 12 } },
  { id: 'tts-1', kind: 'speech', price: { input: 0, output: 0, characters: 15 } },
  { id: 'tts-1-hd', kind: 'speech', price: { input: 0, output: 0, characters: 30 } },
]);

const VOICES: readonly Voice[] = Object.freeze(
  'alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar'
    .split(' ')
    .map((id) => ({ id, name: `${id.charAt(0).toUpperCase()}${id.slice(1)}` })),
);

/** Tollgate's names for the vendor's fields, in error messages. */
const PARAM: Readonly<Record<string, string>> = Object.freeze({
  input: 'text',
  response_format: 'format',
  instructions: 'options.instructions',
});

/** Returns true for models that send events, which report usage and the end of the sound. */
const sendsEvents = (model: string) => model.startsWith('gpt-');

const codec: SpeechCodec = {
  request(input, { model }) {
    const { text, voice, format, speed, language, options } = input;
    return {
      path: '/audio/speech',
      body: {
        ...pickSpeechOptions(options, ['instructions']),
        model,
        input: text,
        voice: voice.startsWith('voice_') ? { id: voice } : voice,
        response_format: format,
        ...(speed !== 1 && { speed }),
        ...(sendsEvents(model) && { stream_format: 'sse' }),
      },
      ...(language !== undefined && { dropped: ['language'] }),
    };
  },
  decode(_input, headers): AudioDecoder {
    // OpenAI-compatible servers may send plain sound where events were requested.
    const events = isEventStream(headers);
    return events ? decodeEventSound(readEvent) : decodeSound(headers);
  },
};

interface SpeechEvent {
  readonly type?: string;
  readonly audio?: string;
  readonly usage?: { readonly input_tokens?: number; readonly output_tokens?: number };
  readonly error?: VendorError['error'];
}

function readEvent({ data }: SseEvent): EventSound | undefined {
  const event = readObject(parseJson(data)) as SpeechEvent;
  if (event.error) throw new StreamFailure(readError(500, event, {}));
  if (event.type === 'speech.audio.delta') return { base64: event.audio ?? '' };
  if (event.type !== 'speech.audio.done') return undefined;
  const { input_tokens: input, output_tokens: output } = event.usage ?? {};
  return { done: true, ...(input !== undefined && output !== undefined && { tokens: { input, output } }) };
}

interface VendorError {
  readonly error?: {
    readonly message?: string;
    readonly type?: string | null;
    readonly code?: string | null;
    readonly param?: string | null;
  };
}

function readError(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const { error } = readObject(body) as VendorError;
  const { message = `The provider returned status ${status}.`, type, code, param } = error ?? {};
  const better: Partial<UpstreamFailure> =
    code === 'insufficient_quota' || type === 'insufficient_quota'
      ? { class: 'billing' }
      : code === 'model_not_found'
        ? { class: 'model_not_found', param: 'model' }
        : { ...(param && { param: PARAM[param] ?? param }) };
  return failureOfStatus(status, message, headers, better);
}

/**
 * Speech by OpenAI, and by every server with its `/audio/speech` (set `baseUrl`, `models` and `voices`). Accepts
 * 4,096 characters. `options.instructions` sets the manner of speaking, for models other than `tts-1`.
 */
export default definePlugin<object, 'tts'>({
  name: 'openai',
  kind: 'tts',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...SPEECH_OPTIONS } },
  check: checkApiKeys,
  setup(api, config) {
    const options = readSpeechOptions(config, {
      baseUrl: 'https://api.openai.com/v1',
      models: MODELS,
      voice: 'alloy',
      voices: VOICES,
    });
    api.offer('speech', {
      acceptsVoice: (id) => id.startsWith('voice_'),
      ...options,
      vendor: 'openai',
      formats: ['mp3', 'wav', 'opus', 'aac', 'flac', 'pcm'],
      maxCharacters: 4096,
      speed: { min: 0.25, max: 4 },
      codec,
      error: readError,
    });
  },
});
