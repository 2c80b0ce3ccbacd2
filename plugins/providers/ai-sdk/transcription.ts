import { type JsonObject, readArray, readObject, readString } from '../../../contract/index.ts';
import type { TranscriptionOffer } from '../../formats/kit/index.ts';
import { transcriptionCodec } from '../../formats/openai-operations.ts';
import { type Job, readTokens, respondWith, runModel, setNames } from './job.ts';
import { MARK, plainSettings } from './losses.ts';
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
export const transcribe: Job = async (own, body, { signal: abortSignal, providerOptions, findLosses }) => {
  // A complete text becomes the events of a stream.
  const { model: id, task, audio, mediaType, response_format: format, stream: _, ...others } = body;
  const { timestamp_granularities: wanted, ...rest } = others;
  if (task === 'translate') throw new NotTaken('The AI SDK has no `audio/translations`. Use another model.');
  if (format === 'diarized_json') throw new NotTaken('The AI SDK has no speakers. Use another `response_format`.');
  const name = readString(id) ?? '';
  const model = own.model('transcription', name);
  const takesTimes = model.specificationVersion === 'v4';
  const times = readArray(wanted).length > 0 || !TIMED.includes(format) ? readArray(wanted) : ['segment'];
  const given = takesTimes && times.length > 0 ? { timestampGranularities: times } : {};
  const options = { audio, mediaType, abortSignal, providerOptions, ...given };
  const run = (all: JsonObject): PromiseLike<unknown> => runModel(model, 'doGenerate', all);
  const settings = readArray(wanted).length > 0 ? plainSettings(options, TIMES) : [];
  const sample = { audio: new Uint8Array(Buffer.from(MARK)) };
  const examined = { of: `transcription ${name}`, options, run, sample, settings };
  const { fields: lost = [] } = (await findLosses?.(examined)) ?? {};
  const result = readObject(await run(options));
  const missing = setNames(takesTimes ? rest : others);
  return respondWith(readTranscript(result), [...missing, ...lost], result['warnings']);
};

const TIMES = Object.freeze({ timestampGranularities: 'timestamp_granularities' });

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
