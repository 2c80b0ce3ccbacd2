import { type ChatMessage, type ChatRequest, isObject, type JsonObject } from '../../contract/index.ts';
import { TEMPLATE_ORDER } from './kit/index.ts';
import {
  drop,
  type Effort,
  type Emulation,
  emulate,
  nearestEffort,
  OPENAI_ONLY,
  openaiCompatible,
  pass,
  refuse,
  rename,
  within,
} from './openai-compatible.ts';

/**
 * Sources: mistralai/platform-docs-public `openapi.yaml` (2026-08). Bodies and messages are closed: unknown keys are
 * 422.
 */
export default openaiCompatible({
  name: 'mistral',
  baseUrl: 'https://api.mistral.ai/v1',
  apiKeyEnv: 'MISTRAL_API_KEY',
  media: ['input_audio'],
  fields: {
    ...OPENAI_ONLY,
    logit_bias: refuse('no token biases'),
    logprobs: drop(undefined, false),
    max_completion_tokens: rename('max_tokens'),
    metadata: pass(),
    prediction: pass(),
    prompt_cache_key: pass(),
    reasoning_effort: emulate(
      'nearest of `none` and `high` for Small 4 and Medium 3.5; `low`, `medium` or `high` for Large 4',
      effort,
    ),
    seed: rename('random_seed'),
    temperature: within(0, 1.5),
    top_logprobs: drop(),
    user: drop(),
  },
  unknown: 'dropped',
  extras: ['random_seed', 'prompt_mode', 'guardrails', 'safe_prompt'],
  roles: { developer: 'system' },
  // https://github.com/mistralai/mistral-common `protocol/instruct/validator.py`; its normalizer also joins adjacent
  // turns of one role.
  turnOrder: () => ({ ...TEMPLATE_ORDER, alternate: true }),
  files: {
    data: ['application/pdf'],
    urls: true,
    part: (name, url) => ({ type: 'document_url', document_url: url, document_name: name }),
  },
  toolIds: { valid: /^[a-zA-Z0-9]{9}$/, length: 9 },
  messages: closedMessages,
  // Its response repeats the prefix. https://docs.mistral.ai/capabilities/completion/usage#prefix
  continues: () => ({ echoes: true }),
  streamUsage: 'always',
  // Audio is billed by the second, in addition to tokens.
  usageUnits: ({ prompt_audio_seconds: seconds }) =>
    typeof seconds === 'number' && seconds > 0 ? { seconds } : undefined,
  lacks: {
    'log probabilities': 'requests and responses have no field for them',
    'reasoning tokens': 'its usage does not count them separately',
  },
  operations: ['moderations', 'transcription'],
  without: ['audio/translations'],
  transcription: { fields: ['language', 'temperature'], formats: false, event: soundEvent },
  embeddings: {
    fields: { dimensions: rename('output_dimension'), user: drop() },
    unknown: 'dropped',
  },
  errors: {
    messages: [
      // Mistral's own servers are at capacity; neither the rate nor the request is the cause.
      { status: [400, 429, 503], text: /^Service tier capacity exceeded/, is: 'overloaded' },
      // The message is the same for an invalid key and for one with an exhausted quota, which recovers by itself.
      { status: [401], text: /^Unauthorized$/, is: 'billing' },
    ],
  },
});

/** Models that accept an effort, with their efforts. https://docs.mistral.ai/capabilities/reasoning/adjustable */
const EFFORTS: readonly (readonly [model: RegExp, efforts: readonly Effort[]])[] = [
  [/^mistral-(small-(latest|2603)|medium-(latest|2604|3-5))/, ['high', 'none']],
  [/^mistral-large-4/, ['low', 'medium', 'high']],
];

function effort(value: unknown, { model }: ChatRequest): Emulation {
  const [, efforts] = EFFORTS.find(([pattern]) => pattern.test(model)) ?? [];
  return efforts ? { body: { reasoning_effort: nearestEffort(value, efforts) } } : { dropped: value !== 'none' };
}

const FIELDS: Readonly<Record<string, readonly string[]>> = Object.freeze({
  assistant: ['role', 'content', 'tool_calls', 'prefix'],
  tool: ['role', 'content', 'tool_call_id', 'name'],
});

/** Restricts messages to the keys of their role; a response to continue needs `prefix`. */
function closedMessages(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const last = messages.at(-1);
  const closed = messages.map((message) => {
    const known = FIELDS[message.role] ?? ['role', 'content'];
    const begun =
      message === last && message.role === 'assistant' && !message.tool_calls && message['prefix'] === undefined;
    if (!begun && Object.keys(message).every((field) => known.includes(field))) return message;
    const kept = Object.entries(message).filter(([field]) => known.includes(field));
    return { ...Object.fromEntries(kept), ...(begun && { prefix: true }) } as ChatMessage;
  });
  return closed.every((message, at) => message === messages[at]) ? messages : closed;
}

/** Source: mistralai/client-ts, `TranscriptionStreamEvents`. */
function soundEvent({ type, ...event }: JsonObject): JsonObject | undefined {
  if (type === 'transcription.text.delta') return { type: 'transcript.text.delta', delta: event['text'] };
  if (type === 'transcription.done')
    return {
      type: 'transcript.text.done',
      text: event['text'],
      ...(isObject(event['usage']) && { usage: event['usage'] }),
    };
  return undefined;
}
