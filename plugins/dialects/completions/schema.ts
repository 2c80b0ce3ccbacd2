import { CHAT_REQUEST, readObject, type Schema } from '../../../core/index.ts';

/** Fields that mean the same in both of OpenAI's formats. */
export const PASSED: readonly string[] = Object.freeze([
  'temperature',
  'top_p',
  'n',
  'stop',
  'seed',
  'user',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'stream',
  'stream_options',
]);

const chat = readObject(CHAT_REQUEST['properties']);
const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });

export const COMPLETION_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:CompletionRequest',
  examples: [{ model: 'echo/echo', prompt: 'Hello there' }],
  type: 'object',
  required: ['model', 'prompt'],
  properties: {
    model: chat['model'],
    prompt: { type: ['string', 'array'], minItems: 1 },
    suffix: nullable('string'),
    max_tokens: chat['max_tokens'],
    echo: nullable('boolean'),
    best_of: nullable('integer', { minimum: 1, maximum: 128 }),
    logprobs: nullable('integer', { minimum: 0, maximum: 20 }),
    ...Object.fromEntries(PASSED.map((name) => [name, chat[name]])),
  },
});

export const COMPLETION_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:Completion',
  type: 'object',
  required: ['id', 'object', 'created', 'model', 'choices'],
  properties: {
    id: { type: 'string' },
    object: { const: 'text_completion' },
    created: { type: 'integer', description: 'Unix time in seconds.' },
    model: { type: 'string' },
    choices: {
      type: 'array',
      items: {
        type: 'object',
        required: ['text', 'index', 'logprobs', 'finish_reason'],
        properties: {
          text: { type: 'string' },
          index: { type: 'integer' },
          finish_reason: { enum: ['stop', 'length', 'content_filter', null] },
        },
      },
    },
    usage: { type: 'object' },
  },
});
