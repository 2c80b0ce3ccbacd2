import {
  type ChatChoice,
  type ChatChunk,
  type ChatResponse,
  callContext,
  type DialectContext,
  type DialectDefinition,
  type DialectModels,
  type DialectStream,
  definePlugin,
  type FinishReason,
  GatewayError,
  type JsonObject,
  type ListedModel,
  type PluginApi,
  parseExact,
  type RouteContext,
  readArray,
  readObject,
  readString,
  type Schema,
  type Usage,
  writeJson,
} from '../../../contract/index.ts';
import { readDataUrl } from '../../formats/kit/index.ts';
import { modelNamesSchema, readModelNames } from '../kit/model-names.ts';
import { isGenerate, OLLAMA_CHAT, OLLAMA_GENERATE, type OllamaBody, readOllama } from './read.ts';

type Context = DialectContext<OllamaBody>;

/** Version of this API; clients check that it is new enough. */
const API_VERSION = '0.12.6';

const DONE_REASON: Readonly<Record<FinishReason, string>> = Object.freeze({
  stop: 'stop',
  length: 'length',
  content_filter: 'stop',
  tool_calls: 'stop',
  function_call: 'stop',
});

const USAGE: Readonly<Record<string, Schema>> = Object.freeze({
  prompt_eval_count: { type: 'integer', description: 'Tokens of the input.' },
  eval_count: { type: 'integer', description: 'Tokens of the output.' },
});

const HEAD: Readonly<Record<string, Schema>> = Object.freeze({
  model: { type: 'string' },
  created_at: { type: 'string', format: 'date-time' },
  done: { type: 'boolean' },
  done_reason: { enum: ['stop', 'length'] },
  ...USAGE,
});

const CHAT_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:OllamaChatResponse',
  type: 'object',
  required: ['model', 'created_at', 'message', 'done'],
  properties: { ...HEAD, message: { type: 'object', required: ['role', 'content'] } },
});

const GENERATE_RESPONSE: Schema = {
  type: 'object',
  required: ['model', 'created_at', 'response', 'done'],
  properties: { ...HEAD, response: { type: 'string' } },
};

/** Clients show the model under the name that they sent. */
function headOf({ request: { model }, created }: Context): JsonObject {
  return { model, created_at: new Date(created * 1000).toISOString() };
}

