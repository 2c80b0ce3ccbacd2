import { expect } from 'chai';
import type { ChatRequest } from '../../../../core/index.ts';
import type { AnthropicRequest } from '../../../../plugins/formats/anthropic/types.ts';
import { fitsStrictly, strictSchema } from '../../../../plugins/formats/anthropic/write-contents.ts';
import { anthropicRequest } from '../../../../plugins/formats/anthropic/write-request.ts';
import { ANSWER_TOOL } from '../../../../plugins/providers/kit/index.ts';
import { chatRequest, codecCall } from '../../../support/formats/codec.ts';

const FORCED = 'claude-sonnet-5';
const NOT_FORCED = 'claude-sonnet-5-5';
const OLD = 'claude-3-5-haiku-latest';

const tool = (name: string, more: object = {}): NonNullable<ChatRequest['tools']>[number] => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }, ...more },
});
const SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' } },
  required: ['answer'],
  additionalProperties: false,
};
/** A map of texts by any name. */
const MAP = { type: 'object', additionalProperties: { type: 'string' } };
const format = (schema: object): Partial<ChatRequest> => ({
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema: schema as Record<string, unknown> } },
});
const named = (name: string): ChatRequest['tool_choice'] => ({ type: 'function', function: { name } });

function translate(fields: Partial<ChatRequest>, model = FORCED): AnthropicRequest {
  return anthropicRequest(chatRequest(fields), codecCall({ model })).body as AnthropicRequest;
}

function dropped(fields: Partial<ChatRequest>, model = FORCED): readonly string[] {
  return anthropicRequest(chatRequest(fields), codecCall({ model })).dropped ?? [];
}

/** The last words of the user, where an instruction of ours stands. */
function lastText(body: AnthropicRequest): unknown {
  return body.messages.at(-1)?.content.at(-1)?.['text'];
}

describe('anthropic tools', () => {
  it('have an object schema always, and keep their cache mark', () => {
    const marked = { ...tool('g', { parameters: undefined, description: 'd' }), cache_control: { type: 'ephemeral' } };
    expect(translate({ tools: [tool('f', { parameters: { properties: { x: {} } } }), marked] }).tools).to.deep.equal([
      { name: 'f', input_schema: { type: 'object', properties: { x: {} } } },
      {
        name: 'g',
        description: 'd',
        input_schema: { type: 'object', properties: {} },
        cache_control: { type: 'ephemeral' },
      },
    ]);
  });

  it('refuse a choice at the root of their schema', () => {
    expect(() => translate({ tools: [tool('f', { parameters: { anyOf: [{ type: 'object' }] } })] }))
      .to.throw()
      .with.property('param', 'tools[0].function.parameters');
  });

  it('are strict where the model can be, and told where not', () => {
    const tools = [tool('f', { strict: true })];
    expect(translate({ tools }).tools?.[0]).to.deep.include({ strict: true });
    expect(translate({ tools }).tools?.[0]?.input_schema).to.have.property('additionalProperties', false);
    expect(translate({ tools }, OLD).tools?.[0]).to.not.have.property('strict');
    expect(dropped({ tools }, OLD)).to.deep.equal(['tools.strict']);
  });

  for (const [choice, expected] of [
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [named('g'), { type: 'tool', name: 'g' }],
  ] as const) {
    it(`map tool_choice ${JSON.stringify(choice)}`, () => {
      expect(
        translate({ tools: [tool('f'), tool('g')], tool_choice: choice } as Partial<ChatRequest>).tool_choice,
      ).to.deep.equal(expected);
    });
  }

  it('are called one at a time when parallel calls are off', () => {
    const fields = { tools: [tool('f')], parallel_tool_calls: false };
    expect(translate(fields).tool_choice).to.deep.equal({ type: 'auto', disable_parallel_tool_use: true });
    expect(translate({ ...fields, tool_choice: 'none' }).tool_choice).to.deep.equal({ type: 'none' });
  });

  it('are narrowed to those that are allowed', () => {
    const tool_choice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named('f')] } };
    const body = translate({ tools: [tool('f'), tool('g')], tool_choice } as Partial<ChatRequest>);
    expect(body.tools?.map(({ name }) => name)).to.deep.equal(['f']);
    expect(body.tool_choice).to.deep.equal({ type: 'auto' });
  });

  it('are asked for by an instruction where the model cannot be forced, and that is told', () => {
    const fields = { tools: [tool('f'), tool('g')], tool_choice: named('g') } as Partial<ChatRequest>;
    const body = translate(fields, NOT_FORCED);
    expect(body.tool_choice).to.deep.equal({ type: 'auto' });
    expect(body.tools?.map(({ name }) => name)).to.deep.equal(['f', 'g']);
    expect(lastText(body)).to.include('`g`');
    expect(dropped(fields, NOT_FORCED)).to.deep.equal(['tool_choice']);
  });

  it('D26: stay beside one that is named', () => {
    const fields = { tools: [tool('f'), tool('g')], tool_choice: named('g') } as Partial<ChatRequest>;
    expect(translate(fields).tools?.map(({ name }) => name)).to.deep.equal(['f', 'g']);
  });

  for (const model of ['claude-opus-4-6', 'claude-opus-4-8', 'claude-sonnet-5', 'claude-fable-5']) {
    it(`D23: are not forced while ${model} thinks`, () => {
      const fields: Partial<ChatRequest> = { tools: [tool('f')], tool_choice: 'required', reasoning_effort: 'high' };
      const body = translate(fields, model);
      expect(body.tool_choice).to.deep.equal({ type: 'auto' });
      expect(body.thinking).to.include({ type: 'adaptive' });
      expect(lastText(body)).to.include('one of your tools');
      expect(dropped(fields, model)).to.deep.equal(['tool_choice']);
      expect(translate({ ...fields, reasoning_effort: 'none' }, model).tool_choice).to.deep.equal({ type: 'any' });
    });
  }

  it('D23: are not forced while the caller’s own thinking is on', () => {
    const thinking = { type: 'enabled', budget_tokens: 2048 };
    const body = translate({ tools: [tool('f')], tool_choice: 'required', thinking }, 'claude-haiku-4-5');
    expect(body.tool_choice).to.deep.equal({ type: 'auto' });
  });

  it('D23: stand in for no answer format while the model thinks', () => {
    const body = translate({ ...format(MAP), reasoning_effort: 'high' });
    expect(body).to.not.have.property('tools');
    expect(lastText(body)).to.include('JSON Schema');
  });
});

