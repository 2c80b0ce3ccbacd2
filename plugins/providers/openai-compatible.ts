/**
 * Public entry `tollgate/openai-compatible`: providers defined by data, for OpenAI's wire. The default export is for
 * any URL.
 *
 * @public
 */
import {
  type ChatCodec,
  type CodecCall,
  type FieldRule,
  type FieldTable,
  isObject,
  isPublicHost,
  type Plugin,
  type Provider,
  problemsOf,
  readObject,
  readString,
  type Schema,
  StreamFailure,
} from '../../contract/index.ts';
import { CONTINUE_OPTION, continuesAs } from '../formats/openai-chat/continue.ts';
import { classifyError } from '../formats/openai-chat/errors.ts';
import { MEDIA_PARTS, NO_FILES, TOOL_IDS } from '../formats/openai-chat/messages.ts';
import { cacheRule, compileRules, createRequestWriter, mapFields, onceAModel } from '../formats/openai-chat/request.ts';
import { count, failureIn, readResponse, reportedCostOf } from '../formats/openai-chat/response.ts';
import { isSameResponse } from '../formats/openai-chat/same.ts';
import { withSources } from '../formats/openai-chat/sources.ts';
import { decodeStream, withOwnWire } from '../formats/openai-chat/stream.ts';
import {
  CHAT_EFFECTS,
  drop,
  KEEP_NOTHING,
  OPENAI_EFFECTS,
  OTHERS_EFFECTS,
  pass,
  RELAY_EFFECTS,
  rename,
} from '../formats/openai-chat/tables.ts';
import { withThinkTags } from '../formats/openai-chat/think-tags.ts';
import type { CompatibleRules, CompatibleSpec, Differences, FileRules, Variant } from '../formats/openai-chat/types.ts';
import { offerOperations } from '../formats/openai-operations.ts';
import { responsesRows } from '../formats/openai-responses/compaction.ts';
import { createResponsesCodec } from '../formats/openai-responses/read-stream.ts';
import {
  base64ToFloats,
  compatibleFacts,
  type EmbeddingCodec,
  type EmbeddingRequest,
  type EmbeddingResponse,
  floatsToBase64,
  LEGACY_FUNCTIONS,
  LIVE_HOSTS,
  LIVE_OPTIONS,
  lenientChat,
  listedModel,
  nativeRows,
  PROVIDER_OPTIONS,
  type ProviderConfig,
  readApiKeys,
  readProviderOptions,
  readTurnOrder,
  signedInBy,
  TURN_ORDER_OPTION,
  templateOrder,
} from './kit/index.ts';

export { classifyError, readVendorError } from '../formats/openai-chat/errors.ts';
export { shortId } from '../formats/openai-chat/messages.ts';
export { OPENAI_MODELS } from '../formats/openai-chat/models.ts';
export { refusal } from '../formats/openai-chat/request.ts';
export {
  CHAT_FIELDS,
  drop,
  emulate,
  mapped,
  OPENAI_EFFECTS,
  OPENAI_ONLY,
  pass,
  RELAY_EFFECTS,
  RESPONSES_API,
  refuse,
  rename,
  within,
} from '../formats/openai-chat/tables.ts';
export type {
  CompatibleRule,
  CompatibleRules,
  CompatibleSpec,
  Differences,
  Emulation,
  ErrorRules,
  FileRules,
  RoleRules,
  Variant,
  VendorError,
} from '../formats/openai-chat/types.ts';
export { type Effort, nearestEffort } from './kit/index.ts';

/**
 * Creates a provider plugin for a vendor with OpenAI's chat completions, from its differences:
 *
 * ```ts
 * export default openaiCompatible({
 *   name: 'acme',
 *   baseUrl: 'https://api.acme.example/v1',
 *   apiKeyEnv: 'ACME_API_KEY',
 *   models: [{ id: 'acme-1' }],
 *   fields: { max_completion_tokens: rename('max_tokens'), seed: drop() },
 * });
 * ```
 */