/** Output in the shape of `/api/generate` or of `/api/chat`. */
function saidIn(context: Context, said: OllamaOutput): JsonObject {
  const { content = '', thinking, calls = [], images = [], logprobs = [] } = said;
  const own = {
    ...(thinking && context.input.body['think'] !== false && { thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(images.length > 0 && { images }),
  };
  const rest = logprobs.length > 0 && { logprobs };
  if (isGenerate(context.input)) return { response: content, ...own, ...rest };
  return { message: { role: 'assistant', content, ...own }, ...rest };
}

interface OllamaOutput {
  readonly content?: string;
  readonly thinking?: string | undefined;
  readonly calls?: readonly object[];
  readonly images?: readonly string[];
  readonly logprobs?: readonly unknown[];
}

function usageIn(usage: Usage | undefined): JsonObject {
  return usage ? { prompt_eval_count: usage.prompt_tokens, eval_count: usage.completion_tokens } : {};
}

/** Images in base64, without the media type prefix. */
function imagesIn(spoken: object, { omit }: Context): readonly string[] {
  return readArray(readObject(spoken)['images']).flatMap((image) => {
    const read = readDataUrl(readString(readObject(readObject(image)['image_url'])['url']) ?? '');
    if (!read) omit?.('images');
    return read ? [read.data] : [];
  });
}

/** Tool call in Ollama's form: its arguments are an object. A call with truncated arguments is dropped. */
function callOf(index: number, id: string, name: string, text: string, { omit }: Context): readonly object[] {
  const values = text.trim() === '' ? {} : parseExact(text);
  if (typeof values !== 'object' || values === null) {
    omit?.('tool_calls');
    return [];
  }
  return [{ id, function: { index, name, arguments: values } }];
}

function writeOllama({ choices: [choice], usage }: ChatResponse, context: Context): object {
  const { message, finish_reason: reason, logprobs } = choice as ChatChoice;
  const calls = (message.tool_calls ?? []).flatMap(({ id, function: { name, arguments: text } }, at) =>
    callOf(at, id, name, text, context),
  );
  return {
    ...headOf(context),
    ...saidIn(context, {
      content: message.content ?? message.refusal ?? '',
      thinking: message.reasoning_content,
      calls,
      images: imagesIn(message, context),
      logprobs: readArray(readObject(logprobs)['content']),
    }),
    done: true,
    done_reason: DONE_REASON[reason],
    ...usageIn(usage),
  };
}

const line = (value: object): string => `${writeJson(value)}\n`;

/** Partial call of a stream. */
interface CallSoFar {
  readonly index: number;
  id: string;
  name: string;
  text: string;
}

/** Writes a line for each delta. Calls are sent complete, as Ollama does, and the last line has the counts. */
function streamOllama(context: Context): DialectStream {
  const head = headOf(context);
  const calls = new Map<number, CallSoFar>();
  let reason: FinishReason = 'stop';
  let usage: Usage | undefined;
  const lineOf = (said: OllamaOutput): string => line({ ...head, ...saidIn(context, said), done: false });
  const flush = (upTo: number): string => {
    let written = '';
    for (const { index, id, name, text } of calls.values()) {
      if (index >= upTo) continue;
      calls.delete(index);
      const whole = callOf(index, id, name, text, context);
      if (whole.length > 0) written += lineOf({ calls: whole });
    }
    return written;
  };
  const collect = ({ tool_calls: deltas = [] }: ChatChunk['choices'][number]['delta']): string => {
    let written = '';
    for (const { index, id, function: called } of deltas) {
      written += flush(index);
      const call = calls.get(index) ?? { index, id: '', name: '', text: '' };
      calls.set(index, call);
      call.id ||= id ?? '';
      call.name ||= called?.name ?? '';
      call.text += called?.arguments ?? '';
    }
    return written;
  };
  return {
    contentType: 'application/x-ndjson',
    // Clients parse each line as JSON, so an empty line is an error to them. A blank starts the next line instead.
    keepAlive: ' ',
    push({ choices: [choice], usage: counted }) {
      usage = counted ?? usage;
      if (!choice) return '';
      const { delta, finish_reason: ended, logprobs } = choice;
      reason = ended ?? reason;
      const content = `${delta.content ?? ''}${delta.refusal ?? ''}`;
      const images = imagesIn(delta, context);
      const thinking = context.input.body['think'] === false ? undefined : delta.reasoning_content;
      const isNew = content !== '' || Boolean(thinking) || images.length > 0;
      const spoken = { content, thinking, images, logprobs: readArray(readObject(logprobs)['content']) };
      return (isNew ? lineOf(spoken) : '') + collect(delta) + (ended ? flush(Number.POSITIVE_INFINITY) : '');
    },
    end: () =>
      line({ ...head, ...saidIn(context, {}), done: true, done_reason: DONE_REASON[reason], ...usageIn(usage) }),
    fail: (error, requestId) => line(errorBody(error, requestId)),
  };
}

/** Ollama's clients read the message; the other fields are for people. */
function errorBody({ message, type, code, param }: GatewayError, requestId: string): object {
  return { error: message, type, code, param: param ?? null, request_id: requestId };
}

function detailsOf(family: string): object {
  return {
    parent_model: '',
    format: '',
    family,
    families: [family],
    parameter_size: '',
    quantization_level: '',
  };
}

/** Entry of `/api/tags`: there are no model files, so sizes and digests are empty. */
function tagOf({ id, ownedBy, created }: ListedModel): object {
  const modified = new Date(created * 1000).toISOString();
  return { name: id, model: id, modified_at: modified, size: 0, digest: '', details: detailsOf(ownedBy) };
}

const OLLAMA_MODELS: DialectModels = Object.freeze({
  path: '/api/tags',
  list: (models: readonly ListedModel[]) => ({ models: models.map(tagOf) }),
  one: tagOf,
});

const DESCRIPTION =
  'Returns lines of JSON, or one object if `stream` is false. The model is `provider/model` or an alias.';

/** Ollama's own API. Source: https://github.com/ollama/ollama/blob/main/docs/api.md */
const ollama: DialectDefinition<OllamaBody> = {
  name: 'ollama',
  request: OLLAMA_CHAT,
  response: CHAT_RESPONSE,
  routes: [
    { path: '/api/chat', summary: 'Chat in Ollama’s format', description: DESCRIPTION },
    {
      path: '/api/generate',
      summary: 'Response to a prompt in Ollama’s format',
      description: DESCRIPTION,
      request: OLLAMA_GENERATE,
      response: GENERATE_RESPONSE,
    },
  ],
  prefixes: [
    ...['chat', 'generate', 'embed', 'embeddings', 'tags', 'show', 'ps', 'version'],
    // Ollama's other routes manage model files, and there are none here.
    ...['pull', 'push', 'create', 'copy', 'delete', 'blobs'],
  ].map((name) => `/api/${name}`),
  models: OLLAMA_MODELS,
  keepAlive: '\n',
  read: readOllama,
  write: writeOllama,
  stream: streamOllama,
  error: (error, requestId) => ({ body: errorBody(error, requestId) }),
};

export default definePlugin({
  name: 'ollama',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: { models: modelNamesSchema('llama3.2') },
  },
  setup(api, config) {
    const aliases = readModelNames(config);
    api.dialect({ ...ollama, aliases });
    addEmbeddings(api, aliases);
    addFacts(api, aliases);
  },
});

const EMBED_COMMON: Readonly<Record<string, Schema>> = Object.freeze({
  model: { type: 'string', minLength: 1, maxLength: 256 },
  keep_alive: { type: ['string', 'number', 'null'] },
  options: { type: ['object', 'null'] },
});

const EMBED_REQUEST: Schema = {
  examples: [{ model: 'echo/echo-embedding', input: ['Hello there'] }],
  type: 'object',
  required: ['model', 'input'],
  properties: {
    ...EMBED_COMMON,
    input: {
      type: ['string', 'array'],
      minLength: 1,
      minItems: 1,
      maxItems: 2048,
      items: { type: 'string', minLength: 1 },
    },
    dimensions: { type: ['integer', 'null'], minimum: 1, maximum: 65_536 },
    truncate: { type: ['boolean', 'null'] },
  },
};

/** Predecessor of `/api/embed`: one text. */
const EMBEDDINGS_REQUEST: Schema = {
  examples: [{ model: 'echo/echo-embedding', prompt: 'Hello there' }],
  type: 'object',
  required: ['model', 'prompt'],
  properties: { ...EMBED_COMMON, prompt: { type: 'string', minLength: 1 } },
};

const EMBED_FIELDS: readonly string[] = Object.freeze(['model', 'input', 'prompt', 'dimensions']);

type Names = Readonly<Record<string, readonly string[]>>;

/** Embeddings in Ollama's forms: the operation `embeddings`. */
function addEmbeddings(api: PluginApi, aliases: Names): void {
  const add = (path: string, body: Schema, field: 'input' | 'prompt'): void =>
    api.route({
      method: 'POST',
      path,
      auth: ['key'],
      isIdempotent: true,
      body,
      summary: field === 'input' ? 'Embeddings in Ollama’s format' : 'One embedding in Ollama’s legacy format',
      responses: { 200: { description: 'Vectors, in the order of the texts.', schema: { type: 'object' } } },
      async handler(ctx) {
        const { state } = ctx as RouteContext;
        const sent = state.body as JsonObject;
        const model = String(sent['model']);
        const input = sent[field] as string | readonly string[];
        const { dimensions } = sent;
        const { response, headers } = await api.models.call(
          'embeddings',
          { model: aliases[model]?.[0] ?? model, input, ...(typeof dimensions === 'number' && { dimensions }) },
          callContext(state),
        );
        const left = Object.keys(sent).filter((name) => !EMBED_FIELDS.includes(name) && sent[name] !== null);
        const dropped = [headers['x-tollgate-dropped'] ?? [], ...left].flat().join(', ');
        ctx.set({ ...headers, ...(dropped !== '' && { 'x-tollgate-dropped': dropped }) });
        const vectors = response.data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding);
        ctx.body =
          field === 'prompt'
            ? { embedding: vectors[0] }
            : { model, embeddings: vectors, prompt_eval_count: response.usage.prompt_tokens };
      },
    });
  add('/api/embed', EMBED_REQUEST, 'input');
  add('/api/embeddings', EMBEDDINGS_REQUEST, 'prompt');
}

