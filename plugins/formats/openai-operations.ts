import {
  type ApiOfKind,
  GatewayError,
  isObject,
  type JsonObject,
  type Offer,
  type ProviderEffects,
  readArray,
  readCount,
  readObject,
  readString,
  StreamFailure,
} from '../../contract/index.ts';
import {
  type BatchOffer,
  type FormFile,
  type ImageOffer,
  type JsonCodec,
  type ModerationRequest,
  type ModerationResponse,
  multipartBody,
  type RealtimeOffer,
  type RerankRequest,
  type RerankResponse,
  readCost,
  type TranscriptionOffer,
  type TranscriptionRequest,
} from './kit/index.ts';
import { classifyError } from './openai-chat/errors.ts';
import { failureIn, readResponse, reportedCostOf } from './openai-chat/response.ts';
import type { Differences } from './openai-chat/types.ts';
import { createResponsesCodec } from './openai-responses/read-stream.ts';

/** Vendor differences that these codecs use. */
type Vendor = Pick<
  Differences,
  'path' | 'errors' | 'usageCost' | 'without' | 'images' | 'rerankTexts' | 'transcription'
>;

function pathOf({ path, without }: Vendor, operation: string, model: string): string {
  if (without?.some((each) => each === operation))
    throw new GatewayError(
      'unsupported_model',
      `The provider of this model does not support \`${operation}\`. Use another model.`,
      {
        param: 'model',
      },
    );
  return path?.(operation, model) ?? `/${operation}`;
}

/** Registers the operations that the vendor supports. */
export function offerOperations(api: Pick<ApiOfKind['provider'], 'offer'>, endpoint: Offer, vendor: Differences): void {
  const { operations = [] } = vendor;
  if (operations.includes('batches')) api.offer('batches', batchOffer(endpoint, vendor));
  if (operations.includes('images')) api.offer('images', { ...endpoint, codec: imagesCodec(vendor) });
  if (operations.includes('moderations')) api.offer('moderations', { ...endpoint, codec: moderationsCodec(vendor) });
  if (operations.includes('realtime')) api.offer('realtime', realtimeOffer(endpoint));
  if (operations.includes('rerank')) api.offer('rerank', { ...endpoint, codec: rerankCodec(vendor) });
  if (operations.includes('transcription'))
    api.offer('transcription', { ...endpoint, codec: transcriptionCodec(vendor) });
}

/**
 * Effects at the vendor of fields of a session, a response and a new item. Source:
 * https://platform.openai.com/docs/api-reference/realtime-client-events,
 * https://platform.openai.com/docs/guides/realtime-mcp
 */
const REALTIME_EFFECTS: ProviderEffects = Object.freeze({
  audio: [{ does: 'model', at: 'input.transcription.model', note: 'transcribes speech' }],
  item: [{ does: 'tool', at: 'type', values: /^mcp_/, name: 'mcp' }],
  prompt: [{ does: 'stores', note: 'a prompt of the operator’s account' }],
  tools: [{ does: 'tool', at: '[].type', values: /^(?!function$)/ }],
  tracing: [{ does: 'stores', note: 'traces in the operator’s account' }],
});

function realtimeOffer(endpoint: Offer): RealtimeOffer {
  // A session uses one key.
  const { keys: _, passThroughAuth: __, ...one } = endpoint;
  return {
    ...one,
    effects: REALTIME_EFFECTS,
    path: (model) => `/realtime?model=${encodeURIComponent(model)}`,
  };
}

/** Batches cost half: https://platform.openai.com/docs/guides/batch */
const BATCH_FACTOR = 0.5;

function batchOffer(endpoint: Offer, vendor: Differences): BatchOffer {
  const responses = createResponsesCodec((body) => classifyError(200, body, {}, vendor.errors), vendor.usageCost);
  // A batch uses one key: another key may belong to another project. The effects of its requests were checked one by
  // one.
  const { keys: _, passThroughAuth: __, effects: ___, ...one } = endpoint;
  const [, query] = pathOf(vendor, 'batches', '').split('?');
  const chat = '/chat/completions';
  return {
    ...one,
    wire: 'openai',
    factor: BATCH_FACTOR,
    query,
    paths: query === undefined ? { chat, responses: '/responses' } : { chat },
    response: (dialect, body, call) =>
      dialect === 'chat' ? readResponse(body, call, vendor) : responses.response(body, call),
  };
}