describe('anthropic answer formats', () => {
  it('are native where the model has them', () => {
    expect(translate(format(SCHEMA)).output_config).to.deep.equal({ format: { type: 'json_schema', schema: SCHEMA } });
  });

  it('share output_config with the effort', () => {
    expect(translate({ ...format(SCHEMA), reasoning_effort: 'low' }).output_config).to.have.all.keys(
      'format',
      'effort',
    );
  });

  it('become a forced tool for older models', () => {
    const body = translate(format(SCHEMA), OLD);
    expect(body.tools).to.have.nested.property('[0].input_schema').that.deep.equals(SCHEMA);
    expect(body.tool_choice).to.deep.equal({ type: 'tool', name: ANSWER_TOOL });
  });

  it('become one of the tools, one of which must be called, for older models with tools', () => {
    const body = translate({ ...format(SCHEMA), tools: [tool('f')] }, OLD);
    expect(body.tools?.map(({ name }) => name)).to.deep.equal(['f', ANSWER_TOOL]);
    expect(body.tool_choice).to.deep.equal({ type: 'any' });
  });

  it('become a forced tool where the vendor would close a map', () => {
    expect(translate(format(MAP)).tool_choice).to.deep.equal({ type: 'tool', name: ANSWER_TOOL });
  });

  it('become an instruction with the schema where neither is possible', () => {
    const body = translate(format(MAP), NOT_FORCED);
    expect(body).to.not.have.any.keys('output_config', 'tools');
    expect(lastText(body)).to.include(JSON.stringify(MAP));
  });

  it('become an instruction for plain JSON, behind the caller’s own words', () => {
    const body = translate({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      response_format: { type: 'json_object' },
    });
    expect(body.system).to.deep.equal([{ type: 'text', text: 'Be brief.' }]);
    expect(lastText(body)).to.include('JSON');
  });

  it('are left out beside a call that must be made', () => {
    const body = translate({ ...format(SCHEMA), tools: [tool('f')], tool_choice: 'required' });
    expect(body).to.not.have.property('output_config');
    expect(body.tool_choice).to.deep.equal({ type: 'any' });
  });
});

