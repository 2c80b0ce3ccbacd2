import fc from 'fast-check';
import type {
  ChatChunk,
  ChatDelta,
  ChatMessage,
  ContentPart,
  ReasoningDetail,
  ToolCall,
} from '../../../../contract/index.ts';

/**
 * Arbitrary conversations that the Messages format can represent, their form in it, and arbitrary streams of chunks.
 */

const text = fc.oneof(fc.string({ minLength: 1, maxLength: 12 }), fc.constantFrom('Hi', '__proto__', 'x-a: b\n'));
const cache = fc.constantFrom(
  {},
  { cache_control: { type: 'ephemeral' } },
  { cache_control: { type: 'ephemeral', ttl: '1h' } },
);
const textPart = fc.tuple(text, cache).map(([value, cached]) => ({ type: 'text' as const, text: value, ...cached }));
const mediaPart = fc
  .tuple(
    fc.constantFrom<ContentPart>(
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
      { type: 'file', file: { filename: 'A', file_data: 'data:application/pdf;base64,JVBE' } },
      { type: 'file', file: { file_url: 'https://x.test/a.pdf' }, context: 'of 2020', citations: { enabled: true } },
    ),
    cache,
  )
  .map(([part, cached]) => ({ ...part, ...cached }));
const parts = fc.array(fc.oneof(textPart, mediaPart), { minLength: 1, maxLength: 3 });
const user = fc.record({ role: fc.constant('user' as const), content: fc.oneof(text, parts) });

const detail: fc.Arbitrary<ReasoningDetail> = fc.oneof(
  fc.tuple(fc.string({ maxLength: 8 }), text).map(([value, signature]) => ({
    ...{ kind: 'text' as const, text: value, signature: `E${signature}`, format: 'anthropic' },
  })),
  text.map((data) => ({ kind: 'encrypted' as const, data: `E${data}`, format: 'anthropic' })),
);

/** Blocks of an assistant in any order, and the results of its calls. */
const exchange = fc
  .tuple(
    fc.array(detail, { maxLength: 2 }),
    fc.array(textPart, { maxLength: 2 }),
    fc.uniqueArray(fc.stringMatching(/^toolu_[A-Za-z0-9]{4,12}$/), { maxLength: 3 }),
    fc.dictionary(fc.string({ maxLength: 5 }), fc.oneof(fc.integer(), text), { maxKeys: 2, noNullPrototype: true }),
    fc.oneof(text, parts),
    fc.array(fc.nat(), { minLength: 7, maxLength: 7 }),
  )
  .filter(([details, texts, ids]) => details.length + texts.length + ids.length > 0)
  .map(([details, texts, ids, input, content, lots]): readonly ChatMessage[] => {
    const calls: readonly ToolCall[] = ids.map((id) => ({
      ...{ id, type: 'function', function: { name: 'look', arguments: JSON.stringify(input) } },
    }));
    const usual = [
      ...details.map((_, index) => `reasoning:${index}`),
      ...texts.map((_, index) => `content:${index}`),
      ...calls.map((_, index) => `tool:${index}`),
    ];
    const order = shuffled(usual, lots);
    const reasoning = details.map(({ text: shown }) => shown ?? '').join('');
    const message: ChatMessage = {
      role: 'assistant',
      content: texts.length > 0 ? texts : calls.length > 0 ? null : '',
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(order.join() !== usual.join() && { order }),
    };
    return [message, ...ids.map((id): ChatMessage => ({ role: 'tool', tool_call_id: id, content }))];
  });

/** Interleaves the kinds; the order within a kind stays. */
function shuffled(usual: readonly string[], lots: readonly number[]): readonly string[] {
  const kinds = ['reasoning', 'content', 'tool'].map((kind) => usual.filter((entry) => entry.startsWith(kind)));
  const order: string[] = [];
  for (const lot of [...lots, ...usual.map(() => 0)]) {
    const left = kinds.filter(({ length }) => length > 0);
    const next = left[lot % Math.max(left.length, 1)]?.shift();
    if (next !== undefined) order.push(next);
  }
  return order;
}

/** Conversation in its canonical form. */
export const conversations: fc.Arbitrary<readonly ChatMessage[]> = fc
  .tuple(
    fc.option(fc.oneof(text, fc.array(textPart, { minLength: 1, maxLength: 2 })), { nil: undefined }),
    fc.array(
      fc.oneof(
        user.map((one) => [one] as readonly ChatMessage[]),
        exchange,
      ),
      { minLength: 1, maxLength: 5 },
    ),
  )
  .map(([system, turns]) => [
    ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
    ...turns.flat(),
  ]);

const delta: fc.Arbitrary<ChatDelta> = fc.oneof(
  text.map((content) => ({ content })),
  text.map((reasoning_content) => ({ reasoning_content })),
  fc.oneof(detail, fc.constant<ReasoningDetail>({ kind: 'encrypted', data: 'X', format: 'responses' })).map((one) => ({
    reasoning_details: [one],
  })),
  text.map((refusal) => ({ refusal })),
  fc.constantFrom<ChatDelta>({}, { role: 'assistant', content: '' }, { content: null }),
  fc.constant({ opaque: [{ type: 'opaque', dialect: 'messages', value: { type: 'server_tool_use', id: 's' } }] }),
  fc.constant({ annotations: [{ type: 'url_citation', url_citation: { url: 'https://x.test' } }] }),
  fc
    .tuple(fc.nat(3), fc.constantFrom('', '{', '}', '{"a":', '1', '"', '{}'), fc.boolean())
    .map(([index, piece, isNamed]) => ({
      tool_calls: [
        {
          index,
          ...(isNamed && { id: `functions.f:${index}`, type: 'function' as const }),
          function: { ...(isNamed && { name: 'f' }), arguments: piece },
        },
      ],
    })),
);

/** Chunks of a stream in any order, with or without an end. */
export const chunkSequences: fc.Arbitrary<readonly ChatChunk[]> = fc.array(
  fc.tuple(delta, fc.constantFrom(null, null, null, 'stop' as const, 'length' as const), fc.nat(9)).map(
    ([one, finish_reason, index]): ChatChunk => ({
      ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
      choices: index === 9 ? [] : [{ index: index === 8 ? 1 : 0, delta: one, finish_reason }],
    }),
  ),
  { maxLength: 20 },
);
