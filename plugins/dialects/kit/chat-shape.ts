import {
  CHAT_REQUEST,
  type ChatRequest,
  type DialectContext,
  type DialectDefinition,
  type DialectStream,
  type Schema,
} from '../../../contract/index.ts';
import { writeChatChunk, writeChatResponse } from '../../formats/openai-chat/response.ts';
import { takeChatServers } from '../../formats/openai-chat/servers.ts';
import { isMistralClient, MistralStream, writeMistralResponse } from './mistral-client.ts';

const USAGE: Schema = {
  type: 'object',
  required: ['prompt_tokens', 'completion_tokens', 'total_tokens'],
  properties: {
    prompt_tokens: { type: 'integer' },
    completion_tokens: { type: 'integer' },
    total_tokens: { type: 'integer' },
  },
};

/** Response shape for the OpenAPI document. Codecs produce it, and tests verify it. */
const CHAT_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ChatCompletion',
  type: 'object',
  required: ['id', 'object', 'created', 'model', 'choices'],
  properties: {
    id: { type: 'string' },
    object: { const: 'chat.completion' },
    created: { type: 'integer', description: 'Unix time in seconds.' },
    model: { type: 'string' },
    choices: {
      type: 'array',
      items: {
        type: 'object',
        required: ['index', 'message', 'finish_reason', 'logprobs'],
        properties: {
          index: { type: 'integer' },
          message: { type: 'object', required: ['role', 'content', 'refusal'] },
          finish_reason: { enum: ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'] },
        },
      },
    },
    usage: USAGE,
  },
});

/** Usage of a frame that reports none. Within a text of JSON the quotes would be escaped. */
const NO_USAGE = /,\s*"usage"\s*:\s*null/;

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

const DONE = 'data: [DONE]\n\n';

const fail: DialectStream['fail'] = (error, requestId) => frame(error.toBody(requestId));

/** Usage is always sent, as Mistral does, since its SDKs have no field to request it. */
function streamToMistral(context: DialectContext<ChatRequest>): DialectStream {
  const stream = new MistralStream();
  return {
    push: (chunk) => stream.push(writeChatChunk(chunk, context)).map(frame).join(''),
    end: () => stream.end().map(frame).join('') + DONE,
    fail,
  };
}

/** Shape of OpenAI's chat completions, for the dialects that use it. */
export const CHAT_SHAPE: Omit<DialectDefinition<ChatRequest>, 'name' | 'routes' | 'read'> = Object.freeze({
  request: CHAT_REQUEST,
  response: CHAT_RESPONSE,
  keepAlive: ': keep-alive\n\n',
  passes: (input) => !isMistralClient(input),
  servers: takeChatServers,
  write(response, context) {
    const written = writeChatResponse(response, context);
    return isMistralClient(context.input) ? writeMistralResponse(written) : written;
  },
  stream(context) {
    if (isMistralClient(context.input)) return streamToMistral(context);
    const { stream_options } = context.request;
    // The final usage chunk, which has no choices, is sent only on request. The gateway itself always requests it.
    const wantsUsage = stream_options?.include_usage === true;
    return {
      push: (chunk) => (wantsUsage || !chunk.usage ? frame(writeChatChunk(chunk, context)) : ''),
      pass({ data }, usage) {
        if (wantsUsage) return `data: ${data}\n\n`;
        return usage ? '' : `data: ${data.replace(NO_USAGE, '')}\n\n`;
      },
      end: () => DONE,
      fail,
    };
  },
  error: (error, requestId) => ({ body: error.toBody(requestId) }),
} satisfies Omit<DialectDefinition<ChatRequest>, 'name' | 'routes' | 'read'>);
