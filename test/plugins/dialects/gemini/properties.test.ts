import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { CHAT_REQUEST, type ChatChunk, type ChatMessage, isGatewayError } from '../../../../contract/index.ts';
import plugin from '../../../../plugins/dialects/gemini.ts';
import { geminiRequest } from '../../../../plugins/formats/google/write-request.ts';
import { anyText } from '../../../support/arbitrary-text.ts';
import { codecCall } from '../../../support/formats/codec.ts';
import { generatedCases } from '../../../support/generated-cases.ts';
import { contextOf, dialectOf, inputOf } from './given.ts';

const dialect = dialectOf(plugin);
const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allowUnionTypes: true });
const isChat = ajv.compile(CHAT_REQUEST);
const isGemini = ajv.compile(dialect.request);

const text = anyText({ minLength: 1, maxLength: 12 });
const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_-]{0,12}$/);
const signature = fc.option(fc.constantFrom('c2ln', 'AAEC'), { nil: undefined });
const signed = (value: string | undefined) =>
  value === undefined ? {} : { extra_content: { google: { thought_signature: value } } };

const image = fc.constant({ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } });
const sound = fc.constant({ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } });
const textPart = text.map((value) => ({ type: 'text', text: value }));
const user = fc
  .oneof(text, fc.tuple(image, fc.oneof(textPart, image, sound)))
  .map((content): ChatMessage => ({ role: 'user', content }));

/** Turn of the model with or without calls, and the results of the calls. */
const turn = fc
  .record({
    content: fc.option(text, { nil: null }),
    own: signature,
    calls: fc.array(fc.tuple(name, fc.dictionary(name, fc.oneof(text, fc.integer(), fc.boolean())), signature), {
      maxLength: 3,
    }),
    thought: fc.option(fc.tuple(text, fc.constantFrom('c2ln', 'AAEC')), { nil: undefined }),
    error: fc.boolean(),
    at: fc.nat(1_000_000),
  })
  .filter(({ content, calls }) => content !== null || calls.length > 0)
  .map(({ content, own, calls, thought, error, at }): ChatMessage[] => {
    const made = calls.map(([called, args, sign], index) => ({
      ...{
        id: `call_${at}_${index}`,
        type: 'function' as const,
        function: { name: called, arguments: JSON.stringify(args) },
      },
      ...signed(index === 0 ? (sign ?? 'c2ln') : sign),
    }));
    const said: ChatMessage = {
      ...{ role: 'assistant', content },
      ...(content !== null && signed(own)),
      ...(thought && {
        reasoning_content: thought[0],
        reasoning_details: [{ kind: 'text', text: thought[0], signature: thought[1], format: 'gemini' }],
      }),
      ...(made.length > 0 && { tool_calls: made }),
    };
    const results = made.map(
      ({ id }, index): ChatMessage => ({
        ...{ role: 'tool', tool_call_id: id, content: index === 0 ? '' : `result ${index}` },
        ...(error && { is_error: true }),
      }),
    );
    return [said, ...results];
  });

/** Conversation in the canonical form: its first and last messages are the user's. */
const conversations = fc
  .tuple(fc.option(text, { nil: undefined }), user, fc.array(fc.tuple(turn, user), { maxLength: 4 }))
  .map(([system, first, turns]): ChatMessage[] => [
    ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
    first,
    ...turns.flatMap(([said, then]) => [...said, then]),
  ]);

describe('any conversation', () => {
  it('survives the way from the canonical form to Gemini’s and back', () => {
    fc.assert(
      fc.property(conversations, (messages) => {
        const { body } = geminiRequest({ model: 'm', messages }, codecCall({ model: 'gemini-3.8-flash' }));
        const sent: object = JSON.parse(JSON.stringify(body));
        const isTaken: boolean = isGemini(sent);
        assert.ok(isTaken, JSON.stringify(isGemini.errors));
        const { request } = dialect.read(inputOf(dialect, sent));
        assert.deepEqual(JSON.parse(JSON.stringify(request.messages)), JSON.parse(JSON.stringify(messages)));
        assert.ok(isChat(request), JSON.stringify(isChat.errors));
      }),
    );
  });
});