export function openaiCompatible(spec: CompatibleSpec): Plugin<object, 'provider'> {
  const { name, options = {}, requiredOptions = [], configure, hosts } = spec;
  return {
    name,
    kind: 'provider',
    apiVersion: 1,
    ...(hosts && { hosts }),
    configSchema: {
      type: 'object',
      additionalProperties: false,
      properties: {
        ...PROVIDER_OPTIONS,
        ...TURN_ORDER_OPTION,
        // `tollgate check` warns about a URL without the version of this example.
        baseUrl: { ...PROVIDER_OPTIONS.baseUrl, examples: [spec.baseUrl || 'http://127.0.0.1:8000/v1'] },
        ...(spec.reasoningSummary && SUMMARY_OPTION),
        ...(spec.stores && STORE_OPTION),
        ...options,
      },
      ...(requiredOptions.length > 0 && { required: requiredOptions }),
    },
    check: (config) =>
      problemsOf(
        () => configure?.(config as OwnConfig),
        () => readApiKeys(config as OwnConfig),
      ),
    setup(api, config) {
      const own = config as OwnConfig;
      const turnOrder = readTurnOrder(own.turnOrder, spec.turnOrder);
      const chosen = { ...spec, ...summaryOf(own), turnOrder, ...configure?.(own) };
      const configured = withStoring(chosen, own['store'] === true);
      const credential = configured.liveCredential?.(api);
      const made = { ...createProvider(configured, own), ...(credential && { credential }) };
      const provider = configured.outfit?.(made) ?? made;
      api.provider(provider);
      const codec = configured.wire?.embeddings ?? createEmbedCodec(configured);
      if (codec) api.offer('embeddings', { ...provider, codec });
      offerOperations(api, provider, configured);
    },
  };
}

/** Option of vendors with the Responses API. */
const SUMMARY_OPTION = Object.freeze({
  reasoningSummary: {
    type: 'string',
    enum: ['auto', 'concise', 'detailed', 'off'],
    description:
      'Reasoning summaries of requests sent by the Responses API. Default: `auto`. Use `off` if your organization is not verified, since the vendor then rejects summaries. The gateway retries without them.',
  },
} satisfies Readonly<Record<string, Schema>>);

/** Reasoning summary configured by the operator. */
function summaryOf({ reasoningSummary: wanted }: OwnConfig): Pick<Differences, 'reasoningSummary'> {
  return typeof wanted === 'string' ? { reasoningSummary: wanted === 'off' ? undefined : wanted } : {};
}

/** Option of vendors that may store requests. */
const STORE_OPTION = Object.freeze({
  store: {
    type: 'boolean',
    description:
      'Lets chat callers choose with `store` whether the vendor stores requests and responses. Default: off, the gateway sends `store: false`. Requests sent by the Responses API are never stored.',
  },
} satisfies Readonly<Record<string, Schema>>);

/** Sends `store: false`, or leaves storage to callers and the vendor's default. */
function withStoring(spec: CompatibleSpec, mayStore: boolean): CompatibleSpec {
  const { stores, fields, defaults, effects } = spec;
  if (!stores) return spec;
  if (mayStore) {
    const kept = Object.entries(effects ?? {}).map(([field, rules]) => [
      field,
      rules.filter(({ does }) => does !== 'stores'),
    ]);
    return { ...spec, fields: { ...fields, store: pass() }, effects: { ...Object.fromEntries(kept), store: [] } };
  }
  return {
    ...spec,
    fields: { ...fields, store: KEEP_NOTHING },
    ...(stores === 'always' && { defaults: { ...defaults, store: false } }),
  };
}

type OwnConfig = ProviderConfig & Readonly<Record<string, unknown>>;

function createProvider(spec: CompatibleSpec, config: OwnConfig): Provider {
  const { name, anyModel, addModels, timeouts, transport, listsModels = true, errors, continues, dearerPlace } = spec;
  const native = spec.wire ? undefined : nativeRows(config, rowsOf(spec));
  const configured = readProviderOptions(config, spec);
  return {
    specVersion: 1,
    vendor: name,
    ...(anyModel && !config.models && { anyModel }),
    ...configured,
    ...(addModels && { addModels: [...addModels, ...(configured.addModels ?? [])] }),
    ...(timeouts && { timeouts: { ...timeouts, ...configured.timeouts } }),
    ...(transport && { transport }),
    ...(dearerPlace && { dearerPlace }),
    fields: fieldTable(spec),
    // Models first: an error names the first effect of a request.
    effects: { ...spec.effects, ...CHAT_EFFECTS, ...spec.effects },
    chat: createChatCodec(spec),
    ...(continues && { continues }),
    ...(native && { native }),
    ...(listsModels && { listModels: modelLister(spec) }),
    error: (status, body, headers) => classifyError(status, body, headers, errors),
  };
}

