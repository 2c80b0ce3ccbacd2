import { type DialectDefinition, definePlugin, GatewayError, type PluginApi } from '../../../core/index.ts';
import { RESPONSES_NATIVE } from '../../formats/openai-responses/native.ts';
import { readResponsesRequest } from '../../formats/openai-responses/read-request.ts';
import {
  COUNT_RESPONSE,
  RESPONSES_REQUEST,
  RESPONSES_RESPONSE,
  type ResponsesBody,
} from '../../formats/openai-responses/types.ts';
import { writeResponse } from '../../formats/openai-responses/write-response.ts';
import { streamResponse } from '../../formats/openai-responses/write-stream.ts';
import { modelNamesSchema, readModelNames } from '../kit/model-names.ts';
import { socket } from './socket.ts';
import { createResponseStore, type ResponseStore } from './store.ts';
import { serveSocket } from './websockets.ts';

/** The routes by which callers read and delete what `store: on` keeps of theirs. */
function addStoreRoutes(api: Pick<PluginApi, 'route'>, store: ResponseStore): void {
  const path = '/v1/responses/:id';
  api.route({
    ...{ method: 'GET', path, auth: ['key'], summary: 'A response of the caller that is kept' },
    responses: { 200: { description: 'The response.', schema: RESPONSES_RESPONSE } },
    async handler(ctx) {
      const kept = await store.get(ctx.state.principal, ctx.params['id'] ?? '');
      if (!kept) throw notFound();
      ctx.body = kept.response;
    },
  });
  api.route({
    ...{ method: 'DELETE', path, auth: ['key'], summary: 'Delete a response of the caller' },
    responses: { 200: { description: 'It is deleted.', schema: DELETED } },
    async handler(ctx) {
      const id = ctx.params['id'] ?? '';
      if (!(await store.remove(ctx.state.principal, id))) throw notFound();
      ctx.body = { id, object: 'response', deleted: true };
    },
  });
}

const DELETED = Object.freeze({
  type: 'object',
  required: ['id', 'object', 'deleted'],
  properties: { id: { type: 'string' }, object: { const: 'response' }, deleted: { const: true } },
});

function notFound(): GatewayError {
  return new GatewayError(
    'not_found',
    'No response with this id is kept for you. It may have been deleted, or be too old.',
  );
}

const DESCRIPTION =
  'A stream of server-sent events when `stream` is true. Tools that only OpenAI runs are left out for other providers and told in `x-tollgate-dropped`.';

const responses: DialectDefinition<ResponsesBody> = {
  name: 'responses',
  // ChatGPT's, by which Codex signs in: a JWT.
  isSubscription: (credential) =>
    Buffer.from(credential.split('.', 2)[1] ?? '', 'base64url').includes('"https://auth.openai.com'),
  request: RESPONSES_REQUEST,
  response: RESPONSES_RESPONSE,
  routes: [
    { path: '/v1/responses', summary: 'Response; the model is `provider/model` or an alias', description: DESCRIPTION },
    {
      path: '/v1/responses/input_tokens',
      summary: 'Count the tokens of a request for a response',
      action: 'count',
      response: COUNT_RESPONSE,
    },
  ],
  prefixes: ['/v1/responses'],
  keepAlive: ': keep-alive\n\n',
  read: readResponsesRequest,
  write: writeResponse,
  stream: streamResponse,
  count: (inputTokens) => ({ object: 'response.input_tokens', input_tokens: inputTokens }),
  native: RESPONSES_NATIVE,
  error: (error, requestId) => ({ body: error.toBody(requestId) }),
};

/** OpenAI's Responses API, which Codex and the newer SDKs use by default. */
export default definePlugin({
  name: 'responses',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      store: {
        type: 'string',
        enum: ['off', 'short', 'on'],
        default: 'short',
        description:
          'Whether responses are kept for requests that continue them: not at all, for an hour, or for `retention` and with routes to read and delete them.',
      },
      retention: {
        type: 'string',
        format: 'duration',
        default: '720h',
        description: 'How long `store: on` keeps a response.',
      },
      websocket: {
        type: 'boolean',
        default: true,
        description: 'Whether responses are sent on websockets too. Where it is off, clients are told to use POST.',
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
    if (mode === 'on') addStoreRoutes(api, store);
  },
});
