import { type DialectDefinition, definePlugin } from '../../../core/index.ts';
import { type CompletionBody, readCompletion } from './read.ts';
import { COMPLETION_REQUEST, COMPLETION_RESPONSE } from './schema.ts';
import { streamCompletion, writeCompletion } from './write.ts';

/**
 * OpenAI's completions, which came before chat: the prompt is what the user says, the text what the model says.
 * Source: https://platform.openai.com/docs/api-reference/completions
 */
const completions: DialectDefinition<CompletionBody> = {
  name: 'completions',
  request: COMPLETION_REQUEST,
  response: COMPLETION_RESPONSE,
  routes: [
    {
      path: '/v1/completions',
      summary: 'Text completion by a chat model, for clients of OpenAI’s format of before',
      description: 'One prompt of text. With `suffix` the model is told to write what belongs between the two.',
    },
  ],
  keepAlive: ': keep-alive\n\n',
  read: readCompletion,
  write: writeCompletion,
  stream: streamCompletion,
  error: (error, requestId) => ({ body: error.toBody(requestId) }),
};

export default definePlugin({
  name: 'completions',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    api.dialect(completions);
  },
});
