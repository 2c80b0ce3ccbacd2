import {
  CHAT_REQUEST,
  type ChatChunk,
  type ChatMessage,
  type ChatResponse,
  type DialectContext,
  type DialectDefinition,
  type DialectInput,
  type DialectRequest,
  type DialectStream,
  definePlugin,
  type FinishReason,
  GatewayError,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type Schema,
} from '../../../contract/index.ts';
import { invalid } from '../../formats/kit/index.ts';
import { assertNoServers } from '../../formats/kit/servers.ts';
import { fillIn } from '../kit/fill-in.ts';

/** Fields with the same meaning in both of OpenAI's formats. */
const PASSED: readonly string[] = Object.freeze([
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

const COMPLETION_REQUEST: Schema & { readonly $id: string } = Object.freeze({
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

const COMPLETION_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
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

type CompletionBody = JsonObject;

const OWN = ['model', 'prompt', 'suffix', 'max_tokens', 'echo', 'best_of', 'logprobs'] as const;
const KNOWN: ReadonlySet<string> = new Set([...OWN, ...PASSED]);

/** Converts a completion to a chat: the prompt becomes the user message. */
function readCompletion({ body }: DialectInput<CompletionBody>): DialectRequest {
  assertNoServers(body['tools']);
  const prompt = promptOf(body);
  const { model, max_tokens: limit, n, best_of: best, logprobs, echo } = body;
  if (typeof best === 'number' && best !== (n ?? 1)) {
    throw invalid('best_of', 'must equal `n` or be removed, since chat models do not select the best of several');
  }
  if (typeof logprobs === 'number' && echo === true) {
    throw invalid('logprobs', 'cannot be combined with `echo`, since chat models return no probabilities of a prompt');
  }
  const passed = Object.entries(body).filter(([name, value]) => PASSED.includes(name) && isSet(value));
  const others = Object.entries(body).filter(([name, value]) => !KNOWN.has(name) && isSet(value));
  return {
    request: {
      model: String(model),
      messages: messagesOf(prompt, body['suffix']),
      ...(typeof limit === 'number' && { max_completion_tokens: limit }),
      ...(typeof logprobs === 'number' && { logprobs: true, ...(logprobs > 0 && { top_logprobs: logprobs }) }),
      ...Object.fromEntries(passed),
      ...(others.length > 0 && { dialect_fields: { completions: Object.fromEntries(others) } }),
    },
    ...(others.length > 0 && { dropped: others.map(([name]) => name) }),
    place: placeOf,
  };
}

/** Only prompt of a request. */
function promptOf({ prompt }: CompletionBody): string {
  const prompts = Array.isArray(prompt) ? prompt : [prompt];
  const [first] = prompts;
  if (typeof first !== 'string') {
    throw invalid('prompt', 'must be text, since token ids differ between models');
  }
  if (prompts.length > 1) {
    throw new GatewayError('invalid_request', '`prompt` must contain one prompt. Send one request per prompt.', {
      param: 'prompt',
    });
  }
  return first;
}

function messagesOf(prompt: string, suffix: unknown): readonly ChatMessage[] {
  if (typeof suffix !== 'string' || suffix === '') return [{ role: 'user', content: prompt }];
  return fillIn(prompt, suffix);
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function placeOf(param: string): string {
  if (param.startsWith('messages')) return 'prompt';
  if (param === 'max_completion_tokens') return 'max_tokens';
  return param === 'top_logprobs' ? 'logprobs' : param;
}

const FINISH_REASON: Readonly<Record<FinishReason, string>> = Object.freeze({
  stop: 'stop',
  length: 'length',
  content_filter: 'content_filter',
  tool_calls: 'stop',
  function_call: 'stop',
});

type Context = DialectContext<CompletionBody>;

/** Converts a chat completion to a text completion. */
function writeCompletion(response: ChatResponse, context: Context): object {
  const lead = echoOf(context);
  return {
    ...headOf(response.model, context),
    choices: response.choices.map(({ index, message, finish_reason, logprobs }) => ({
      text: lead + (message.content ?? message.refusal ?? ''),
      index,
      logprobs: logprobsOf(logprobs, 0),
      finish_reason: FINISH_REASON[finish_reason],
    })),
    ...(response.usage && { usage: response.usage }),
  };
}

/** Chunks of a text completion have the same shape as the completion. */
function streamCompletion(context: Context): DialectStream {
  const lead = echoOf(context);
  const written = new Map<number, number>();
  const choiceOf = ({ index, delta, finish_reason, logprobs }: ChatChunk['choices'][number]): readonly object[] => {
    const own = `${delta.content ?? ''}${delta.refusal ?? ''}`;
    const isFirst = !written.has(index);
    const offset = written.get(index) ?? 0;
    if (own === '' && !finish_reason && !(isFirst && lead !== '')) return [];
    written.set(index, offset + own.length);
    return [
      {
        text: isFirst ? lead + own : own,
        index,
        logprobs: logprobsOf(logprobs, offset),
        finish_reason: finish_reason ? FINISH_REASON[finish_reason] : null,
      },
    ];
  };
  return {
    push({ model, choices, usage }) {
      const reported = choices.flatMap(choiceOf);
      const withUsage = context.request.stream_options?.include_usage === true && usage;
      if (reported.length === 0 && !withUsage) return '';
      return frame({ ...headOf(model, context), choices: reported, ...(withUsage && { usage }) });
    },
    end: () => 'data: [DONE]\n\n',
    fail: (error, requestId) => frame(error.toBody(requestId)),
  };
}

function headOf(model: string, { id, created }: Context): object {
  return { id: `cmpl-${id}`, object: 'text_completion', created, model };
}

/** Text before each completion: the prompt, if the caller requests an echo. */
function echoOf({ input: { body } }: Context): string {
  return body['echo'] === true ? promptOf(body) : '';
}

/** Log probabilities in the older form: parallel lists, with the offset of each token in the text. */
function logprobsOf(logprobs: unknown, start: number): JsonObject | null {
  const tokens = readArray(readObject(logprobs)['content']).map(readObject);
  if (tokens.length === 0) return null;
  const texts = tokens.map(({ token }) => readString(token) ?? '');
  let offset = start;
  return {
    tokens: texts,
    token_logprobs: tokens.map(({ logprob }) => logprob ?? null),
    top_logprobs: tokens.map((token) => rivalsOf(token)),
    text_offset: texts.map((text) => {
      const at = offset;
      offset += text.length;
      return at;
    }),
  };
}

function rivalsOf(token: JsonObject): JsonObject {
  return Object.fromEntries(
    readArray(token['top_logprobs'])
      .map(readObject)
      .map(({ token: text, logprob }) => [readString(text) ?? '', logprob]),
  );
}

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/**
 * OpenAI's completions, the predecessor of chat: the prompt is the user message, the text the model's. Source:
 * https://platform.openai.com/docs/api-reference/completions
 */
const completions: DialectDefinition<CompletionBody> = {
  name: 'completions',
  request: COMPLETION_REQUEST,
  response: COMPLETION_RESPONSE,
  routes: [
    {
      path: '/v1/completions',
      summary: 'Text completion by a chat model, in OpenAI’s legacy format',
      description: 'One text prompt. With `suffix`, the model fills the gap between the two.',
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
