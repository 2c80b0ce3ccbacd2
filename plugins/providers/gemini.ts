import {
  type CodecCall,
  definePlugin,
  estimateTextTokens,
  type FieldTable,
  type HttpRequest,
  type JsonObject,
  type ModelInfo,
  type NativeBody,
  type Offer,
  readArray,
  readCount,
  readObject,
  readString,
  StreamFailure,
} from '../../contract/index.ts';
import { geminiFailure } from '../formats/google/errors.ts';
import { geminiResponse } from '../formats/google/read-response.ts';
import { geminiStream } from '../formats/google/read-stream.ts';
import { GEMINI_EFFECTS, GEMINI_FIELDS, GEMINI_FIELDS_WITH_CACHE, GEMINI_LENIENCY } from '../formats/google/tables.ts';
import { geminiRequest, modelPath, nativeRow } from '../formats/google/write-request.ts';
import {
  applyFieldRules,
  checkApiKeys,
  type EmbeddingRequest,
  type EmbeddingResponse,
  floatsToBase64,
  invalid,
  lenientChat,
  listedModel,
  nativeRows,
  PROVIDER_OPTIONS,
  type ProviderConfig,
  readProviderOptions,
  readTurnOrder,
  SYSTEM_ORDER_OPTION,
  toUnitLength,
} from './kit/index.ts';

/** Typed as `object`: its type is `ProviderConfig`, so none needs to be inferred from the schema. */
const CONFIG_SCHEMA: object = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...PROVIDER_OPTIONS,
    ...SYSTEM_ORDER_OPTION,
    store: {
      type: 'boolean',
      description:
        'Lets callers choose with `store` whether Google stores requests and responses. Default: off, the gateway sends `store: false`.',
    },
    cachedContent: {
      type: 'boolean',
      description:
        'Lets callers name cached contents (`cached_content`) and files of this account, which all callers share.',
    },
  },
};

interface GeminiConfig extends ProviderConfig {
  readonly cachedContent?: boolean;
  readonly store?: boolean;
}

/** Projects store requests unless each request disables it: https://ai.google.dev/gemini-api/docs/logs-datasets */
function keepNothing(body: JsonObject): NativeBody {
  return { body: { ...body, store: false }, ...(body['store'] === true && { dropped: ['store'] }) };
}

/** Batches cost half: https://ai.google.dev/gemini-api/docs/batch-api */
const BATCH_FACTOR = 0.5;

/** Google Gemini in its native format. Source: https://ai.google.dev/api */
export default definePlugin({
  name: 'gemini',
  kind: 'provider',
  apiVersion: 1,
  configSchema: CONFIG_SCHEMA,
  check: checkApiKeys,
  setup(api, config) {
    const own = config as GeminiConfig;
    const mayStore = own.store === true;
    const table = own.cachedContent === true ? GEMINI_FIELDS_WITH_CACHE : GEMINI_FIELDS;
    const fields = mayStore ? { ...table, fields: { ...table.fields, store: { rule: 'passed' } as const } } : table;
    const endpoint: Offer = {
      specVersion: 1,
      vendor: 'gemini',
      ...readProviderOptions(own, {
        baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
        credential: { header: 'x-goog-api-key' },
        apiKeyEnv: 'GEMINI_API_KEY',
      }),
      error: geminiFailure,
    };
    const native = nativeRows(own, (model, stream) =>
      nativeRow(model, stream, { references: own.cachedContent === true, ...(!mayStore && { body: keepNothing }) }),
    );
    api.provider({
      ...endpoint,
      // https://ai.google.dev/gemini-api/docs/priority-inference
      tierHeader: 'x-gemini-service-tier',
      chat: lenientChat(
        {
          request(input, call) {
            const written = geminiRequest(input, call, fields);
            const store = readObject(input)['store'];
            if (mayStore)
              return typeof store === 'boolean' ? { ...written, body: { ...written.body, store } } : written;
            const dropped = [...(written.dropped ?? []), ...(store === true ? ['store'] : [])];
            return {
              ...written,
              body: { ...written.body, store: false },
              ...(dropped.length > 0 && { dropped }),
            };
          },
          response: geminiResponse,
          stream: geminiStream,
        },
        { ...GEMINI_LENIENCY, turnOrder: readTurnOrder(own.turnOrder), systemApart: true },
      ),
      fields,
      effects: mayStore ? { ...GEMINI_EFFECTS, store: [] } : GEMINI_EFFECTS,
      ...(native && { native }),
      listModels: { request: listRequest, response: listedModels },
    });
    // A batch uses one key, the operator's. The effects of its requests were checked one by one.
    const { keys: _, ...one } = endpoint;
    if (native)
      api.offer('batches', {
        ...one,
        wire: 'gemini',
        factor: BATCH_FACTOR,
        paths: { gemini: ':generateContent' },
        response: (_dialect, body, call) => geminiResponse(body, call),
      });
    api.offer('embeddings', { ...endpoint, codec: { request: geminiEmbedRequest, response: geminiEmbedResponse } });
  },
});