describe('anthropic schemas', () => {
  it('tell the model in words what it cannot be held to', () => {
    const schema = {
      type: 'object',
      properties: { n: { type: 'integer', minimum: 1, description: 'A count.' }, s: { type: 'string', format: 'hex' } },
    };
    expect(strictSchema(schema)).to.deep.equal({
      type: 'object',
      properties: {
        n: { type: 'integer', description: 'A count.\n\n{minimum: 1}' },
        s: { type: 'string', description: '{format: "hex"}' },
      },
      additionalProperties: false,
    });
  });

  it('say anyOf for oneOf and keep what the vendor knows', () => {
    const schema = {
      oneOf: [
        { const: 1 },
        { type: 'string', format: 'date' },
        { type: 'array', items: { type: 'null' }, minItems: 1 },
      ],
    };
    expect(strictSchema(schema)).to.deep.equal({ anyOf: schema.oneOf });
  });

  it('are refused when they are nested too deep', () => {
    let schema: Record<string, unknown> = {};
    for (let depth = 0; depth < 100; depth += 1) schema = { items: schema };
    expect(() => strictSchema(schema))
      .to.throw('nested')
      .with.property('code', 'invalid_request');
  });

  const optional = (count: number): object => ({
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, { type: 'string' }])),
  });
  const doubling = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [
      `d${index}`,
      { anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
    ]),
  );
  for (const [title, schema, fits] of [
    ['an ordinary object', SCHEMA, true],
    ['a reference', { type: 'object', properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: SCHEMA } }, true],
    [
      'a recursion',
      { $defs: { A: { type: 'object', properties: { a: { $ref: '#/$defs/A' } } } }, $ref: '#/$defs/A' },
      false,
    ],
    ['a map', MAP, false],
    ['a free object', { type: 'object' }, false],
    ['few optional fields', optional(24), true],
    ['many optional fields', optional(25), false],
    ['references that double forty times', { $ref: '#/$defs/d0', $defs: doubling }, false],
  ] as const) {
    it(`${fits ? 'fit' : 'do not fit'} the vendor’s decoder: ${title}`, () => {
      expect(fitsStrictly(schema as Record<string, unknown>)).to.equal(fits);
    });
  }
});

describe('anthropic emulations', () => {
  const MODEL = 'claude-opus-5-5';
  const asked = { role: 'user', content: 'Look.' } as const;
  const signed = [{ kind: 'text', text: 'Hm', signature: 'S', format: 'anthropic' }] as const;
  const called = {
    role: 'assistant',
    content: null,
    reasoning_details: signed,
    tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
  } as const;
  const system = { role: 'system', content: 'Be brief.' } as const;
  const first = { messages: [system, asked], tools: [tool('f')] };
  const second = {
    messages: [system, asked, called, { role: 'tool', tool_call_id: 'a', content: 'ok' }],
    tools: first.tools,
  };

  for (const [name, once] of [
    ['a forced tool', { tool_choice: 'required' }],
    ['a response format of plain JSON', { response_format: { type: 'json_object' } }],
    ['a response format that the vendor cannot hold', format(MAP)],
  ] as const) {
    it(`E18: ${name} of one turn leaves the prefix of the next one alone`, () => {
      const [one, next] = [
        translate({ ...first, ...once } as Partial<ChatRequest>, MODEL),
        translate(second as Partial<ChatRequest>, MODEL),
      ];
      expect([next.system, next.tools]).to.deep.equal([one.system, one.tools]);
      expect(one.messages[0]?.content.slice(0, 1)).to.deep.equal(next.messages[0]?.content);
    });
  }

  it('E18: let thinking be left out where the prefix changed, and ask for the beta of it', () => {
    const request = (rules?: { deny: string[]; always: string[] }) =>
      anthropicRequest(chatRequest(second as Partial<ChatRequest>), codecCall({ model: MODEL }), rules);
    expect(request().body).to.have.deep.property('thinking', {
      type: 'adaptive',
      block_binding: { prefix_mismatch_behavior: 'drop_block' },
    });
    expect(request().headers).to.deep.equal({ 'anthropic-beta': 'thinking-binding-controls-2026-08-01' });
    const denied = request({ deny: ['thinking-binding-controls-2026-08-01'], always: [] });
    expect([denied.headers, 'thinking' in (denied.body as object)]).to.deep.equal([undefined, false]);
    expect(translate(first, MODEL)).not.to.have.property('thinking');
    expect(translate(second as Partial<ChatRequest>, 'claude-opus-5')).not.to.have.property('thinking');
  });

  it('E18: a format that the vendor cannot hold adds no tool for a model whose thinking is bound to its tools', () => {
    expect(translate(format(MAP), 'claude-haiku-5-5')).not.to.have.any.keys('tools', 'tool_choice');
  });
});
