import fc from 'fast-check';
import type { ChatMessage, ChatRequest } from '../../../contract/index.ts';

/** Arbitrary requests that OpenAI accepts, for properties of codecs. */

const PNG = 'data:image/png;base64,iVBORw0KGgo=';

const text = fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('', ' ', 'Hi', '__proto__', '{"a":1}'));
const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_-]{0,12}$/);
const callId = fc.oneof(fc.stringMatching(/^call_[A-Za-z0-9]{4,12}$/), fc.string({ minLength: 1, maxLength: 80 }));

const part = fc.oneof(
  text.map((value) => ({ type: 'text', text: value })),
  fc.constant({ type: 'image_url', image_url: { url: PNG, detail: 'low' } }),
  fc.constant({ type: 'image_url', image_url: { url: 'https://x.test/a.png' } }),
  fc.constant({ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }),
);
const textContent = fc.oneof(
  text,
  fc.array(
    text.map((value) => ({ type: 'text', text: value })),
    { maxLength: 3 },
  ),
);

const user = fc.record({
  role: fc.constant('user' as const),
  content: fc.oneof(text, fc.array(part, { maxLength: 3 })),
});
const system = fc.record({ role: fc.constantFrom('system' as const, 'developer' as const), content: textContent });
const assistant = fc.record({
  role: fc.constant('assistant' as const),
  content: fc.oneof(textContent, fc.constant(null)),
});

/** Calls of an assistant and all their results, in any order. */
const toolTurn = fc
  .tuple(
    fc.uniqueArray(callId, { minLength: 1, maxLength: 3 }),
    name,
    fc.oneof(fc.json({ maxDepth: 2 }), text),
    textContent,
    fc.boolean(),
  )
  .map(([ids, tool, args, content, reversed]): ChatMessage[] => {
    const calls = ids.map((id) => ({ id, type: 'function' as const, function: { name: tool, arguments: args } }));
    const results = ids.map((id): ChatMessage => ({ role: 'tool', tool_call_id: id, content }));
    return [{ role: 'assistant', content: null, tool_calls: calls }, ...(reversed ? results.reverse() : results)];
  });

const messages = fc
  .array(
    fc.oneof(
      user.map((one) => [one]),
      system.map((one) => [one]),
      assistant.map((one) => [one]),
      toolTurn,
    ),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .map((groups) => groups.flat() as ChatMessage[]);

const schema = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 3 },
    fc.record({ type: fc.constantFrom('string', 'integer', 'boolean'), description: text }, { requiredKeys: ['type'] }),
    fc.record({ type: fc.constant('string'), pattern: fc.constant('^a'), minLength: fc.nat(5) }),
    fc.record({
      enum: fc.array(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ type: fc.constant('array'), items: tie('node') }),
    fc.record({ anyOf: fc.array(tie('node'), { minLength: 1, maxLength: 2 }) }),
    tie('object'),
  ),
  object: fc.record(
    {
      type: fc.constant('object'),
      properties: fc.dictionary(fc.oneof(name, fc.constantFrom('__proto__', 'type', '$ref')), tie('node'), {
        maxKeys: 3,
      }),
      additionalProperties: fc.boolean(),
    },
    { requiredKeys: ['type', 'properties'] },
  ),
})).object as fc.Arbitrary<Record<string, unknown>>;

const tools = fc
  .uniqueArray(name, { maxLength: 3 })
  .chain((names) =>
    fc.tuple(
      ...names.map((one) =>
        fc.record({ name: fc.constant(one), description: text, parameters: schema, strict: fc.boolean() }),
      ),
    ),
  )
  .map((functions) => functions.map((each) => ({ type: 'function' as const, function: each })));

const responseFormat = fc.oneof(
  fc.constant({ type: 'text' as const }),
  fc.constant({ type: 'json_object' as const }),
  schema.map((each) => ({ type: 'json_schema' as const, json_schema: { name: 'x', schema: each } })),
);

/** Request that OpenAI accepts. */
export const chatRequests: fc.Arbitrary<ChatRequest> = fc
  .record(
    {
      model: fc.constant('m'),
      messages,
      temperature: fc.option(fc.double({ min: 0, max: 2, noNaN: true })),
      top_p: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      max_tokens: fc.option(fc.integer({ min: 1, max: 200_000 })),
      max_completion_tokens: fc.option(fc.integer({ min: 1, max: 200_000 })),
      frequency_penalty: fc.option(fc.double({ min: -2, max: 2, noNaN: true })),
      presence_penalty: fc.option(fc.double({ min: -2, max: 2, noNaN: true })),
      stop: fc.option(fc.oneof(text, fc.array(text, { maxLength: 4 }))),
      n: fc.option(fc.integer({ min: 1, max: 8 })),
      seed: fc.option(fc.integer()),
      logprobs: fc.option(fc.boolean()),
      top_logprobs: fc.option(fc.integer({ min: 0, max: 20 })),
      tools,
      tool_choice: fc.constantFrom('auto' as const, 'none' as const, 'required' as const),
      parallel_tool_calls: fc.boolean(),
      response_format: responseFormat,
      reasoning_effort: fc.option(fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh')),
      user: text,
      store: fc.boolean(),
      metadata: fc.dictionary(text, text, { maxKeys: 2 }),
    },
    { requiredKeys: ['model', 'messages'] },
  )
  .map((request) => request as ChatRequest);