/** Requests the largest possible page, which holds every model. */
function listRequest(): HttpRequest {
  return { method: 'GET', path: '/models?pageSize=1000' };
}

/** Models for chat or embeddings, with names without `models/`. */
function listedModels(body: unknown): readonly ModelInfo[] {
  return readArray(readObject(body)['models']).flatMap((model) => {
    const { name, supportedGenerationMethods: methods, ...facts } = readObject(model);
    const { inputTokenLimit: contextWindow, outputTokenLimit: maxOutput } = facts;
    const usable = readArray(methods).some((method) => method === 'generateContent' || method === 'embedContent');
    const id = readString(name)?.replace(/^models\//, '');
    return usable && id ? [listedModel(id, { contextWindow, maxOutput })] : [];
  });
}

/** Rules for each field of an embeddings request. */
export const GEMINI_EMBEDDING_FIELDS: FieldTable = {
  fields: {
    model: { rule: 'passed', note: 'Sent in the path.' },
    input: { rule: 'renamed', to: 'content', note: 'Texts only; token ids are rejected.' },
    dimensions: { rule: 'renamed', to: 'outputDimensionality' },
    encoding_format: { rule: 'emulated', note: 'The vendor returns numbers; the gateway encodes them for `base64`.' },
    task_type: { rule: 'renamed', to: 'taskType' },
    user: { rule: 'dropped' },
  },
  unknown: 'dropped',
};

/** Writes an embeddings request: embedContent for one text, batchEmbedContents for several. */
export function geminiEmbedRequest(input: EmbeddingRequest, call: CodecCall): HttpRequest {
  const dropped = applyFieldRules(input, GEMINI_EMBEDDING_FIELDS, 'Gemini');
  const texts = readTexts(input.input);
  const path = modelPath(call.model);
  const taskType = input['task_type'];
  const [first, ...more] = texts.map((text) => ({
    model: path.slice(1),
    content: { parts: [{ text }] },
    ...(typeof taskType === 'string' && { taskType }),
    ...(input.dimensions && { outputDimensionality: input.dimensions }),
  }));
  if (!first) throw invalid('input', 'must contain a text');
  const target =
    more.length === 0
      ? { path: `${path}:embedContent`, body: first }
      : { path: `${path}:batchEmbedContents`, body: { requests: [first, ...more] } };
  return { ...target, ...(dropped.length > 0 && { dropped }) };
}

/**
 * Vectors in input order, scaled to length 1 as OpenAI's (Gemini leaves shortened ones unscaled). Tokens are
 * estimated if the vendor does not count them; `usage.estimated` is then true.
 */
export function geminiEmbedResponse(body: unknown, input: EmbeddingRequest, call: CodecCall): EmbeddingResponse {
  const response = readObject(body);
  const list = response['embedding'] ? [response['embedding']] : readArray(response['embeddings']);
  const texts = readTexts(input.input);
  if (list.length !== texts.length) throw invalidResponse(`returned ${list.length} vectors for ${texts.length} texts`);
  const counted = readCount(readObject(response['usageMetadata'])['promptTokenCount']);
  const tokens = counted ?? texts.reduce((sum, text) => sum + estimateTextTokens(text), 0);
  return {
    object: 'list',
    data: list.map((item, index) => {
      const values = readArray(readObject(item)['values']);
      if (values.length === 0 || !values.every((value) => typeof value === 'number')) {
        throw invalidResponse('returned a vector that is not a list of numbers');
      }
      const vector = toUnitLength(values as readonly number[]);
      const embedding = input.encoding_format === 'base64' ? floatsToBase64(vector) : vector;
      return { object: 'embedding', index, embedding };
    }),
    model: call.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens, ...(counted === undefined && { estimated: true }) },
  };
}

function readTexts(input: EmbeddingRequest['input']): readonly string[] {
  const texts: readonly unknown[] = Array.isArray(input) ? input : [input];
  return texts.map((text, index) => {
    if (typeof text === 'string' && text !== '') return text;
    const at = Array.isArray(input) ? `input[${index}]` : 'input';
    throw invalid(at, 'must be a non-empty text; this provider does not accept token ids');
  });
}

function invalidResponse(problem: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: `The provider ${problem}.` });
}
