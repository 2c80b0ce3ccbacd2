import { expect } from 'chai';
import type { ChatRequest } from '../../../../contract/index.ts';
import { geminiResponse } from '../../../../plugins/formats/google/read-response.ts';
import type { GeminiRequest } from '../../../../plugins/formats/google/types.ts';
import { geminiRequest, geminiSchema } from '../../../../plugins/formats/google/write-request.ts';
import { ANSWER_TOOL } from '../../../../plugins/providers/kit/index.ts';
import { chatRequest, codecCall } from '../../../support/formats/codec.ts';

const tool = (name: string, more: object = {}): NonNullable<ChatRequest['tools']>[number] => ({
  type: 'function',
  function: { name, description: 'd', parameters: { type: 'object', properties: { a: { type: 'string' } } }, ...more },
});

function translate(fields: Partial<ChatRequest>, model = 'gemini-3.8-flash'): GeminiRequest {
  return geminiRequest(chatRequest(fields), codecCall({ model })).body as GeminiRequest;
}

describe('gemini tools', () => {
  for (const [title, fields, param] of [
    ['a tool of another kind', { tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    ['a name that begins with a digit', { tools: [tool('9lives')] }, 'tools[0].function.name'],
    ['a name with a dot', { tools: [tool('a.b')] }, 'tools[0].function.name'],
    ['a name twice', { tools: [tool('f'), tool('f')] }, 'tools[1].function.name'],
    ['the name that is ours', { tools: [tool(ANSWER_TOOL)] }, 'tools[0].function.name'],
    ['a choice without tools', { tool_choice: 'required' }, 'tool_choice'],
    [
      'a choice of an unknown tool',
      { tools: [tool('f')], tool_choice: { type: 'function', function: { name: 'z' } } },
      'tool_choice',
    ],
  ] as const) {
    it(`refuses ${title}`, () => {
      expect(() => translate(fields as unknown as Partial<ChatRequest>))
        .to.throw()
        .with.property('param', param);
    });
  }
});

describe('gemini answer formats', () => {
  it('shows a call of that function as the answer’s text', () => {
    const part = { functionCall: { name: ANSWER_TOOL, args: { answer: '42' } } };
    const response = { candidates: [{ content: { parts: [part] }, finishReason: 'STOP' }] };
    const { message, finish_reason } = geminiResponse(response, codecCall()).choices[0]!;
    expect([message.content, message.tool_calls, finish_reason]).to.deep.equal(['{"answer":"42"}', undefined, 'stop']);
  });
});

describe('gemini schemas', () => {
  const clean = (schema: object): unknown => geminiSchema(schema as Record<string, unknown>, 's', []);

  for (const [title, schema, expected] of [
    ['const becomes enum', { const: 'a' }, { enum: ['a'] }],
    [
      'null in an enum moves into the type',
      { type: 'string', enum: ['a', null] },
      { type: ['string', 'null'], enum: ['a'] },
    ],
    ['const null becomes a type', { const: null }, { type: 'null' }],
    ['a choice of booleans becomes a type', { enum: [true] }, { type: 'boolean' }],
    ['nullable becomes a type', { type: 'string', nullable: true }, { type: ['string', 'null'] }],
    [
      'definitions become $defs',
      { $ref: '#/definitions/A', definitions: { A: { const: 1 } } },
      { $ref: '#/$defs/A', $defs: { A: { enum: [1] } } },
    ],
    ['words next to a $ref are dropped', { $ref: '#/$defs/A', description: 'x' }, { $ref: '#/$defs/A' }],
    [
      'allOf is laid over the schema',
      {
        type: 'object',
        properties: { a: {} },
        required: ['a'],
        allOf: [{ properties: { b: { const: 1 } }, required: ['b'] }],
      },
      { type: 'object', properties: { a: {}, b: { enum: [1] } }, required: ['a', 'b'] },
    ],
    [
      'nested schemas are cleaned',
      { type: 'array', items: { anyOf: [{ const: 1 }, { type: 'object', properties: { $schema: { const: 2 } } }] } },
      { type: 'array', items: { anyOf: [{ enum: [1] }, { type: 'object', properties: { $schema: { enum: [2] } } }] } },
    ],
    [
      'a property that has the name of a keyword stays',
      { properties: { pattern: { type: 'string' } } },
      { properties: { pattern: { type: 'string' } } },
    ],
  ] as const) {
    it(title, () => {
      expect(clean(schema)).to.deep.equal(expected);
    });
  }

  it('reports each dropped constraint once', () => {
    const dropped: string[] = [];
    geminiSchema(
      { properties: { a: { pattern: 'x', minLength: 1 }, b: { pattern: 'y' } }, $schema: 'z', default: 1 },
      's',
      dropped,
    );
    expect(dropped).to.deep.equal(['s.pattern', 's.minLength']);
  });

  it('refuses a schema that is nested too deep', () => {
    let schema: Record<string, unknown> = {};
    for (let depth = 0; depth < 100; depth += 1) schema = { items: schema };
    expect(() => geminiSchema(schema, 's', []))
      .to.throw('nested')
      .with.property('code', 'invalid_request');
  });
});
