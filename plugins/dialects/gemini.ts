import {
  callContext,
  type DialectDefinition,
  type DialectModels,
  type DialectRoute,
  definePlugin,
  isObject,
  type JsonObject,
  type ListedModel,
  type PluginApi,
  parseJson,
  type RouteContext,
  readArray,
  readObject,
  type Schema,
} from '../../contract/index.ts';
import { geminiError } from '../formats/google/errors.ts';
import { GEMINI_NATIVE } from '../formats/google/native.ts';
import { readGemini, STREAM_METHOD } from '../formats/google/read-request.ts';
import { takeGeminiServers } from '../formats/google/servers.ts';
import {
  COUNT_REQUEST,
  COUNT_RESPONSE,
  GENERATE_REQUEST,
  GENERATE_RESPONSE,
  type GeminiBody,
} from '../formats/google/types.ts';
import { writeGemini } from '../formats/google/write-response.ts';
import { SSE_KEEP_ALIVE, streamGemini } from '../formats/google/write-stream.ts';
import { type EmbeddingRequest, type EmbeddingResponse, invalid } from '../formats/kit/index.ts';
import { modelNamesSchema, readModelNames } from './kit/model-names.ts';

const DESCRIPTION =
  'Google’s format, in camelCase or snake_case. The path names the model: `provider/model`, an alias, or a name that one provider lists.';

const CONFIG_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    models: modelNamesSchema('gemini-3.8-flash'),
  },
} as const satisfies Schema;

/** Three methods of a model, below `/v1beta` and `/v1`. */
function routesOf(version: string): readonly DialectRoute[] {
  const base = `/${version}/models/*model\\:`;
  return [
    { path: `${base}generateContent`, summary: 'Response in Gemini’s format', description: DESCRIPTION },
    {
      path: base + STREAM_METHOD,
      summary: 'Streamed response in Gemini’s format',
      description: `${DESCRIPTION} Returns server-sent events with \`alt=sse\`, otherwise one JSON array.`,
    },
    {
      path: `${base}countTokens`,
      summary: 'Count input tokens in Gemini’s format',
      description: 'Accepts `contents`, or a whole request as `generateContentRequest`. Free of charge.',
      action: 'count',
      request: COUNT_REQUEST,
      response: COUNT_RESPONSE,
    },
  ];
}

const METHODS: readonly string[] = Object.freeze(['generateContent', 'streamGenerateContent', 'countTokens']);
const DEFAULT_PAGE = 50;
const MAX_PAGE = 1000;

/** Models that a caller may use, in the form of `models.list` and `models.get` of Google's API. */
const GEMINI_MODELS: DialectModels = Object.freeze({
  path: '/v1beta/models',
  header: 'x-goog-api-key',
  list(models: readonly ListedModel[], query: Readonly<Record<string, string>>) {
    const size = readPageSize(query['pageSize'] ?? query['page_size']);
    const start = readPageToken(models, query['pageToken'] ?? query['page_token']);
    const page = models.slice(start, start + size);
    const last = page.at(-1);
    const isMore = last !== undefined && start + size < models.length;
    return { models: page.map(modelOf), ...(isMore && { nextPageToken: tokenOf(last.id) }) };
  },
  one: modelOf,
});

/** Gemini's own format. Source: https://ai.google.dev/api/generate-content */
const gemini: DialectDefinition<GeminiBody> = {
  name: 'gemini',
  request: GENERATE_REQUEST,
  response: GENERATE_RESPONSE,
  routes: [...routesOf('v1beta'), ...routesOf('v1')],
  prefixes: ['/v1beta', '/upload/v1beta', '/upload/v1'],
  // Older SDKs add `models/` only to names without a slash: AI SDK, LangChain, @google/generative-ai.
  pathAliases: [
    // Newer SDKs omit `beta`, where OpenAI has the same paths.
    { pattern: /^\/v1\/(?=(?:batches|files)(?:\/|$))/, path: '/v1beta/', header: 'x-goog-api-key' },
    { pattern: /^\/v1(?:beta)?\/(?!models\/|v1)(?=.+:[A-Za-z]+$)/, path: '/v1beta/models/' },
  ],
  credentials: { headers: ['x-goog-api-key'], query: ['key'] },
  // OAuth of Gemini CLI and Google Cloud.
  isSubscription: (credential) => credential.startsWith('ya29.'),
  models: GEMINI_MODELS,
  // @google/generative-ai and LangChain take an error within a stream for a piece without text. Gemini CLI requests a response
  // without an end once more, and gives up where a connection closes.
  breaksOff: ({ headers }) => !/^GeminiCLI\b/.test(String(headers['user-agent'] ?? '')),
  keepAlive: SSE_KEEP_ALIVE,
  servers: takeGeminiServers,
  read: readGemini,
  write: writeGemini,
  stream: streamGemini,
  count: (inputTokens) => ({ totalTokens: inputTokens }),
  native: GEMINI_NATIVE,
  error: geminiError,
};

export default definePlugin({
  name: 'gemini',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: CONFIG_SCHEMA as object,
  setup(api, config) {
    api.dialect({ ...gemini, aliases: readModelNames(config) });
    addEmbeddings(api);
  },
});

/** Properties of a request for one embedding. Source: https://ai.google.dev/api/embeddings */
const EMBED_PROPERTIES = Object.freeze({
  model: { type: 'string', maxLength: 256 },
  content: {
    type: 'object',
    required: ['parts'],
    properties: { parts: { type: 'array', minItems: 1, maxItems: 2048, items: { type: 'object' } } },
  },
  ...both('taskType', 'task_type', { type: ['string', 'null'], maxLength: 64 }),
  ...both('outputDimensionality', 'output_dimensionality', { type: ['integer', 'null'], minimum: 1, maximum: 65_536 }),
  title: { type: ['string', 'null'], maxLength: 4096 },
});

