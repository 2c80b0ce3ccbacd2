import type { ChatChunk, ChatDelta, ChatResponse, FinishReason, ToolCall } from '../../contract/index.ts';

/** Model responses in the canonical shape. Every dialect must write each of them, as JSON and as a stream. */
export interface Sample {
  readonly title: string;
  readonly response: ChatResponse;
}

type Message = ChatResponse['choices'][number]['message'];

const USAGE = {
  prompt_tokens: 120,
  completion_tokens: 40,
  total_tokens: 160,
  prompt_tokens_details: { cached_tokens: 20 },
  completion_tokens_details: { reasoning_tokens: 8 },
};

function sample(title: string, said: Partial<Message>, reason: FinishReason = 'stop'): Sample {
  const message: Message = { role: 'assistant', content: null, refusal: null, ...said };
  return {
    title,
    response: {
      ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1_790_000_000, model: 'some-model' },
      choices: [{ index: 0, message, finish_reason: reason, logprobs: null }],
      usage: USAGE,
    },
  };
}

const call = (id: string, name: string, args: string): ToolCall => ({
  ...{ id, type: 'function', function: { name, arguments: args } },
});
const look = call('call_1', 'look', '{"city":"Paris","days":[1,2]}');

export const SAMPLES: readonly Sample[] = Object.freeze([
  sample('a text', { content: 'Good morning, 世界 🌍. "Quoted"\n\ndata: and a frame in it\n' }),
  sample('nothing', { content: '' }),
  sample('reasoning before a text', { reasoning_content: 'Let me think.', content: 'Yes.' }),
  sample('a tool call', { tool_calls: [look] }, 'tool_calls'),
  sample('a text and a tool call', { content: 'I look.', tool_calls: [look] }, 'tool_calls'),
  sample('a tool call that the vendor ends with stop', { tool_calls: [look] }),
  sample(
    'parallel tool calls, one without arguments',
    { tool_calls: [look, call('call_2', 'time', '{}'), call('call_3', 'look', '{"city":"Rome"}')] },
    'tool_calls',
  ),
  sample('a text that the limit cut', { content: 'Once upon a' }, 'length'),
  sample('a refusal', { refusal: 'I cannot help with that.' }, 'content_filter'),
  sample('reasoning alone', { reasoning_content: 'Hm.' }, 'length'),
  sample('names of calls that look like something else', { tool_calls: [call('functions.Bash:0', '__proto__', '{}')] }),
]);

/** Second response, which is streamed concurrently with each of the samples. */
export const INTERLEAVING: Sample = Object.freeze(
  sample(
    'another',
    { content: 'Quite another thing.', tool_calls: [call('call_9', 'other', '{"x":9}')] },
    'tool_calls',
  ),
);

/** Number of characters per chunk of a streamed sample. */
const PIECE = 3;

function bits(text: string | null | undefined): readonly string[] {
  return [...(text ?? '')].join('').match(new RegExp(`[\\s\\S]{1,${PIECE}}`, 'gu')) ?? [];
}

/** Returns a sample as a stream of small chunks, with usage in the last one. */
export function chunksOf({ id, created, model, choices, usage }: ChatResponse): readonly ChatChunk[] {
  const head = { id, object: 'chat.completion.chunk' as const, created, model };
  const chunks = choices.flatMap(({ index, message, finish_reason }) => {
    const deltas: readonly ChatDelta[] = [
      { role: 'assistant', content: '' },
      ...bits(message.reasoning_content).map((reasoning_content) => ({ reasoning_content })),
      ...(message.reasoning_details ? [{ reasoning_details: message.reasoning_details }] : []),
      ...bits(message.content).map((content) => ({ content })),
      ...bits(message.refusal).map((refusal) => ({ refusal })),
      ...(message.tool_calls ?? []).flatMap(({ id: callId, function: called }, at): readonly ChatDelta[] => [
        {
          tool_calls: [{ index: at, id: callId, type: 'function', function: { name: called.name, arguments: '' } }],
        },
        ...bits(called.arguments).map((piece) => ({ tool_calls: [{ index: at, function: { arguments: piece } }] })),
      ]),
    ];
    return [
      ...deltas.map((delta): ChatChunk => ({ ...head, choices: [{ index, delta, finish_reason: null }] })),
      { ...head, choices: [{ index, delta: {}, finish_reason }] } satisfies ChatChunk,
    ];
  });
  return [...chunks, ...(usage ? [{ ...head, choices: [], usage }] : [])];
}

/**
 * Two calls with interleaved arguments, then a text: a format with blocks cannot write them in the order they arrive.
 */
export const INTERLEAVED: readonly ChatChunk[] = Object.freeze(
  [
    { reasoning_content: 'Think' },
    { content: 'Text ' },
    { reasoning_content: ' again' },
    { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{"a"' } }] },
    { tool_calls: [{ index: 1, id: 'b', type: 'function', function: { name: 'look', arguments: '{"b"' } }] },
    { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] },
    { content: 'between' },
    { tool_calls: [{ index: 1, function: { arguments: ':2}' } }] },
    {},
  ].map((delta, at, all): ChatChunk => {
    const isLast = at === all.length - 1;
    return {
      ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'some-model' },
      choices: [{ index: 0, delta: delta as ChatDelta, finish_reason: isLast ? 'tool_calls' : null }],
      ...(isLast && { usage: USAGE }),
    };
  }),
);