/** Splits a request into the fields to send and the names of dropped fields. */
function sentOf(
  input: JsonObject,
  taken: readonly string[],
): { readonly body: JsonObject; readonly dropped: readonly string[] } {
  const set = Object.entries(input).filter(([, value]) => value !== undefined && value !== null);
  return {
    body: Object.fromEntries(set.filter(([name]) => taken.includes(name))),
    dropped: set.flatMap(([name]) => (taken.includes(name) || name === 'model' ? [] : [name])),
  };
}

/** Returns the vendor's body with the vendor's cost as `usage.cost`. Throws unless it is an object without an error. */
function bodyOf(body: unknown, vendor: Vendor, list: string): JsonObject {
  const failure = failureIn(body, vendor.errors);
  if (failure) throw new StreamFailure(failure);
  // Text Embeddings Inference and servers like it return the list alone.
  const response = Array.isArray(body) ? { [list]: body } : body;
  if (!isObject(response) || !Array.isArray(response[list])) throw wrong(`returned a response without \`${list}\``);
  return withCost(response, vendor);
}

function withCost(body: JsonObject, vendor: Vendor): JsonObject {
  const { usage } = body;
  const cost = isObject(usage) ? reportedCostOf(usage, vendor) : undefined;
  return isObject(usage) && cost !== undefined ? { ...body, usage: { ...usage, cost } } : body;
}

function wrong(problem: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: `The provider ${problem}.` });
}

/** Sources: https://platform.openai.com/docs/api-reference/moderations, https://docs.mistral.ai/api/endpoint/classifiers */
export function moderationsCodec(vendor: Vendor): JsonCodec<ModerationRequest, ModerationResponse> {
  return {
    request(input, { model }) {
      const { body, dropped } = sentOf(input, ['input']);
      return {
        path: pathOf(vendor, 'moderations', model),
        body: { model, ...body },
        ...(dropped.length > 0 && { dropped }),
      };
    },
    response(value, _input, call) {
      const body = bodyOf(value, vendor, 'results');
      const results = readArray(body['results']).map((row) => {
        const { flagged, categories, category_scores: scores, ...rest } = readObject(row);
        if (!isObject(categories) || !isObject(scores)) throw wrong('returned a result without categories');
        const own = categories as Readonly<Record<string, boolean>>;
        // Mistral does not return `flagged`.
        const isFlagged = typeof flagged === 'boolean' ? flagged : Object.values(own).includes(true);
        return {
          flagged: isFlagged,
          categories: own,
          category_scores: scores as Readonly<Record<string, number>>,
          ...rest,
        };
      });
      return {
        id: readString(body['id']) ?? `modr-${call.id}`,
        model: readString(body['model']) ?? call.model,
        results,
        ...(isObject(body['usage']) && { usage: body['usage'] }),
      };
    },
  };
}

const RERANK_FIELDS = Object.freeze(['query', 'documents', 'top_n', 'max_tokens_per_doc', 'priority', 'truncation']);

function textOf(document: unknown): string {
  return typeof document === 'string'
    ? document
    : (readString(readObject(document)['text']) ?? JSON.stringify(document));
}

/** An object that has only a text is that text, which every vendor accepts. */
function bareText(document: RerankRequest['documents'][number]): unknown {
  const { text, ...rest } = readObject(document);
  return typeof text === 'string' && Object.keys(rest).length === 0 ? text : document;
}

