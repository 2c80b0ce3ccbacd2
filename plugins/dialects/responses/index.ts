import {
  type ChatResponse,
  type DialectDefinition,
  type DialectInput,
  definePlugin,
  GatewayError,
  type PluginApi,
  type RouteContext,
} from '../../../contract/index.ts';
import { COMPACT, withTrigger } from '../../formats/openai-responses/compaction.ts';
import { RESPONSES_NATIVE } from '../../formats/openai-responses/native.ts';
import { readResponsesRequest } from '../../formats/openai-responses/read-request.ts';
import { takeResponsesServers } from '../../formats/openai-responses/servers.ts';
import { inputItems } from '../../formats/openai-responses/tables.ts';
import {
  COMPACT_REQUEST,
  COMPACT_RESPONSE,
  COUNT_RESPONSE,
  RESPONSES_REQUEST,
  RESPONSES_RESPONSE,
  type ResponsesBody,
} from '../../formats/openai-responses/types.ts';
import { type ResponsesContext, writeResponse } from '../../formats/openai-responses/write-response.ts';
import { streamResponse } from '../../formats/openai-responses/write-stream.ts';
import { keepOptions } from '../kit/keep.ts';
import { modelNamesSchema, readModelNames } from '../kit/model-names.ts';
import { socket } from './socket.ts';
import { createResponseStore, type ResponseStore, type StoredResponse, storedItems } from './store.ts';
import { serveSocket } from './websockets.ts';

/** Routes by which callers read, list and delete their stored responses. */
function addStoreRoutes(api: Pick<PluginApi, 'route'>, store: ResponseStore): void {
  const path = '/v1/responses/:id';
  const find = async (ctx: RouteContext): Promise<StoredResponse> => {
    const stored = await store.get(ctx.state.principal, ctx.params['id'] ?? '');
    if (!stored) throw notFound();
    return stored;
  };
  api.route({
    method: 'GET',
    path,
    auth: ['key'],
    summary: 'Get a stored response of the caller',
    description: 'Returns the whole response; stored responses are not streamed.',
    query: { type: 'object', properties: { stream: { type: 'string' } } },
    responses: { 200: { description: 'The response.', schema: RESPONSES_RESPONSE } },
    async handler(ctx) {
      if (new URLSearchParams(ctx.querystring).get('stream') === 'true')
        throw new GatewayError('invalid_request', 'A stored response cannot be streamed. Remove `stream`.', {
          param: 'stream',
        });
      ctx.body = (await find(ctx)).response;
    },
  });
  api.route({
    method: 'GET',
    path: `${path}/input_items`,
    auth: ['key'],
    summary: 'List the input items of a stored response',
    description: 'Includes earlier items of the conversation. Newest first; `order=asc` reverses the order.',
    query: ITEMS_QUERY,
    responses: { 200: { description: 'A page of items.', schema: ITEMS } },
    async handler(ctx) {
      const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
      ctx.body = pageOfItems(await find(ctx), query);
    },
  });
  api.route({
    method: 'DELETE',
    path,
    auth: ['key'],
    summary: 'Delete a response of the caller',
    responses: { 200: { description: 'Deleted.', schema: DELETED } },
    async handler(ctx) {
      const id = ctx.params['id'] ?? '';
      if (!(await store.remove(ctx.state.principal, id))) throw notFound();
      ctx.body = { id, object: 'response', deleted: true };
    },
  });
  api.route({
    method: 'POST',
    path: `${path}/cancel`,
    auth: ['key'],
    summary: 'Not supported: responses do not run in the background',
    description: 'Responses with `background` are rejected. Others end when their request is closed.',
    responses: { 200: { description: 'Never.', schema: RESPONSES_RESPONSE } },
    async handler(ctx) {
      await find(ctx);
      throw new GatewayError(
        'invalid_request',
        'Only responses with `background: true` can be cancelled. Close the request to stop this one.',
      );
    },
  });
}

const DEFAULT_ITEMS = 20;
const MAX_ITEMS = 100;

const ITEMS_QUERY = Object.freeze({
  type: 'object',
  properties: {
    limit: {
      type: 'string',
      pattern: '^(?:[1-9]\\d?|100)$',
      description: `1 to ${MAX_ITEMS}. Default: ${DEFAULT_ITEMS}.`,
    },
    order: { enum: ['asc', 'desc'], description: 'Default: `desc`.' },
    after: { type: 'string', maxLength: 128, description: 'Id of the last item of the previous page.' },
  },
});

