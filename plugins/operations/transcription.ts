import { readFile } from 'node:fs/promises';
import { isEventStream } from '../../contract/event-reader.ts';
import {
  type Attempt,
  definePlugin,
  isObject,
  type JsonObject,
  type OperationRoute,
  type OperationUsage,
  type ReportedUsage,
  readArray,
  readObject,
  readString,
  type Schema,
  StreamFailure,
  type UploadedFile,
} from '../../contract/index.ts';
import { invalid, type TranscriptionRequest, type TranscriptionResponse } from '../formats/kit/index.ts';
import { readEvents, readWhole } from './kit/event-stream.ts';

/** OpenAI's limit, also used by other vendors. */
const MAX_FILE_BYTES = 25 * 1024 * 1024;

const FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const;

const COMMON = Object.freeze({
  model: { type: 'string', minLength: 1, maxLength: 256 },
  language: { type: 'string', maxLength: 64 },
  prompt: { type: 'string', maxLength: 65_536 },
  chunking_strategy: { type: 'string', maxLength: 1024 },
});

const REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:TranscriptionRequest',
  type: 'object',
  required: ['model', 'task', 'file'],
  properties: {
    ...COMMON,
    task: { enum: ['transcribe', 'translate'] },
    file: { type: 'object', required: ['path', 'name', 'contentType', 'bytes'] },
    response_format: { enum: FORMATS },
    temperature: { type: 'number', minimum: 0, maximum: 1 },
    timestamp_granularities: { type: 'array', maxItems: 2, items: { enum: ['word', 'segment'] } },
    include: { type: 'array', maxItems: 8, items: { type: 'string', maxLength: 64 } },
    stream: { type: 'boolean' },
  },
});

const several = { type: ['string', 'array'], maxItems: 8, items: { type: 'string', maxLength: 64 }, maxLength: 64 };

/** Text fields of the form; `file` is a file. */
const FORM: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:TranscriptionForm',
  examples: [{ model: 'openai/gpt-4o-transcribe', language: 'en', prompt: 'A call' }],
  type: 'object',
  required: ['model'],
  properties: {
    ...COMMON,
    response_format: { enum: FORMATS },
    temperature: { type: 'string', pattern: '^(?:0?\\.\\d{1,6}|[01](?:\\.0{0,6})?)$', description: '0 to 1.' },
    'timestamp_granularities[]': several,
    timestamp_granularities: several,
    'include[]': several,
    include: several,
    stream: { enum: ['true', 'false'] },
  },
});

const RESPONSE: Schema = {
  examples: [{ text: 'People were swimming.' }],
  type: 'object',
  required: ['text'],
  properties: { text: { type: 'string' }, usage: { type: 'object' } },
};

/** Speech to text, in the spoken language or in English, in OpenAI's shape. */
export default definePlugin({
  name: 'transcription',
  kind: 'operation',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    api.operation({
      name: 'transcription',
      request: REQUEST,
      texts: { response: ['text', 'json'] },
      maxUsage: ({ file }) => maxUsage(longest(file)),
      attempt: transcribe,
      isResponse: (value): value is TranscriptionResponse =>
        isObject(value) &&
        (typeof value['text'] === 'string' || isObject(value['json']) || isIterable(value['events'])),
      routes: [routeOf('transcriptions', 'transcribe'), routeOf('translations', 'translate')],
    });
  },
});

function routeOf(path: string, task: TranscriptionRequest['task']): OperationRoute<'transcription'> {
  return {
    path: `audio/${path}`,
    summary: task === 'translate' ? 'Speech as English text' : 'Speech as text',
    description:
      'Accepts a form with `file` (at most 25 MB). Returns text for `text`, `srt` and `vtt`, JSON for other formats, and events with `stream`.',
    body: FORM,
    files: { file: { maxBytes: MAX_FILE_BYTES } },
    response: { description: 'The text.', schema: RESPONSE },
    read: (form) => readForm(form, task),
    // Hooks that check a transcription receive it whole.
    events: ({ events, json }) => events ?? (json && eventsOf(json)),
    write: ({ text, json }) => text ?? json,
  };
}

function readForm(form: TranscriptionRequest, task: TranscriptionRequest['task']): TranscriptionRequest {
  const { timestamp_granularities: granularities = [], include = [] } = form;
  if (granularities.some((each) => each !== 'word' && each !== 'segment'))
    throw invalid('timestamp_granularities', 'must be `word`, `segment` or both');
  return { ...form, task, timestamp_granularities: granularities, include };
}

function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

async function transcribe(attempt: Attempt<'transcription'>): Promise<TranscriptionResponse> {
  const { request, offer, codecCall, isChecked, whileStreaming } = attempt;
  const { file, response_format: format = 'json', stream } = request;
  const isWhole = stream !== true || isChecked;
  const performed = isWhole && stream === true ? { ...request, stream: false } : request;
  const sent = offer.codec.request(performed, await readFile(file.path), codecCall);
  const bill = (body: JsonObject): void => attempt.bill(readUsage(body));
  if (isWhole) {
    const body = offer.codec.response(await attempt.sendForJson(sent));
    bill(body);
    return stream === true ? { json: body } : inFormat(body, format, request);
  }
  const response = await attempt.send(sent);
  // Models without streaming, such as whisper, return the complete transcription.
  if (!isEventStream(response.headers)) {
    const body = offer.codec.response(await readWhole(response));
    bill(body);
    return { events: whileStreaming(eventsOf(body), () => {}) };
  }
  let last: JsonObject = {};
  const watched = async function* (): AsyncGenerator<JsonObject> {
    for await (const given of readEvents(response)) {
      const event = offer.codec.event ? offer.codec.event(given) : given;
      if (event?.['type'] === 'transcript.text.done') last = event;
      if (last['type'] !== undefined) response.reportProgress?.('complete');
      if (event) yield event;
      if (last['type'] !== undefined) break;
    }
    if (last['type'] === undefined) throw wrong('ended without its last event');
  };
  return { events: whileStreaming(watched(), () => bill(last)) };
}