const part = fc.oneof(
  fc.record(
    { text: fc.string({ maxLength: 6 }), thought: fc.boolean(), thoughtSignature: fc.string() },
    { requiredKeys: [] },
  ),
  fc.record({
    functionCall: fc.record(
      { id: fc.string(), name, args: fc.dictionary(name, fc.jsonValue()) },
      { requiredKeys: ['name'] },
    ),
  }),
  fc.record({ functionResponse: fc.record({ id: fc.string(), name, response: fc.jsonValue() }, { requiredKeys: [] }) }),
  fc.record({ inlineData: fc.record({ mimeType: fc.string(), data: fc.string() }, { requiredKeys: [] }) }),
  fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 2 }),
);
const content = fc.record(
  { role: fc.constantFrom('user', 'model', 'function'), parts: fc.array(part, { maxLength: 4 }) },
  { requiredKeys: [] },
);

describe('a body that is valid by the schema', () => {
  it('is read as a valid request by OpenAI’s schema, or refused as the caller’s error', () => {
    fc.assert(
      fc.property(
        fc.array(content, { minLength: 1, maxLength: 5 }),
        fc.dictionary(fc.constantFrom('tools', 'toolConfig', 'generationConfig', 'labels', 'x'), fc.jsonValue()),
        (contents, rest) => {
          const body = { ...rest, contents };
          if (!isGemini(body)) return;
          const checked: object = body as object;
          try {
            const { request, place } = dialect.read(inputOf(dialect, checked));
            assert.ok(isChat(request), JSON.stringify(isChat.errors));
            place?.('messages[0].content[0]');
          } catch (error) {
            if (!isGatewayError(error)) throw error;
            assert.equal(error.code, 'invalid_request');
            assert.ok(error.param);
          }
        },
      ),
      { numRuns: generatedCases(500) },
    );
  });
});

const delta = fc.record(
  {
    content: fc.string({ maxLength: 5 }),
    refusal: fc.string({ maxLength: 5 }),
    reasoning_content: fc.string({ maxLength: 5 }),
    tool_calls: fc.array(
      fc.record({
        index: fc.nat(3),
        id: name,
        function: fc.record({ name, arguments: fc.constantFrom('', '{', '}', '{}', '{"a":1}', '1') }),
      }),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
);
const chunks = fc.array(
  fc.record({
    index: fc.nat(2),
    delta,
    finish: fc.constantFrom(null, null, null, 'stop' as const, 'length' as const, 'tool_calls' as const),
  }),
  { maxLength: 20 },
);

describe('any sequence of chunks', () => {
  it('is written as responses with complete parts, each candidate with one end in the last one', () => {
    fc.assert(
      fc.property(chunks, fc.boolean(), (sequence, sse) => {
        const input = inputOf(
          dialect,
          { contents: [{ parts: [{ text: 'x' }] }] },
          { method: 'streamGenerateContent', query: sse ? { alt: 'sse' } : {} },
        );
        const writer = dialect.stream(contextOf(input, dialect.read(input).request));
        const written = sequence.map(({ index, delta: reported, finish }) =>
          writer.push({
            id: 'c',
            object: 'chat.completion.chunk',
            created: 1,
            model: 'm',
            choices: [{ index, delta: reported, finish_reason: finish }],
          } as ChatChunk),
        );
        const whole = written.join('') + writer.end();
        const elements = sse
          ? whole
              .split('\n\n')
              .filter(Boolean)
              .map((frame) => JSON.parse(frame.slice(6)))
          : JSON.parse(whole);
        for (const [at, { candidates }] of elements.entries())
          for (const candidate of candidates) {
            assert.equal('finishReason' in candidate, at === elements.length - 1);
            for (const each of candidate.content.parts)
              assert.ok(typeof each.text === 'string' || typeof each.functionCall.args === 'object');
          }
        assert.equal(elements.at(-1).candidates.length, new Set(sequence.map(({ index }) => index)).size);
        const text = (key: 'content' | 'refusal') =>
          sequence.map(({ delta: reported }) => reported[key]?.length ?? 0).reduce((a, b) => a + b, 0);
        const parts = elements.flatMap((element: { candidates: { content: { parts: { text?: string }[] } }[] }) =>
          element.candidates.flatMap((one) => one.content.parts),
        );
        assert.equal(
          parts.reduce((sum: number, each: { text?: string }) => sum + (each.text?.length ?? 0), 0),
          text('content') + text('refusal'),
        );
      }),
    );
  });
});
