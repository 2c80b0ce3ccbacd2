import { type DialectDefinition, definePlugin } from 'tollgate';

interface Body {
  readonly model: string;
  readonly say: string;
  readonly most?: number;
  readonly stream?: boolean;
}

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** A format in which clients write a chat: `POST /my-plugin` takes `{ model, say }` and answers `{ text }`, or events. */
const dialect: DialectDefinition<Body> = {
  name: 'my-plugin',
  request: {
    type: 'object',
    required: ['model', 'say'],
    properties: {
      model: { type: 'string', minLength: 1 },
      say: { type: 'string' },
      most: { type: 'integer', minimum: 1 },
      stream: { type: 'boolean' },
    },
  },
  response: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
  routes: [{ path: '/my-plugin', summary: 'Says something to a model' }],
  prefixes: ['/my-plugin'], // errors below it are in this format too, where no route is
  keepAlive: ': waiting\n\n',
  read: ({ body: { model, say, most, stream } }) => ({
    request: {
      model,
      messages: [{ role: 'user', content: say }],
      ...(most !== undefined && { max_completion_tokens: most }), // what bounds the cost has to be said canonically
      ...(stream === true && { stream }),
    },
    place: (param) => (param.startsWith('messages') ? 'say' : param), // so that errors name the caller's own field
  }),
  write: ({ choices: [choice], usage }) => ({
    text: choice?.message.content ?? '',
    end: choice?.finish_reason,
    tokens: [usage?.prompt_tokens ?? 0, usage?.completion_tokens ?? 0],
  }),
  stream() {
    let last: object = {};
    return {
      push({ choices: [choice], usage }) {
        if (choice?.finish_reason) last = { ...last, end: choice.finish_reason };
        if (usage) last = { ...last, tokens: [usage.prompt_tokens, usage.completion_tokens] };
        return choice?.delta.content ? frame({ text: choice.delta.content }) : '';
      },
      end: () => frame(last),
      fail: (error) => frame({ error: error.code, message: error.message }),
    };
  },
  error: ({ code, message, param }, id) => ({ body: { error: code, message, at: param ?? null, id } }),
};

export default definePlugin({
  name: 'my-plugin',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: {} },
  setup: (api) => api.dialect(dialect),
});