/** Sources: https://docs.cohere.com/reference/rerank, https://jina.ai/reranker, https://docs.vllm.ai (`/rerank`) */
export function rerankCodec(vendor: Vendor): JsonCodec<RerankRequest, RerankResponse> {
  return {
    request(input, { model }) {
      // The gateway has the documents, so the vendor need not return them.
      const { return_documents: _, ...wanted } = input;
      const { body, dropped } = sentOf(wanted, RERANK_FIELDS);
      return {
        path: pathOf(vendor, 'rerank', model),
        body: { model, ...body, documents: input.documents.map(vendor.rerankTexts ? textOf : bareText) },
        ...(dropped.length > 0 && { dropped }),
      };
    },
    response(value, input, call) {
      const body = bodyOf(value, vendor, 'results');
      const seen = new Set<number>();
      const results = readArray(body['results']).map((row) => {
        const { index, relevance_score: relevance, score = relevance } = readObject(row);
        const document = typeof index === 'number' ? input.documents[index] : undefined;
        if (typeof index !== 'number' || document === undefined || seen.has(index) || typeof score !== 'number')
          throw wrong('returned a result for a document that is not in the request');
        seen.add(index);
        return {
          index,
          relevance_score: score,
          ...(input.return_documents && { document: typeof document === 'string' ? { text: document } : document }),
        };
      });
      // Clients take the first results.
      results.sort((a, b) => b.relevance_score - a.relevance_score);
      const usage = readObject(body['usage']);
      const units = readObject(readObject(body['meta'])['billed_units']);
      const tokens =
        readCount(usage['total_tokens']) ?? readCount(usage['prompt_tokens']) ?? readCount(units['input_tokens']);
      const searches = readCount(units['search_units']);
      const cost = readCost(usage);
      return {
        id: readString(body['id']) ?? `rerank-${call.id}`,
        model: readString(body['model']) ?? call.model,
        results,
        ...((tokens ?? cost) !== undefined && {
          usage: { ...(tokens !== undefined && { total_tokens: tokens }), ...(cost !== undefined && { cost }) },
        }),
        ...(searches !== undefined && { meta: { billed_units: { search_units: searches } } }),
      };
    },
  };
}

/** Models that return timestamps, and with them the duration. Other models reject the format. */
const TIMED = /whisper/i;

const SOUND_FIELDS = Object.freeze(['language', 'prompt', 'temperature', 'chunking_strategy']);

type TextField = readonly [name: string, value: string];

/** Form fields as texts. */
function textFields(body: JsonObject): readonly TextField[] {
  return Object.entries(body).map(([name, value]) => [name, String(value)]);
}

/** Returns true for formats with timestamps; subtitles need them. */
const hasTimes = ({ response_format: format }: TranscriptionRequest): boolean =>
  format === 'verbose_json' || format === 'srt' || format === 'vtt';

function soundFields(input: TranscriptionRequest, taken: readonly string[], model: string) {
  const { task: _, file: __, response_format: format, timestamp_granularities, include = [], stream, ...rest } = input;
  const { body, dropped } = sentOf(rest, taken);
  const isTimed = hasTimes(input) || TIMED.test(model);
  const fields: readonly TextField[] = [
    ...textFields(body),
    ['response_format', format === 'diarized_json' ? format : isTimed ? 'verbose_json' : 'json'],
    ...(isTimed ? (timestamp_granularities ?? []) : []).map((each) => ['timestamp_granularities[]', each] as const),
    ...include.map((each) => ['include[]', each] as const),
  ];
  return { fields, dropped };
}

/** Reads the options for vendors without response formats. */
function plainSound(input: TranscriptionRequest, taken: readonly string[]) {
  const { task: _, file: __, response_format: format, timestamp_granularities, stream, ...rest } = input;
  if (format === 'diarized_json')
    throw new GatewayError(
      'invalid_request',
      'The provider of this model does not support `diarized_json`. Use another format.',
      {
        param: 'response_format',
      },
    );
  const { include = [], ...others } = rest;
  const { body, dropped } = sentOf(others, taken);
  const granularities = timestamp_granularities?.length ? timestamp_granularities : ['segment'];
  return {
    fields: [
      ...textFields(body),
      ...(hasTimes(input) ? granularities : []).map((each) => ['timestamp_granularities', each] as const),
    ],
    dropped: include.length > 0 ? [...dropped, 'include'] : dropped,
  };
}

