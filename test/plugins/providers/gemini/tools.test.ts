import { expect } from 'chai';
import type { ChatRequest } from '../../../../core/index.ts';
import { geminiResponse } from '../../../../plugins/formats/google/read-response.ts';
import type { GeminiRequest } from '../../../../plugins/formats/google/types.ts';
import { geminiRequest, geminiSchema } from '../../../../plugins/formats/google/write-request.ts';
import { ANSWER_TOOL } from '../../../../plugins/providers/kit/index.ts';
import { chatRequest, codecCall } from '../../../support/formats/codec.ts';

const tool = (name: string, more: object = {}): NonNullable<ChatRequest['tools']>[number] => ({
  type: 'function',
  function: { name, description: 'd', parameters: { type: 'object', properties: { a: { type: 'string' } } }, ...more },
});
const SCHEMA = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] };
const FORMAT = { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA } } as const;

function translate(fields: Partial<ChatRequest>, model = 'gemini-3.8-flash'): GeminiRequest {
  return geminiRequest(chatRequest(fields), codecCall({ model })).body as GeminiRequest;
}

function mode(fields: Partial<ChatRequest>, model?: string): unknown {
  return translate({ tools: [tool('f'), tool('g')], ...fields }, model).toolConfig?.functionCallingConfig;
}

describe('gemini tools', () => {
  it('declares functions by JSON Schema, and none where there are no parameters', () => {
    const body = translate({
      tools: [tool('f'), tool('g', { parameters: { type: 'object', properties: {} }, description: undefined })],
    });
    expect(body.tools).to.deep.equal([
      {
        functionDeclarations: [
          {
            name: 'f',
            description: 'd',
            parametersJsonSchema: { type: 'object', properties: { a: { type: 'string' } } },
          },
          { name: 'g', description: '' },
        ],
      },
    ]);
  });

  for (const [choice, expected] of [
    [undefined, { mode: 'AUTO' }],
    ['auto', { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [
      { type: 'function', function: { name: 'g' } },
      { mode: 'ANY', allowedFunctionNames: ['g'] },
    ],
    [
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
      { mode: 'VALIDATED', allowedFunctionNames: ['f'] },
    ],
    [
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
      { mode: 'ANY', allowedFunctionNames: ['f'] },
    ],
  ] as const) {
    it(`maps tool_choice ${JSON.stringify(choice) ?? 'that is absent'}`, () => {
      expect(mode({ tool_choice: choice } as Partial<ChatRequest>)).to.deep.equal(expected);
    });
  }

  it('has calls of strict tools validated', () => {
    expect(mode({ tools: [tool('f', { strict: true })] })).to.deep.equal({ mode: 'VALIDATED' });
  });

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
  it('asks for JSON by media type', () => {
    expect(translate({ response_format: { type: 'json_object' } }).generationConfig).to.deep.equal({
      responseMimeType: 'application/json',
    });
  });

  it('asks for a schema natively', () => {
    expect(translate({ response_format: FORMAT }).generationConfig).to.deep.equal({
      responseMimeType: 'application/json',
      responseJsonSchema: SCHEMA,
    });
  });

  it('asks for both schema and tools from Gemini 3 on', () => {
    const body = translate({ tools: [tool('f')], response_format: FORMAT });
    expect(body.generationConfig).to.have.property('responseJsonSchema');
    expect(body.toolConfig?.functionCallingConfig.mode).to.equal('AUTO');
  });

  it('makes the schema a function beside the tools before Gemini 3, which refuses the two together', () => {
    const body = translate({ tools: [tool('f')], response_format: FORMAT }, 'gemini-2.5-flash');
    expect(body).to.not.have.property('generationConfig');
    expect(body.tools?.[0]?.functionDeclarations.map(({ name }) => name)).to.deep.equal(['f', ANSWER_TOOL]);
    expect(body.toolConfig?.functionCallingConfig).to.deep.equal({
      mode: 'ANY',
      allowedFunctionNames: ['f', ANSWER_TOOL],
    });
  });

  it('shows a call of that function as the answer’s text', () => {
    const part = { functionCall: { name: ANSWER_TOOL, args: { answer: '42' } } };
    const answer = { candidates: [{ content: { parts: [part] }, finishReason: 'STOP' }] };
    const { message, finish_reason } = geminiResponse(answer, codecCall()).choices[0]!;
    expect([message.content, message.tool_calls, finish_reason]).to.deep.equal(['{"answer":"42"}', undefined, 'stop']);
  });

  it('instructs the model where plain JSON and tools meet before Gemini 3', () => {
    const body = translate({ tools: [tool('f')], response_format: { type: 'json_object' } }, 'gemini-2.5-flash');
    expect(body.systemInstruction?.parts[0]?.text).to.include('JSON');
    expect(body).to.not.have.property('generationConfig');
  });

  for (const choice of ['required', { type: 'function', function: { name: 'f' } }] as const) {
    it(`leaves the format out beside the forced call ${JSON.stringify(choice)}`, () => {
      expect(translate({ tools: [tool('f')], tool_choice: choice, response_format: FORMAT })).to.not.have.property(
        'generationConfig',
      );
    });
  }

  it('leaves the tools out when none may be called and a format is asked for', () => {
    const body = translate({ tools: [tool('f')], tool_choice: 'none', response_format: FORMAT }, 'gemini-2.5-flash');
    expect(body).to.not.have.property('tools');
    expect(body.generationConfig).to.have.property('responseJsonSchema');
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
    ['words beside a $ref go', { $ref: '#/$defs/A', description: 'x' }, { $ref: '#/$defs/A' }],
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

  it('tells each constraint that had to go once', () => {
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