const EMBED_REQUEST: Schema = {
  examples: [{ content: { parts: [{ text: 'Hello there' }] } }],
  type: 'object',
  required: ['content'],
  properties: EMBED_PROPERTIES,
};

const BATCH_EMBED_REQUEST: Schema = {
  examples: [{ requests: [{ content: { parts: [{ text: 'Hello there' }] } }] }],
  type: 'object',
  required: ['requests'],
  properties: { requests: { type: 'array', minItems: 1, maxItems: 2048, items: EMBED_REQUEST } },
};

const EMBEDDING: Schema = { type: 'object', required: ['values'], properties: { values: { type: 'array' } } };

function both(camel: string, snake: string, schema: Schema): Readonly<Record<string, Schema>> {
  return { [camel]: schema, [snake]: schema };
}

/** Embeddings in Gemini's form: the operation `embeddings`, for one text or several. */
function addEmbeddings(api: PluginApi): void {
  const add = (version: string, method: string, body: Schema, response: Schema): void =>
    api.route({
      method: 'POST',
      path: `/${version}/models/*model\\:${method}`,
      auth: ['key'],
      isIdempotent: true,
      body,
      summary: `Embeddings in Gemini’s format, by ${method}`,
      responses: { 200: { description: 'Vectors of length 1, in the order of the texts.', schema: response } },
      async handler(ctx) {
        const sent = ctx.state.body as JsonObject;
        const isBatch = Array.isArray(sent['requests']);
        const request = readEmbed(isBatch ? readArray(sent['requests']) : [sent], ctx.params['model'] ?? '', isBatch);
        const { response, headers } = await api.models.call(
          'embeddings',
          request,
          callContext((ctx as RouteContext).state),
        );
        ctx.set(headers);
        ctx.body = writeEmbed(response, isBatch);
      },
    });
  for (const version of ['v1beta', 'v1']) {
    const embeddings = { type: 'array', items: EMBEDDING };
    const [one, several] = [{ embedding: EMBEDDING }, { embeddings }];
    add(version, 'embedContent', EMBED_REQUEST, { type: 'object', required: ['embedding'], properties: one });
    add(version, 'batchEmbedContents', BATCH_EMBED_REQUEST, {
      type: 'object',
      required: ['embeddings'],
      properties: several,
    });
  }
}

interface EmbedSettings {
  readonly text: string;
  /** Their path in the body. */
  readonly place: string;
  readonly rest: JsonObject;
}

/** Combines requests for one model into one embeddings request. */
function readEmbed(requests: readonly unknown[], path: string, isBatch: boolean): EmbeddingRequest {
  const model = plainModel(path);
  const settings = requests.map((request, at): EmbedSettings => {
    const place = isBatch ? `requests[${at}].` : '';
    const { model: own, content, ...rest } = readObject(request);
    if (typeof own === 'string' && plainModel(own) !== model)
      throw invalid(`${place}model`, 'must be the model in the path');
    const texts = readArray(readObject(content)['parts']).map((part, one) => {
      const text = isObject(part) ? part['text'] : undefined;
      if (typeof text === 'string' && text !== '') return text;
      throw invalid(`${place}content.parts[${one}]`, 'must be a non-empty text');
    });
    return { text: texts.join('\n'), place, rest };
  });
  const [first] = settings;
  const common = first?.rest ?? {};
  for (const { rest, place } of settings)
    for (const name of new Set([...Object.keys(rest), ...Object.keys(common)]))
      if (rest[name] !== common[name])
        throw invalid(
          `${place}${name}`,
          'must be the same in all requests of a batch; send the others in another batch',
        );
  const { taskType, task_type = taskType, outputDimensionality, ...more } = common;
  const { output_dimensionality: dimensions = outputDimensionality, title } = more;
  return {
    model,
    input: settings.map(({ text }) => text),
    ...(typeof dimensions === 'number' && { dimensions }),
    ...(typeof task_type === 'string' && { task_type }),
    ...(typeof title === 'string' && { title }),
  };
}

function plainModel(name: string): string {
  return name.replace(/^(?:models|tunedModels)\//, '');
}

function writeEmbed({ data, usage }: EmbeddingResponse, isBatch: boolean): object {
  const embeddings = data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => ({ values: embedding }));
  const usageMetadata = { promptTokenCount: usage.prompt_tokens };
  return isBatch ? { embeddings, usageMetadata } : { embedding: embeddings[0], usageMetadata };
}

function modelOf({ id, ownedBy, contextWindow, maxOutput }: ListedModel): object {
  return {
    name: `models/${id}`,
    version: '001',
    displayName: id,
    description: `Served by ${ownedBy}.`,
    ...(contextWindow !== undefined && { inputTokenLimit: contextWindow }),
    ...(maxOutput !== undefined && { outputTokenLimit: maxOutput }),
    supportedGenerationMethods: METHODS,
  };
}

function readPageSize(text: string | undefined): number {
  if (text === undefined || text === '' || text === '0') return DEFAULT_PAGE;
  const size = parseJson(text);
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 0)
    throw invalid('pageSize', 'must be a whole number of at least 0');
  return Math.min(size, MAX_PAGE);
}

/** A page begins after the last model of the previous one, so that added or removed models do not shift other pages. */
function readPageToken(models: readonly ListedModel[], token: string | undefined): number {
  if (token === undefined || token === '') return 0;
  const at = models.findIndex(({ id }) => tokenOf(id) === token);
  if (at < 0)
    throw invalid(
      'pageToken',
      'must be the `nextPageToken` of a page of this list; remove it to start at the first page',
    );
  return at + 1;
}

function tokenOf(id: string): string {
  return Buffer.from(id).toString('base64url');
}