const ITEMS = Object.freeze({
  type: 'object',
  required: ['object', 'data', 'first_id', 'last_id', 'has_more'],
  properties: { object: { const: 'list' }, data: { type: 'array', items: { type: 'object' } } },
});

function pageOfItems(stored: StoredResponse, { limit, order, after }: Readonly<Record<string, string>>): object {
  const items = storedItems(stored);
  const all = order === 'asc' ? items : items.toReversed();
  const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0)
    throw new GatewayError('invalid_request', '`after` must be the id of an item of this response.', {
      param: 'after',
    });
  const data = all.slice(start, start + Number(limit ?? DEFAULT_ITEMS));
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + data.length < all.length,
  };
}

const DELETED = Object.freeze({
  type: 'object',
  required: ['id', 'object', 'deleted'],
  properties: { id: { type: 'string' }, object: { const: 'response' }, deleted: { const: true } },
});

function notFound(): GatewayError {
  return new GatewayError('not_found', 'Response not found. It was deleted, has expired or belongs to another user.');
}

const DESCRIPTION =
  'Returns server-sent events if `stream` is true. For other providers, tools that OpenAI runs are dropped and reported in `x-tollgate-dropped`.';

function isCompact({ route }: Pick<DialectInput, 'route'>): boolean {
  return route.native === COMPACT;
}

function withPrompt(input: DialectInput<ResponsesBody>): DialectInput<ResponsesBody> {
  return { ...input, body: withTrigger(input.body) };
}

/** Compacted conversation: the user's messages unchanged, and one item for everything else. */
function writeCompacted(response: ChatResponse, context: ResponsesContext): object {
  const { input } = context;
  const written = writeResponse(response, { ...context, input: withPrompt(input) });
  const said = inputItems(input.body.input).filter(
    ({ type, role }) => (type ?? 'message') === 'message' && role === 'user',
  );
  const { id, created_at, output, usage } = written;
  const stored = storedItems({ input: said, response: written });
  return { id, object: 'response.compaction', created_at, output: [...stored, ...output], usage };
}

const responses: DialectDefinition<ResponsesBody> = {
  name: 'responses',
  // Token of ChatGPT, with which Codex signs in: a JWT.
  isSubscription: (credential) =>
    Buffer.from(credential.split('.', 2)[1] ?? '', 'base64url').includes('"https://auth.openai.com'),
  request: RESPONSES_REQUEST,
  response: RESPONSES_RESPONSE,
  routes: [
    { path: '/v1/responses', summary: 'Response; the model is `provider/model` or an alias', description: DESCRIPTION },
    {
      path: '/v1/responses/input_tokens',
      summary: 'Count the input tokens of a response',
      action: 'count',
      response: COUNT_RESPONSE,
    },
    {
      path: '/v1/responses/compact',
      summary: 'Compact a conversation',
      description:
        'The vendor compacts the conversation if it supports that; otherwise the model summarizes it. Use the returned items as the input of the next request.',
      native: COMPACT,
      request: COMPACT_REQUEST,
      response: COMPACT_RESPONSE,
    },
  ],
  prefixes: ['/v1/responses'],
  keepAlive: ': keep-alive\n\n',
  servers: takeResponsesServers,
  read: (input) => readResponsesRequest(isCompact(input) ? withPrompt(input) : input),
  write: (response, context) =>
    isCompact(context.input) ? writeCompacted(response, context) : writeResponse(response, context),
  stream: streamResponse,
  count: (inputTokens) => ({ object: 'response.input_tokens', input_tokens: inputTokens }),
  native: RESPONSES_NATIVE,
  error: (error, requestId) => ({ body: error.toBody(requestId) }),
};

/** OpenAI's Responses API, the default of Codex and the newer SDKs. */
export default definePlugin({
  name: 'responses',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...keepOptions('a response', 'responses'),
      websocket: {
        type: 'boolean',
        default: true,
        description: 'Enables responses on websockets. If disabled, clients get an error that names POST.',
      },
      models: modelNamesSchema('gpt-6-sol'),
    },
  },
  setup(api, config) {
    const { store: mode, retention, websocket } = config;
    const store = createResponseStore(api, mode, retention);
    const aliases = readModelNames(config);
    const { expand, remember } = store;
    api.dialect({ ...responses, aliases, expand, remember });
    if (websocket) serveSocket(api, responses, socket);
    if (mode !== 'off') addStoreRoutes(api, store);
  },
});
