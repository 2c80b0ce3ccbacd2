import { type DialectDefinition, definePlugin } from '../../../core/index.ts';
import { native } from './native.ts';
import { readRequest } from './read.ts';
import { COUNT_RESPONSE, RESPONSES_REQUEST, RESPONSES_RESPONSE } from './schema.ts';
import { socket } from './socket.ts';
import { createResponseStore } from './store.ts';
import { addStoreRoutes } from './store-routes.ts';
import { stream } from './stream.ts';
import type { ResponsesBody } from './types.ts';
import { write } from './write.ts';

const DESCRIPTION =
  'A stream of server-sent events when `stream` is true. Tools that only OpenAI runs are left out for other providers and told in `x-tollgate-dropped`.';

const responses: DialectDefinition<ResponsesBody> = {
  name: 'responses',
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
  read: readRequest,
  write,
  stream,
  count: (inputTokens) => ({ object: 'response.input_tokens', input_tokens: inputTokens }),
  native,
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
      models: {
        type: 'object',
        description:
          'Model names of this format’s clients, each with what it stands for: `provider/model`, or several in the order to try.',
        additionalProperties: {
          anyOf: [
            { type: 'string', minLength: 1 },
            { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } },
          ],
        },
      },
    },
  },
  setup(api, { store: mode, retention, websocket, models = {} }) {
    const store = createResponseStore(api, mode, retention);
    const aliases = Object.fromEntries(Object.entries(models).map(([name, targets]) => [name, [targets].flat()]));
    const { expand, remember } = store;
    api.dialect({ ...responses, aliases, expand, remember, ...(websocket && { socket }) });
    if (mode === 'on') addStoreRoutes(api, store);
  },
});