/** Routes that clients read before they chat: the version, details of a model, models in memory. */
function addFacts(api: PluginApi, aliases: Names): void {
  const responses = (description: string) => ({ 200: { description, schema: { type: 'object' } } });
  api.route({
    method: 'GET',
    path: '/api/version',
    summary: 'Version of Ollama’s API',
    auth: ['key'],
    responses: responses('The version.'),
    handler(ctx) {
      ctx.body = { version: API_VERSION };
    },
  });
  api.route({
    method: 'GET',
    path: '/api/ps',
    summary: 'List of loaded models; always empty, since vendors run the models',
    auth: ['key'],
    responses: responses('An empty list.'),
    handler(ctx) {
      ctx.body = { models: [] };
    },
  });
  api.route({
    method: 'POST',
    path: '/api/show',
    summary: 'Show model details in Ollama’s format',
    auth: ['key'],
    body: {
      type: 'object',
      properties: {
        model: { type: ['string', 'null'], maxLength: 256 },
        name: { type: ['string', 'null'], maxLength: 256 },
        verbose: { type: ['boolean', 'null'] },
      },
    },
    responses: responses('Details of the model.'),
    handler(ctx) {
      const { model, name } = ctx.state.body as JsonObject;
      ctx.body = showModel(api, aliases, readString(model) ?? readString(name) ?? '', ctx as RouteContext);
    },
  });
}

function showModel(api: PluginApi, names: Names, name: string, { state: { principal } }: RouteContext): object {
  const id = names[name]?.[0] ?? name;
  const row = api.models.list(principal).find((each) => each.id === id);
  if (!row)
    throw new GatewayError(
      'unsupported_model',
      'Model not found, or this key may not use it. GET /api/tags lists the models.',
      {
        param: 'model',
      },
    );
  const target = api.models.alias(id)?.[0] ?? id;
  const cut = target.indexOf('/');
  const facts = api.models.catalog.find(target.slice(0, cut), target.slice(cut + 1));
  const reads = facts?.inputModalities ?? [];
  return {
    modelfile: '',
    parameters: '',
    template: '',
    details: detailsOf(row.owned_by),
    model_info: {
      'general.architecture': row.owned_by,
      ...(facts?.contextWindow !== undefined && { [`${row.owned_by}.context_length`]: facts.contextWindow }),
    },
    capabilities: ['completion', 'tools', ...(reads.includes('image') ? ['vision'] : [])],
  };
}
