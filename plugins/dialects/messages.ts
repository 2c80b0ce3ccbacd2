import {
  type DialectDefinition,
  type DialectModels,
  definePlugin,
  GatewayError,
  type ListedModel,
} from '../../contract/index.ts';
import { messagesError } from '../formats/anthropic/errors.ts';
import { MESSAGES_NATIVE } from '../formats/anthropic/native.ts';
import { readMessages } from '../formats/anthropic/read-request.ts';
import { takeMessagesServers } from '../formats/anthropic/servers.ts';
import { isClaudeToken } from '../formats/anthropic/tables.ts';
import {
  COUNT_REQUEST,
  COUNT_RESPONSE,
  MESSAGES_REQUEST,
  MESSAGES_RESPONSE,
  type MessagesRequest,
} from '../formats/anthropic/types.ts';
import { writeMessage } from '../formats/anthropic/write-response.ts';
import { PING, writeStream } from '../formats/anthropic/write-stream.ts';
import { modelNamesSchema, readModelNames } from './kit/model-names.ts';

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1000;

/** Model list of the format. Source: https://platform.claude.com/docs/en/api/models-list */
export const MESSAGES_MODELS: DialectModels = Object.freeze({
  header: 'anthropic-version',
  one: shown,
  list(models: readonly ListedModel[], query: Readonly<Record<string, string>>) {
    const limit = readLimit(query['limit']);
    const { page, hasMore } = pageOf(models, limit, query);
    return {
      data: page.map(shown),
      has_more: hasMore,
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
    };
  },
});

/**
 * Anthropic's Messages API, as used by Claude Code and its SDKs. Source:
 * https://platform.claude.com/docs/en/api/messages
 */
const messages: DialectDefinition<MessagesRequest> = {
  name: 'messages',
  isSubscription: isClaudeToken,
  request: MESSAGES_REQUEST,
  response: MESSAGES_RESPONSE,
  routes: [
    {
      path: '/v1/messages',
      summary: 'Message in Anthropic’s format; the model is `provider/model` or an alias',
      description:
        'Returns server-sent events if `stream` is true. Other fields and blocks are passed on to providers with this format.',
    },
    {
      path: '/v1/messages/count_tokens',
      summary: 'Count the input tokens of a message',
      description: 'Calls no model and is free of charge. Accepts the body of a message; `max_tokens` is optional.',
      action: 'count',
      request: COUNT_REQUEST,
      response: COUNT_RESPONSE,
    },
  ],
  prefixes: ['/v1/messages'],
  // OpenAI has the same path.
  pathAliases: [{ pattern: /^\/v1\/files(?=\/|$)/, path: '/v1/messages/files', header: 'anthropic-version' }],
  models: MESSAGES_MODELS,
  native: MESSAGES_NATIVE,
  demandsLimit: true,
  keepAlive: PING,
  servers: takeMessagesServers,
  read: readMessages,
  write: writeMessage,
  stream: writeStream,
  count: (inputTokens) => ({ input_tokens: inputTokens }),
  error: messagesError,
};

export default definePlugin({
  name: 'messages',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      models: modelNamesSchema('claude-sonnet-5'),
    },
  },
  setup(api, config) {
    api.dialect({ ...messages, aliases: readModelNames(config) });
  },
});

function shown({ id, created, contextWindow, maxOutput }: ListedModel): object {
  return {
    type: 'model',
    id,
    display_name: id,
    created_at: new Date(created * 1000).toISOString().replace('.000', ''),
    ...(contextWindow !== undefined && { max_input_tokens: contextWindow }),
    ...(maxOutput !== undefined && { max_tokens: maxOutput }),
  };
}

function readLimit(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_LIMIT;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new GatewayError('invalid_request', `\`limit\` must be a whole number from 1 to ${MAX_LIMIT}.`, {
    param: 'limit',
  });
}

/** Models after `after_id`, or those just before `before_id`; an unknown cursor begins at the first model. */
function pageOf(
  models: readonly ListedModel[],
  limit: number,
  { after_id: after, before_id: before }: Readonly<Record<string, string>>,
): { readonly page: readonly ListedModel[]; readonly hasMore: boolean } {
  const indexOf = (id: string | undefined): number => (id ? models.findIndex((model) => model.id === id) : -1);
  const end = indexOf(before);
  if (end >= 0) return { page: models.slice(Math.max(end - limit, 0), end), hasMore: end > limit };
  const start = indexOf(after) + 1;
  return { page: models.slice(start, start + limit), hasMore: start + limit < models.length };
}
