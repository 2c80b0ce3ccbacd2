import { type JsonObject, readArray, readObject, readString } from '../../../contract/index.ts';
import type { TranscriptionOffer } from '../../formats/kit/index.ts';
import { transcriptionCodec } from '../../formats/openai-operations.ts';
import { type Job, readTokens, respondWith, runModel, setNames } from './job.ts';
import { NotTaken } from './write-options.ts';

export const TRANSCRIPTION: TranscriptionOffer['codec'] = {
  ...transcriptionCodec({}),
  request: ({ file, ...input }, audio, { model }) => ({
    path: '/transcription',
    body: { ...input, model, audio, mediaType: file.contentType },
  }),
};

/** Formats with times. */
const TIMED: readonly unknown[] = Object.freeze(['srt', 'vtt', 'verbose_json']);

/**
 * Transcribes speech. Source: https://github.com/vercel/ai/tree/main/packages/provider/src/transcription-model
 */
export const transcribe: Job = async (own, body, { signal: abortSignal, providerOptions }) => {
  // A complete text becomes the events of a stream.
  const { model: id, task, audio, mediaType, response_format: format, stream: _, ...others } = body;
  const { timestamp_granularities: wanted, ...rest } = others;
  if (task === 'translate') throw new NotTaken('The AI SDK has no `audio/translations`. Use another model.');
  if (format === 'diarized_json') throw new NotTaken('The AI SDK has no speakers. Use another `response_format`.');
  const model = own.model('transcription', readString(id) ?? '');
  const takesTimes = model.specificationVersion === 'v4';
  const times = readArray(wanted).length > 0 || !TIMED.includes(format) ? readArray(wanted) : ['segment'];
  const given = takesTimes && times.length > 0 ? { timestampGranularities: times } : {};
  const options = { audio, mediaType, abortSignal, providerOptions, ...given };
  const result = readObject(await runModel(model, 'doGenerate', options));
  const missing = setNames(takesTimes ? rest : others);
  return respondWith(readTranscript(result), missing, result['warnings']);
};

function readTranscript(result: JsonObject): JsonObject {
  const { text, language, durationInSeconds: duration, usage } = result;
  const hasDuration = typeof duration === 'number' && duration > 0;
  const words = readArray(result['words']).map(readObject);
  return {
    task: 'transcribe',
    text,
    ...(typeof language === 'string' && { language }),
    ...(hasDuration && { duration, usage: { type: 'duration', seconds: Math.ceil(duration) } }),
    ...usageOf(usage),
    segments: readArray(result['segments'])
      .map(readObject)
      .map((each, index) => ({ id: index, start: each['startSecond'], end: each['endSecond'], text: each['text'] })),
    ...(words.length > 0 && {
      words: words.map((each) => ({ word: each['text'], start: each['startSecond'], end: each['endSecond'] })),
    }),
  };
}

/** Tokens of the vendor, or its usage as it is if it has OpenAI's form. */
function usageOf(usage: unknown): { readonly usage?: JsonObject } {
  const given = readObject(usage);
  if (given['type'] !== undefined) return { usage: given };
  const tokens = readTokens(usage);
  if (!tokens) return {};
  const { input, output } = tokens;
  return { usage: { type: 'tokens', input_tokens: input, output_tokens: output, total_tokens: input + output } };
}
