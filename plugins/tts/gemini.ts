import { isEventStream } from '../../contract/event-reader.ts';
import {
  definePlugin,
  GatewayError,
  type ModelInfo,
  parseDuration,
  parseJson,
  type ResponseHeaders,
  readArray,
  readCount,
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
  convertPcm,
  decodeEventSound,
  decodeJsonSound,
  type EventSound,
  type JsonSound,
  PCM_RATE,
  pickSpeechOptions,
  readSpeechOptions,
  SPEECH_OPTIONS,
  type SpeechCodec,
  type SpeechTokens,
  type Voice,
} from './kit/index.ts';

/** https://ai.google.dev/gemini-api/docs/speech-generation; billed by tokens, 25 for a second of sound. */
const MODELS: readonly ModelInfo[] = Object.freeze([
  { id: 'gemini-3.8-flash-tts', kind: 'speech', price: { input: 0.5, output: 9 } },
  { id: 'gemini-3.8-flash-lite-tts', kind: 'speech', price: { input: 0.5, output: 6 } },
  { id: 'gemini-3.1-flash-tts-preview', kind: 'speech' },
  { id: 'gemini-2.5-flash-preview-tts', kind: 'speech', price: { input: 0.5, output: 10 } },
  { id: 'gemini-2.5-pro-preview-tts', kind: 'speech', price: { input: 1, output: 20 } },
]);

const VOICES: readonly Voice[] = Object.freeze(
  'Kore Zephyr Puck Charon Fenrir Leda Orus Aoede Callirrhoe Autonoe Enceladus Iapetus Umbriel Algieba Despina Erinome Algenib Rasalgethi Laomedeia Achernar Alnilam Schedar Gacrux Pulcherrima Achird Zubenelgenubi Vindemiatrix Sadachbia Sadaltager Sulafat'
    .split(' ')
    .map((id) => ({ id, name: id })),
);

const codec: SpeechCodec = {
  request({ text, voice, language, options }, { model, stream }) {
    const { instructions } = pickSpeechOptions(options, ['instructions']);
    const manner = typeof instructions === 'string' ? `${instructions.replace(/[\s:.]+$/, '')}: ` : '';
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    return {
      path: `/models/${encodeURIComponent(model)}:${method}`,
      body: {
        // System instructions are not supported, so the manner of speaking precedes the text.
        contents: [{ role: 'user', parts: [{ text: `${manner}${text}` }] }],
        generationConfig: {
          responseModalities: ['AUDIO'],
          speechConfig: {
            voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } },
            ...(language !== undefined && { languageCode: language }),
          },
        },
      },
    };
  },
  decode({ format }, headers): AudioDecoder {
    const events = isEventStream(headers);
    const samples = events ? decodeEventSound(readEvent, { atEnd: 'ending' }) : decodeJsonSound(readPart);
    return convertPcm(samples, PCM_RATE, format === 'pcm' ? 'pcm' : 'wav');
  },
};

/** Sound of a response or of a stream event: headerless samples. Throws if it was rejected or truncated. */
function readPart(body: unknown): JsonSound & EventSound {
  const { candidates, promptFeedback, usageMetadata, error } = readObject(body);
  if (error !== undefined) throw new StreamFailure(readError(readCount(readObject(error)['code']) ?? 500, body, {}));
  const [candidate] = readArray(candidates);
  const reason = readString(readObject(candidate)['finishReason']);
  const blocked =
    readString(readObject(promptFeedback)['blockReason']) ?? (REFUSALS.has(reason ?? '') ? reason : undefined);
  if (blocked !== undefined) {
    throw new StreamFailure({ class: 'content_filter', message: `The provider rejected the text (${blocked}).` });
  }
  if (reason !== undefined && reason !== 'STOP') {
    throw new StreamFailure({ class: 'upstream_error', message: `The audio ended early (${reason}).` });
  }
  const pieces = readArray(readObject(readObject(candidate)['content'])['parts']).map((part) => {
    const { mimeType, data } = readObject(readObject(part)['inlineData']);
    if (data !== undefined) assertRate(readString(mimeType) ?? '');
    return Buffer.from(readString(data) ?? '', 'base64');
  });
  const tokens = readTokens(usageMetadata);
  return { base64: Buffer.concat(pieces).toString('base64'), done: reason !== undefined, ...(tokens && { tokens }) };
}

const REFUSALS: ReadonlySet<string> = new Set(['SAFETY', 'PROHIBITED_CONTENT', 'BLOCKLIST', 'SPII', 'RECITATION']);

/** `audio/L16;codec=pcm;rate=24000`: sound of another rate would play at the wrong speed. */
function assertRate(mimeType: string): void {
  const rate = /rate=(\d+)/.exec(mimeType)?.[1];
  if (/^audio\/l16/i.test(mimeType) && (rate === undefined || Number(rate) === PCM_RATE)) return;
  throw new GatewayError('provider_invalid_response', 'The speech provider returned an unknown audio format.');
}

function readTokens(usageMetadata: unknown): SpeechTokens | undefined {
  const input = readCount(readObject(usageMetadata)['promptTokenCount']);
  const output = readCount(readObject(usageMetadata)['candidatesTokenCount']);
  return input === undefined || output === undefined ? undefined : { input, output };
}

function readEvent({ data }: SseEvent): EventSound {
  return readPart(parseJson(data));
}

/** Google's RPC errors; an invalid key is a 400, distinguished by its details. */
function readError(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const { message, status: code, details } = readObject(readObject(body)['error']);
  const rows = readArray(details).map(readObject);
  const delay = readString(rows.find(({ retryDelay }) => retryDelay !== undefined)?.['retryDelay']);
  const badKey = rows.some(({ reason }) => reason === 'API_KEY_INVALID');
  const known: Partial<UpstreamFailure> = {
    ...(badKey && { class: 'authentication' }),
    ...(code === 'RESOURCE_EXHAUSTED' && { class: 'rate_limit' }),
    ...(code === 'UNAVAILABLE' && { class: 'overloaded' }),
    ...(delay !== undefined && /^\d+(\.\d+)?s$/.test(delay) && { retryAfterMs: parseDuration(delay) }),
  };
  return failureOfStatus(status, readString(message) ?? '', headers, known);
}

/** Speech by Gemini's speech models. `options.instructions` sets the manner of speaking; speed is not supported. */
export default definePlugin<object, 'tts'>({
  name: 'gemini',
  kind: 'tts',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...SPEECH_OPTIONS } },
  check: checkApiKeys,
  setup(api, config) {
    api.offer('speech', {
      ...readSpeechOptions(config, {
        baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
        credential: { header: 'x-goog-api-key' },
        models: MODELS,
        voice: 'Kore',
        voices: VOICES,
      }),
      vendor: 'gemini',
      formats: ['wav', 'pcm'],
      // Fits into the model's 8,192 tokens of text and 16,384 of sound in every language.
      maxCharacters: 4000,
      speed: { min: 1, max: 1 },
      codec,
      error: readError,
    });
  },
});