/** Passthrough rows: chat, and the Responses API if the vendor has it. */
function rowsOf({ path, responsesPath, errors, usageCost }: Differences): NonNullable<Provider['native']> {
  const codec = createResponsesCodec((body) => classifyError(200, body, {}, errors), usageCost);
  return onceAModel((model) => {
    const chat = { path: path?.('chat/completions', model) ?? '/chat/completions' };
    const own = responsesPath?.(model);
    return { chat, ...(own !== undefined && responsesRows(own, { headers: betaHeaders, codec })) };
  });
}

/** Beta headers of a caller, except the websocket's, which does not apply here. */
function betaHeaders(caller: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const betas = (caller['openai-beta'] ?? '').split(',').map((beta) => beta.trim());
  const kept = betas.filter((beta) => /^[\w.=-]+$/.test(beta) && !beta.startsWith('responses_websockets'));
  return kept.length > 0 ? { 'openai-beta': kept.join(',') } : {};
}

function createChatCodec(differences: Differences): ChatCodec {
  const { errors, usageCost, unlimited, fields, turnOrder, continues, unknown, extras = [] } = differences;
  const rulesFor = compileRules(differences);
  const options = Object.keys(differences.streamOptions ?? {}).map((name) => `stream_options.${name}`);
  const responses = createResponsesCodec((body) => classifyError(200, body, {}, errors), usageCost, true);
  // A response uses the wire of its request: both follow from the same request.
  const isOnResponses = ({ model, request = { model, messages: [] } }: CodecCall): boolean =>
    rulesFor(request).variant?.wire === 'responses';
  const codec: ChatCodec = {
    request: createRequestWriter(differences, rulesFor),
    response: (body, call) =>
      isOnResponses(call) ? responses.response(body, call) : readResponse(body, call, differences),
    stream: (call) => (isOnResponses(call) ? responses.stream(call) : decodeStream(call, differences)),
    isOriginal: (body, response) => isObject(body) && isSameResponse(body, response),
  };
  const own = differences.wire ? withOwnWire(codec, differences.wire) : codec;
  const cited = differences.listsSources ? withSources(own) : own;
  return lenientChat(differences.thinkTags ? withThinkTags(cited) : cited, {
    ...(unlimited !== undefined && { unlimited }),
    ownFunctions: fields?.['functions'] !== undefined,
    ...(unknown !== 'passed' && { innerFields: [...extras, ...options] }),
    ...(turnOrder && { turnOrder }),
    ...(continues && { continues: (model) => continues(model) !== undefined }),
  });
}

function modelLister({ path, listedPrice }: Differences): NonNullable<Provider['listModels']> {
  return {
    request: () => ({ method: 'GET', path: path?.('models', '') ?? '/models' }),
    response(body) {
      // OpenAI: { data: […] }; Together: a bare list; Ollama's own and others: { models: […] }.
      const rows: unknown = isObject(body) ? (body['data'] ?? body['models']) : body;
      return (Array.isArray(rows) ? rows : []).flatMap((row: unknown) => {
        const id = isObject(row) ? (readString(row['id']) ?? readString(row['name'])) : readString(row);
        if (id === undefined) return [];
        return [listedModel(id, isObject(row) ? { ...compatibleFacts(row), price: listedPrice?.(row) } : {})];
      });
    },
  };
}

/** Field table of the codec for docs and tests: the vendor's rules, and those that follow from its other data. */
function fieldTable(differences: Differences): FieldTable {
  const { fields = {}, variants, unknown = 'dropped', extras, lacks } = differences;
  return {
    fields: {
      ...LEGACY_FUNCTIONS,
      cache_control: cacheRule(differences.cacheMarks === true),
      messages: messagesRule(differences),
      stream_options: streamRule(differences),
      ...fields,
    },
    unknown,
    ...(variants && {
      variants: variants.map(({ when, example, fields: own = {}, roles, wire }) => {
        const messages = (roles ?? wire) && messagesRule({ ...differences, ...(roles && { roles }) }, wire);
        return { when, example, fields: { ...(messages && { messages }), ...own } };
      }),
    }),
    ...(extras && { extras }),
    ...(lacks && { lacks }),
  };
}

