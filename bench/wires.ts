/** Responses of the bench's upstream, by format. Written by us from the vendors' documentation. */
export type WireName = 'openai' | 'gemini' | 'anthropic';

interface Wire {
  readonly open: string;
  /** Event of typical size, with a time that {@link STAMP} finds. */
  chunk(nanos: bigint): string;
  readonly close: string;
}

/** Time inside a chunk, in nanoseconds of the machine's monotonic clock, which all processes share. */
export const STAMP = /@(\d+)@/g;

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const event = (name: string, value: object): string => `event: ${name}\n${data(value)}`;

/** Splits a template at the position of the time. */
function template(frame: string): (nanos: bigint) => string {
  const [before = '', after = ''] = frame.split('@NOW@');
  return (nanos) => `${before}@${nanos}@${after}`;
}

const openaiHead = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'm' };
const openaiChoice = (delta: object, finish: string | null) => ({
  ...openaiHead,
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
});

export const WIRES: Readonly<Record<WireName, Wire>> = {
  openai: {
    open: data(openaiChoice({ role: 'assistant', content: '' }, null)),
    chunk: template(data(openaiChoice({ content: '@NOW@ word' }, null))),
    close:
      data(openaiChoice({}, 'stop')) +
      data({ ...openaiHead, choices: [], usage: { prompt_tokens: 500, completion_tokens: 100, total_tokens: 600 } }) +
      'data: [DONE]\n\n',
  },
  gemini: {
    open: '',
    chunk: template(
      data({
        candidates: [{ content: { parts: [{ text: '@NOW@ word' }], role: 'model' }, index: 0 }],
        usageMetadata: { promptTokenCount: 500, candidatesTokenCount: 50, totalTokenCount: 550 },
        modelVersion: 'm',
        responseId: 'bench',
      }),
    ),
    close: data({
      candidates: [{ content: { parts: [{ text: '' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 500, candidatesTokenCount: 100, totalTokenCount: 600 },
      modelVersion: 'm',
      responseId: 'bench',
    }),
  },
  anthropic: {
    open:
      event('message_start', {
        type: 'message_start',
        message: {
          id: 'msg_bench',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          stop_reason: null,
          usage: { input_tokens: 500, output_tokens: 1 },
        },
      }) +
      event('content_block_start', {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'text', text: '' },
      }),
    chunk: template(
      event('content_block_delta', {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text: '@NOW@ word' },
      }),
    ),
    close:
      event('content_block_stop', { type: 'content_block_stop', index: 0 }) +
      event('message_delta', {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 100 },
      }) +
      event('message_stop', { type: 'message_stop' }),
  },
};

/** A whole response of 2 KB. */
export const RESPONSE = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'm',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'x'.repeat(1650), refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 500, completion_tokens: 400, total_tokens: 900 },
});

/** Chat request of about `bytes` bytes; its model name selects the response. */
export function chatRequest(bytes: number, model: string, stream: boolean): string {
  const base = {
    model,
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
    messages: [{ role: 'user', content: '' }],
  };
  const room = Math.max(1, bytes - JSON.stringify(base).length);
  return JSON.stringify({ ...base, messages: [{ role: 'user', content: 'y'.repeat(room) }] });
}

/** Response in Anthropic's format. */
export const MESSAGE = JSON.stringify({
  id: 'msg_bench',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'x'.repeat(1750) }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 500, output_tokens: 400 },
});

/** Request of about `bytes` bytes in another client format. */
export function requestOf(format: 'messages' | 'responses', bytes: number, model: string, stream: boolean): string {
  const text = 'y'.repeat(Math.max(1, bytes - 120));
  const common = { model, ...(stream && { stream }) };
  return JSON.stringify(
    format === 'messages'
      ? { ...common, max_tokens: 4096, messages: [{ role: 'user', content: text }] }
      : { ...common, store: false, input: [{ type: 'message', role: 'user', content: text }] },
  );
}
