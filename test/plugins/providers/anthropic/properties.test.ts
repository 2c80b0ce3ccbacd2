import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type ChatRequest, isGatewayError } from '../../../../contract/index.ts';
import { anthropicResponse, anthropicStream } from '../../../../plugins/formats/anthropic/read-response.ts';
import { anthropicTraits } from '../../../../plugins/formats/anthropic/tables.ts';
import type { AnthropicMessage, AnthropicRequest } from '../../../../plugins/formats/anthropic/types.ts';
import { anthropicRequest } from '../../../../plugins/formats/anthropic/write-request.ts';
import { chatRequests } from '../../../support/formats/chat-arbitraries.ts';
import { codecCall } from '../../../support/formats/codec.ts';

const MODELS = [
  'claude-3-haiku-20240307',
  'claude-haiku-4-5',
  'claude-opus-4-6',
  'claude-sonnet-5-5',
  'claude-new-9',
] as const;
const ID = /^[A-Za-z0-9_-]{1,64}$/;

function idsOf(message: AnthropicMessage | undefined, kind: 'tool_use' | 'tool_result'): string[] {
  return (message?.content ?? []).flatMap((block) => {
    if (block.type === 'tool_use' && kind === block.type) return [String(block['id'])];
    return block.type === 'tool_result' && kind === block.type ? [String(block['tool_use_id'])] : [];
  });
}

/** Fields that are always rejected are removed, so that the rest is tested. */
const answerable = chatRequests.map(({ n: _n, ...request }) => request as ChatRequest);

/** Rules whose violation the vendor rejects with a 400. */
function check(body: AnthropicRequest, model: string): void {
  const traits = anthropicTraits(model);
  assert.ok(body.max_tokens >= 1);
  assert.equal(body.messages[0]?.role, 'user');
  if (!traits.prefill) assert.equal(body.messages.at(-1)?.role, 'user');
  body.messages.forEach((message, index) => {
    const next = body.messages[index + 1];
    assert.ok(message.content.length > 0);
    assert.notEqual(next?.role, message.role);
    const used = idsOf(message, 'tool_use');
    assert.ok(used.every((id) => ID.test(id)));
    assert.equal(new Set(used).size, used.length);
    assert.deepEqual(idsOf(next, 'tool_result'), used);
    const types = message.content.map(({ type }) => type);
    assert.ok(types.lastIndexOf('tool_result') < used.length + idsOf(message, 'tool_result').length);
    for (const block of message.content) if (block.type === 'text') assert.notEqual(String(block['text']).trim(), '');
    if (used.length > 0) assert.ok(body.tools);
  });
  for (const tool of body.tools ?? []) assert.equal((tool['input_schema'] as { type?: unknown }).type, 'object');
  const forced = body.tool_choice?.['type'] === 'any' || body.tool_choice?.['type'] === 'tool';
  if (body.tool_choice) assert.ok(body.tools);
  if (forced) assert.ok(traits.forcedTools && body.thinking?.['type'] !== 'enabled');
  if (!traits.sampling) assert.ok(!('temperature' in body) && !('top_p' in body));
  if (!traits.temperatureWithTopP) assert.ok(!('temperature' in body && 'top_p' in body));
  const { temperature = 0 } = body;
  assert.ok(temperature !== null && temperature >= 0 && temperature <= 1);
  if (!traits.jsonSchema) assert.equal(body.output_config?.['format'], undefined);
  if (!traits.thinking.includes('adaptive')) assert.equal(body.output_config?.['effort'], undefined);
  const budget = body.thinking?.['budget_tokens'];
  if (typeof budget === 'number')
    assert.ok(traits.thinking.includes('enabled') && budget >= 1024 && budget < body.max_tokens);
}

describe('anthropic requests of any kind', () => {
  for (const model of MODELS) {
    it(`are valid for ${model}, or are refused by name`, () => {
      fc.assert(
        fc.property(answerable, fc.boolean(), (request, stream) => {
          const before = JSON.stringify(request);
          try {
            check(anthropicRequest(request, codecCall({ model, stream })).body as AnthropicRequest, model);
          } catch (error) {
            if (!isGatewayError(error)) throw error;
            assert.equal(error.code, 'invalid_request');
            assert.ok(error.param);
          }
          assert.equal(JSON.stringify(request), before);
        }),
      );
    });
  }
});

describe('anthropic answers of any kind', () => {
  it('become a completion or a provider error, never an exception', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        try {
          anthropicResponse({ content: body, usage: body }, codecCall());
          anthropicResponse(body, codecCall());
        } catch (error) {
          assert.equal((error as Error).name, 'StreamFailure');
        }
      }),
    );
  });

  const TYPES = [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'x',
  ];
  const event = fc.record({
    type: fc.constantFrom(...TYPES),
    index: fc.oneof(fc.nat(2), fc.jsonValue()),
    message: fc.jsonValue(),
    content_block: fc.oneof(
      fc.jsonValue(),
      fc.record({ type: fc.constantFrom('text', 'tool_use', 'thinking'), name: fc.jsonValue() }),
    ),
    delta: fc.oneof(fc.jsonValue(), fc.record({ type: fc.constant('input_json_delta'), partial_json: fc.jsonValue() })),
    usage: fc.jsonValue(),
  });

  it('in streams become chunks or a provider error, never an exception', () => {
    fc.assert(
      fc.property(fc.array(event), (events) => {
        const decoder = anthropicStream(codecCall());
        try {
          for (const each of events) decoder.push({ data: JSON.stringify(each) });
          decoder.end();
        } catch (error) {
          assert.equal((error as Error).name, 'StreamFailure');
        }
      }),
    );
  });
});