function messagesRule(differences: Differences, wire: Variant['wire'] = 'chat'): FieldRule {
  const { roles = {}, replay = 'drop', toolIds = TOOL_IDS, cacheMarks, files = NO_FILES } = differences;
  const { detailFormats, historyTools } = differences;
  const notes = [
    roles.developer === 'system' && '`developer` becomes `system`',
    roles.system === 'developer' && '`system` becomes `developer`',
    wire === 'responses'
      ? 'encrypted reasoning of this vendor is sent back, reasoning of others is dropped'
      : replay === 'drop'
        ? 'earlier thinking is dropped'
        : `earlier thinking is sent back as \`${replay}\``,
    detailFormats && '`reasoning_details` are sent back to models of the vendor that created them',
    `tool call ids that do not match \`${toolIds.valid.source}\` become a hash of ${toolIds.length} characters, in the call and in its result`,
    filesNote(wire === 'responses' ? { ...files, urls: true } : files),
    wire === 'chat' &&
      'images and files in tools’ results follow in a user message, each headed by `Result of call <id>:`',
    historyTools && `models \`${historyTools.source}\` get the tools called in the history if \`tools\` is missing`,
    !cacheMarks && '`cache_control` is dropped',
    'blocks of other formats become text if they have any, otherwise they are dropped and reported',
  ];
  return { rule: 'passed', note: `${notes.filter(Boolean).join('; ')}.` };
}

function filesNote({ data, urls = false }: FileRules): string {
  const converted = 'text types become text, others are rejected';
  if (data.length === 0) return `documents of ${converted}`;
  const how = urls ? 'data or by URL' : 'data';
  if (data.includes('*')) return `documents of all types are sent as ${how}`;
  const types = data.map((type) => `\`${type}\``).join(', ');
  return `documents of type ${types} are sent as ${how}; other documents: ${converted}`;
}

function streamRule({ streamUsage = 'ask', streamOptions }: Differences): FieldRule {
  if (streamUsage === 'always')
    return { rule: 'emulated', note: 'Not sent: the vendor always reports usage. Callers get it on request.' };
  const own = streamOptions ? `, and \`${JSON.stringify(streamOptions)}\`` : '';
  return { rule: 'passed', note: `The gateway always requests usage${own}. Callers get it on request.` };
}

const OWN = new Set(['model', 'input']);
const KNOWN = ['encoding_format', 'dimensions', 'user'];

/** Embeddings codec. Vectors are returned in the requested encoding, whatever the vendor sends. */
function createEmbedCodec(differences: Differences): EmbeddingCodec | undefined {
  const { embeddings, unknown = 'dropped' } = differences;
  if (!embeddings) return undefined;
  const extras = [...KNOWN, ...(differences.extras ?? [])];
  const rules = compileRules({ baseUrl: '', unknown, ...embeddings, extras })({ model: '', messages: [] });
  return {
    request(input, call) {
      const dropped: string[] = [];
      const body = mapFields(input, rules, OWN, dropped);
      return {
        path: differences.path?.('embeddings', call.model) ?? '/embeddings',
        body: { model: call.model, input: input.input, ...body },
        ...(dropped.length > 0 && { dropped }),
      };
    },
    response: (body, input, call) => readEmbeddings(body, input, call, differences),
  };
}

function readEmbeddings(
  body: unknown,
  input: EmbeddingRequest,
  call: CodecCall,
  differences: Differences,
): EmbeddingResponse {
  const failure = failureIn(body, differences.errors);
  if (failure) throw new StreamFailure(failure);
  // Some servers return the list alone.
  const list = Array.isArray(body) ? { data: body.map(readVector) } : body;
  if (!isObject(list) || !Array.isArray(list['data']))
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider returned a response without `data`.' });
  const usage = isObject(list['usage']) ? list['usage'] : {};
  const tokens = count(usage['prompt_tokens']) ?? count(usage['total_tokens']) ?? 0;
  const cost = reportedCostOf(usage, differences);
  const counts = { prompt_tokens: tokens, total_tokens: Math.max(tokens, count(usage['total_tokens']) ?? 0) };
  return {
    object: 'list',
    data: list['data'].filter(isObject).map((item, position) => ({
      object: 'embedding',
      index: count(item['index']) ?? position,
      embedding: encoded(item['embedding'], input.encoding_format === 'base64'),
    })),
    model: readString(list['model']) ?? call.model,
    usage: { ...counts, ...(cost !== undefined && { cost }) },
  };
}