/** Sources: https://platform.openai.com/docs/api-reference/audio, https://console.groq.com/docs/speech-to-text, https://docs.mistral.ai/capabilities/audio */
export function transcriptionCodec(vendor: Vendor): TranscriptionOffer['codec'] {
  const { fields: taken = SOUND_FIELDS, formats, streams, leastSeconds, event } = vendor.transcription ?? {};
  return {
    ...(event && { event }),
    request(input, bytes, call) {
      const { task, file, stream } = input;
      const { fields, dropped } = (formats === false ? plainSound : soundFields)(input, taken, call.model);
      const { name, contentType } = file;
      const operation = task === 'translate' ? 'audio/translations' : 'audio/transcriptions';
      const all = [
        ['model', call.model] as const,
        ...fields,
        ...(stream === true && streams !== false ? [['stream', 'true'] as const] : []),
      ];
      return {
        path: pathOf(vendor, operation, call.model),
        ...multipartBody(all, [{ field: 'file', name, contentType, bytes }], call.id),
        ...(dropped.length > 0 && { dropped }),
      };
    },
    response(value) {
      const failure = failureIn(value, vendor.errors);
      if (failure) throw new StreamFailure(failure);
      if (!isObject(value) || typeof value['text'] !== 'string') throw wrong('returned a response without `text`');
      const { duration, usage } = value;
      if (leastSeconds === undefined || typeof duration !== 'number' || usage !== undefined)
        return withCost(value, vendor);
      return { ...value, usage: { type: 'duration', seconds: Math.max(leastSeconds, Math.ceil(duration)) } };
    },
  };
}

const IMAGE_FIELDS = Object.freeze([
  ...['prompt', 'n', 'size', 'quality', 'background', 'output_format', 'output_compression', 'moderation', 'style'],
  ...['response_format', 'partial_images', 'stream', 'user', 'input_fidelity'],
]);

/**
 * OpenAI's GPT image models reject fields of DALL·E, and always return base64.
 * Source: https://platform.openai.com/docs/api-reference/images/create
 */
function fieldsOfImage(model: string, { quality }: JsonObject): readonly string[] {
  if (!/(?:^|\/)(?:gpt-image|chatgpt-image)/.test(model)) return IMAGE_FIELDS;
  const rejected = ['style', 'response_format', ...(quality === 'hd' || quality === 'standard' ? ['quality'] : [])];
  return IMAGE_FIELDS.filter((name) => !rejected.includes(name));
}

/** Images to edit as data URLs. Source: https://docs.x.ai/developers/model-capabilities/images/editing */
function jsonImages(files: readonly FormFile[], mask: unknown): JsonObject {
  if (mask !== undefined)
    throw new GatewayError('invalid_request', 'The provider of this model does not support `mask`. Remove it.', {
      param: 'mask',
    });
  const [image, ...more] = files.map(({ contentType, bytes }) => ({
    type: 'image_url',
    url: `data:${contentType};base64,${Buffer.from(bytes).toString('base64')}`,
  }));
  return more.length === 0 ? { image } : { images: [image, ...more] };
}

/** Source: https://platform.openai.com/docs/api-reference/images */
export function imagesCodec(vendor: Vendor): ImageOffer['codec'] {
  return {
    request({ images, mask, ...input }, files, call) {
      const taken = sentOf(input, fieldsOfImage(call.model, input));
      const { body, dropped } = vendor.images?.write?.(taken.body) ?? { body: taken.body, dropped: [] };
      const left = [...taken.dropped, ...dropped];
      const reported = left.length > 0 && { dropped: left };
      if (!images) {
        const path = pathOf(vendor, 'images/generations', call.model);
        return { path, body: { model: call.model, ...body }, ...reported };
      }
      const path = pathOf(vendor, 'images/edits', call.model);
      const sent = { model: call.model, ...body };
      if (vendor.images?.edits === 'json') return { path, body: { ...sent, ...jsonImages(files, mask) }, ...reported };
      return { path, ...multipartBody(textFields(sent), files, call.id), ...reported };
    },
    response(value, { created }) {
      const body = bodyOf(value, vendor, 'data');
      const data = readArray(body['data']);
      if (data.length === 0 || !data.every((each) => isObject(each) && (each['b64_json'] ?? each['url'])))
        throw wrong('returned no image');
      return { ...body, created: readCount(body['created']) ?? created };
    },
  };
}