/** Yields a complete transcription as stream events. */
async function* eventsOf(body: JsonObject): AsyncGenerator<JsonObject> {
  const text = readString(body['text']) ?? '';
  const usage = isObject(body['usage']) ? { usage: body['usage'] } : {};
  yield { type: 'transcript.text.delta', delta: text };
  yield { type: 'transcript.text.done', text, ...usage };
}

/** Converts the vendor's JSON to the format that the caller requested. */
function inFormat(
  body: JsonObject,
  format: NonNullable<TranscriptionRequest['response_format']>,
  { model, language }: TranscriptionRequest,
): TranscriptionResponse {
  const text = readString(body['text']) ?? '';
  if (format === 'text') return { text: `${text}\n` };
  if (format === 'srt' || format === 'vtt') return { text: subtitles(body, format) };
  if (format !== 'json') return { json: body };
  const { usage, logprobs, languages } = body;
  return {
    // Mistral's clients require the model and the language, which OpenAI's response lacks.
    json: {
      text,
      model,
      language: readString(body['language']) ?? language ?? null,
      ...(logprobs !== undefined && { logprobs }),
      ...(languages !== undefined && { languages }),
      ...(usage !== undefined && { usage }),
    },
  };
}

/** Sources: https://www.w3.org/TR/webvtt1/, and SubRip as whisper writes it. */
function subtitles(body: JsonObject, format: 'srt' | 'vtt'): string {
  const rows = readArray(body['segments']).map((segment, at) => {
    const { start, end, text } = readObject(segment);
    if (typeof start !== 'number' || typeof end !== 'number' || typeof text !== 'string')
      throw wrong('returned a segment without times');
    const times = `${timeOf(start, format)} --> ${timeOf(end, format)}`;
    return `${format === 'srt' ? `${at + 1}\n` : ''}${times}\n${text.trim().replaceAll('-->', '->')}\n\n`;
  });
  if (rows.length === 0 && readString(body['text'])) throw wrong('returned no times, which subtitles need');
  return `${format === 'vtt' ? 'WEBVTT\n\n' : ''}${rows.join('')}`;
}

function timeOf(seconds: number, format: 'srt' | 'vtt'): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const two = (value: number): string => String(value).padStart(2, '0');
  const clock = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60]
    .map(two)
    .join(':');
  return `${clock}${format === 'srt' ? ',' : '.'}${String(ms % 1000).padStart(3, '0')}`;
}

function wrong(problem: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: `The provider ${problem}.` });
}

/** Unit of models that are charged by time. */
const SECONDS = 'seconds';

/** Minimum number of bytes per second of speech: Opus for telephony, and uncompressed audio. */
const BYTES_PER_SECOND = 2000;
const WAV_BYTES_PER_SECOND = 8000;

/** OpenAI's tokens per second of audio, and approximate tokens of its text. */
const TOKENS_PER_SECOND = 10;
const WORD_TOKENS_PER_SECOND = 5;

/** Maximum duration of a file in seconds. */
function longest({ bytes, contentType, name }: Pick<UploadedFile, 'bytes' | 'contentType' | 'name'>): number {
  const isWav = /wav/i.test(contentType) || /\.wav$/i.test(name);
  return Math.ceil(bytes / (isWav ? WAV_BYTES_PER_SECOND : BYTES_PER_SECOND));
}

/** Most that so many seconds of speech may use. */
function maxUsage(seconds: number): OperationUsage {
  const read = seconds * TOKENS_PER_SECOND;
  return {
    prompt_tokens: read,
    completion_tokens: seconds * WORD_TOKENS_PER_SECOND,
    prompt_tokens_details: { audio_tokens: read },
    units: { [SECONDS]: seconds },
  };
}

/** Longer than any file: a vendor's mistake. */
const MAX_SECONDS = 1_000_000;

function readUsage({ usage, duration }: JsonObject): ReportedUsage {
  const reported = readObject(usage);
  const input = reported['input_tokens'] ?? reported['prompt_tokens'];
  const output = reported['output_tokens'] ?? reported['completion_tokens'] ?? 0;
  const details = readObject(reported['input_token_details'] ?? reported['prompt_tokens_details']);
  const seconds = [reported['seconds'], reported['prompt_audio_seconds'], duration]
    .map(Number)
    .find((each) => each > 0 && each < MAX_SECONDS);
  return {
    // Speech has input, so a count of 0 is invalid.
    prompt_tokens: input === 0 ? undefined : input,
    completion_tokens: output,
    prompt_tokens_details: { audio_tokens: details['audio_tokens'] ?? input },
    units: { [SECONDS]: seconds === undefined ? undefined : Math.ceil(seconds) },
    cost: reported['cost'],
  };
}