/** Item of a list alone: llama.cpp nests the vector of a text in a list, Text Embeddings Inference sends only the vector. */
function readVector(item: unknown): unknown {
  if (Array.isArray(item)) return { embedding: item };
  const { embedding } = readObject(item);
  const isNested = Array.isArray(embedding) && embedding.length === 1 && Array.isArray(embedding[0]);
  return isNested ? { ...readObject(item), embedding: embedding[0] as unknown } : item;
}

function encoded(embedding: unknown, asBase64: boolean): readonly number[] | string {
  if (typeof embedding === 'string') return asBase64 ? embedding : base64ToFloats(embedding);
  if (Array.isArray(embedding) && embedding.every((value) => typeof value === 'number')) {
    return asBase64 ? floatsToBase64(embedding) : embedding;
  }
  throw new StreamFailure({
    class: 'upstream_error',
    message: 'The provider returned an invalid embedding.',
  });
}

/** Any server with this wire: vLLM, llama.cpp, LM Studio, a relay. The operator configures its limitations. */
export default openaiCompatible({
  name: 'openai-compatible',
  baseUrl: '',
  keyRequired: false,
  anyModel: true,
  unlimited: true,
  thinkTags: true,
  media: MEDIA_PARTS,
  openAiTools: true,
  roles: { developer: 'system' },
  turnOrder: templateOrder,
  replay: 'reasoning_content',
  unknown: 'passed',
  stores: 'asked',
  effects: {
    ...OPENAI_EFFECTS,
    ...RELAY_EFFECTS,
    model: [...(OPENAI_EFFECTS['model'] ?? []), ...(RELAY_EFFECTS['model'] ?? [])],
    ...OTHERS_EFFECTS,
  },
  // Each server decides which documents it supports.
  files: { data: ['*'], ids: true },
  embeddings: {},
  operations: ['images', 'moderations', 'rerank', 'transcription'],
  requiredOptions: ['baseUrl'],
  hosts: LIVE_HOSTS,
  options: {
    ...LIVE_OPTIONS,
    drop: {
      type: 'array',
      items: { type: 'string' },
      description: 'Request fields that the server rejects; they are not sent.',
    },
    rename: {
      type: 'object',
      additionalProperties: { type: 'string', minLength: 1 },
      description: 'Request fields with another name on the server, for example `max_completion_tokens: max_tokens`.',
    },
    unknownFields: {
      enum: ['pass', 'drop'],
      description:
        'Handling of request fields that OpenAI does not have. `pass` sends them unchanged; `drop` drops them and reports them to callers. Default: `pass`.',
    },
    developerRole: { type: 'boolean', description: 'Sends the role `developer` unchanged, not as `system`.' },
    ...CONTINUE_OPTION,
  },
  configure: ({ baseUrl = '', drop: dropped, rename: renamed, developerRole, unknownFields, continues, ...own }) => ({
    ...continuesAs(continues),
    ...signedInBy(own, baseUrl),
    ...(unknownFields === 'drop' && { unknown: 'dropped' }),
    ...(URL.canParse(baseUrl) && !isPublicHost(new URL(baseUrl).hostname) && { remoteMedia: 'refuse' }),
    fields: operatorRules(dropped as readonly string[] | undefined, renamed as Readonly<Record<string, string>>),
    ...(developerRole === true && { roles: {} }),
  }),
});

function operatorRules(
  dropped: readonly string[] = [],
  renamed: Readonly<Record<string, string>> = {},
): CompatibleRules {
  return {
    ...Object.fromEntries(dropped.map((field) => [field, drop('by the configuration')])),
    ...Object.fromEntries(Object.entries(renamed).map(([field, to]) => [field, rename(to, 'by the configuration')])),
  };
}
