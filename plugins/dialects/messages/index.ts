import { type DialectDefinition, definePlugin, isObject } from '../../../core/index.ts';
import { messagesError } from './errors.ts';
import { MESSAGES_MODELS } from './models.ts';
import { MESSAGES_NATIVE } from './native.ts';
import { readRequest } from './read.ts';
import { COUNT_REQUEST, COUNT_RESPONSE, MESSAGES_REQUEST, MESSAGES_RESPONSE } from './schema.ts';
import { PING, writeStream } from './stream.ts';
import type { MessagesRequest } from './types.ts';
import { writeMessage } from './write.ts';

/** Anthropic's Messages, as Claude Code and its SDKs speak it. Source: https://platform.claude.com/docs/en/api/messages */
const messages: DialectDefinition<MessagesRequest> = {
  name: 'messages',
  request: MESSAGES_REQUEST,
  response: MESSAGES_RESPONSE,
  routes: [
    {
      path: '/v1/messages',
      summary: 'Message in Anthropic’s format; the model is `provider/model` or an alias',
      description:
        'A stream of server-sent events when `stream` is true. Fields and blocks beyond the listed ones are carried to providers that speak the format.',
    },
    {
      path: '/v1/messages/count_tokens',
      summary: 'How many tokens the input of a message has',
      description: 'Calls no model and costs nothing. Takes what a message takes; `max_tokens` may be left out.',
      action: 'count',
      request: COUNT_REQUEST,
      response: COUNT_RESPONSE,
    },
  ],
  prefixes: ['/v1/messages'],
  models: MESSAGES_MODELS,
  native: MESSAGES_NATIVE,
  keepAlive: PING,
  read: readRequest,
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
      models: {
        type: 'object',
        description:
          'Model names of this format’s clients, such as `claude-sonnet-5`, and what each stands for: `provider/model`, or a list to fall back along.',
        additionalProperties: {
          type: ['string', 'array'],
          minLength: 1,
          minItems: 1,
          items: { type: 'string', minLength: 1 },
        },
      },
    },
  },
  setup(api, config) {
    const models = isObject(config) && isObject(config['models']) ? config['models'] : {};
    const aliases = Object.fromEntries(
      Object.entries(models).map(([name, target]) => [name, [target].flat().map(String)]),
    );
    api.dialect({ ...messages, aliases });
  },
});
