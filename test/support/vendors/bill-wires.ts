/** Vendors' formats for the same text with a usage set by the test, as JSON and as the events of a stream. */

export type Json = Readonly<Record<string, unknown>>;

/** Vendor's format of a response, as JSON and as the events of a stream. */
export interface Wire {
  readonly path: string;
  readonly request: Json;
  readonly whole: (said: Json) => Json;
  readonly events: (said: Json) => readonly (string | object)[];
}

export const WORDS = 'word '.repeat(300).trim();
const messages = [{ role: 'user', content: 'hello there' }];

export const chatChunk = (said: Json, delta: Json, finish: string | null, more: Json = {}): Json => ({
  ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: said['model'] ?? 'm' },
  ...(said['service_tier'] !== undefined && { service_tier: said['service_tier'] }),
  ...{ choices: [{ index: 0, delta, finish_reason: finish }], ...more },
});

export const CHAT: Wire = {
  path: '/v1/chat/completions',
  request: { messages },
  whole: (said) => ({
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message: { role: 'assistant', content: WORDS }, finish_reason: 'stop' }],
    ...said,
  }),
  events: (said) => [
    chatChunk(said, { role: 'assistant', content: WORDS }, null),
    chatChunk(said, {}, 'stop'),
    { ...chatChunk(said, {}, null), choices: [], usage: said['usage'] },
    '[DONE]',
  ],
};

export const RESPONSES: Wire = {
  path: '/v1/responses',
  request: { input: 'hello there' },
  whole: (said) => ({
    ...{ id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'm', ...said },
    output: [
      ...((said['output'] as readonly Json[] | undefined) ?? []),
      {
        ...{ id: 'msg_1', type: 'message', status: 'completed', role: 'assistant' },
        content: [{ type: 'output_text', text: WORDS, annotations: [] }],
      },
    ],
  }),
  events: (said) => {
    const response = RESPONSES.whole(said);
    const begun = { ...response, status: 'in_progress', output: [], usage: null };
    const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
    return [
      { type: 'response.created', response: begun },
      { type: 'response.output_text.delta', ...at, delta: WORDS },
      { type: 'response.completed', response },
    ];
  },
};

export const MESSAGES: Wire = {
  path: '/v1/messages',
  request: { messages, max_tokens: 1000 },
  whole: (said) => ({
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text: WORDS }] },
    ...{ stop_reason: 'end_turn', stop_sequence: null },
    ...said,
  }),
  events: (said) => {
    const { usage, ...rest } = said;
    const message = {
      ...MESSAGES.whole(rest),
      content: [],
      stop_reason: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    const block = [
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: WORDS } },
      { type: 'content_block_stop', index: 0 },
    ];
    return [
      { type: 'message_start', message },
      ...(said['content'] === undefined ? block : []),
      { type: 'message_delta', delta: { stop_reason: said['stop_reason'] ?? 'end_turn', stop_sequence: null }, usage },
      { type: 'message_stop' },
    ];
  },
};

export const GEMINI: Wire = {
  path: '/v1/chat/completions',
  request: { messages },
  whole: ({ grounding, ...said }) => ({
    candidates: [
      {
        ...{ index: 0, content: { role: 'model', parts: [{ text: WORDS }] }, finishReason: 'STOP' },
        ...(grounding !== undefined && { groundingMetadata: grounding }),
      },
    ],
    ...said,
  }),
  events: (said) => [GEMINI.whole(said)],
};
