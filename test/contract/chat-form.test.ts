import { expect } from 'chai';
import type { ChatRequest } from '../../contract/chat.ts';
import { normalChat } from '../../contract/chat-form.ts';
import { CHAT_MESSAGE, CHAT_REQUEST } from '../../contract/chat-schemas.ts';
import { type GatewayError, isGatewayError } from '../../contract/errors.ts';
import { factsOf } from '../../contract/facts.ts';
import type { Schema } from '../../contract/json.ts';

const HI = { role: 'user', content: 'Hi' };
const TOOL = { type: 'function', function: { name: 'f' } };

const normal = (fields: object): Record<string, unknown> =>
  normalChat({ model: 'm', messages: [HI], ...fields } as unknown as ChatRequest) as Record<string, unknown>;

const message = (fields: object): unknown => (normal({ messages: [fields] })['messages'] as unknown[])[0];

function refusal(fields: object): GatewayError {
  try {
    normal(fields);
  } catch (thrown) {
    if (isGatewayError(thrown)) return thrown;
  }
  return expect.fail('nothing was refused');
}

const namesOf = ({ properties = {} }: Schema): readonly string[] => Object.keys(properties as object);
const typesOf = (schema: Schema, name: string): readonly unknown[] =>
  [(schema['properties'] as Record<string, Schema>)[name]?.['type']].flat();

describe('the normal form of a chat request', () => {
  for (const name of namesOf(CHAT_REQUEST).filter((field) => field !== 'model' && field !== 'messages')) {
    it(`G2: \`${name}: null\` is absent`, () => {
      expect(normal({ [name]: null })).to.deep.equal({ model: 'm', messages: [HI] });
    });
    if (typesOf(CHAT_REQUEST, name).includes('array'))
      it(`G2: \`${name}: []\` is absent`, () => {
        expect(normal({ [name]: [] })).to.deep.equal({ model: 'm', messages: [HI] });
      });
  }

  for (const name of namesOf(CHAT_MESSAGE).filter((field) => field !== 'role' && field !== 'content')) {
    it(`G2: \`messages[].${name}: null\` is absent`, () => {
      expect(message({ ...HI, [name]: null })).to.deep.equal(HI);
    });
    if (typesOf(CHAT_MESSAGE, name).includes('array') && name !== 'order')
      it(`G2: \`messages[].${name}: []\` is absent`, () => {
        expect(message({ role: 'assistant', content: 'Yes?', [name]: [] })).to.deep.equal({
          ...{ role: 'assistant', content: 'Yes?' },
        });
      });
  }

  for (const role of ['system', 'developer', 'user', 'assistant'])
    it(`G2: a ${role} message with \`content: []\` is empty`, () => {
      expect(message({ role, content: [] })).to.deep.equal({ role, content: '' });
    });

  it('G2: an assistant’s `content: []` with calls is null', () => {
    const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }];
    expect(message({ role: 'assistant', content: [], tool_calls: calls })).to.deep.equal({
      ...{ role: 'assistant', content: null, tool_calls: calls },
    });
  });

  it('G2: nulls of parts, tools, calls and formats are absent', () => {
    const called = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":null}' } };
    expect(
      normal({
        messages: [
          {
            role: 'user',
            content: [{ type: 'image_url', image_url: { url: 'x', detail: null }, cache_control: null }],
          },
          { role: 'assistant', content: null, tool_calls: [{ ...called, index: null }] },
        ],
        tools: [{ type: 'function', function: { name: 'f', description: null, strict: null } }],
        response_format: { type: 'json_schema', json_schema: { name: 'n', description: null, strict: null } },
        stream_options: { include_usage: null },
      }),
    ).to.deep.equal({
      model: 'm',
      messages: [
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] },
        { role: 'assistant', content: null, tool_calls: [called] },
      ],
      tools: [TOOL],
      response_format: { type: 'json_schema', json_schema: { name: 'n' } },
      stream_options: {},
    });
  });

  it('G2: schemas, arguments, metadata and `content: null` stay as they are', () => {
    const schema = { type: 'object', properties: { a: { enum: [], default: null } }, required: [] };
    const request = {
      model: 'm',
      messages: [
        HI,
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '[]' } }],
        },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
      metadata: { a: null, b: [] },
    };
    expect(normalChat(request as unknown as ChatRequest)).to.equal(request);
  });

  for (const [choice, fields] of [
    ['tool_choice', { tool_choice: 'required' }],
    ['tool_choice', { tool_choice: 'required', tools: [] }],
    ['tool_choice', { tool_choice: { type: 'function', function: { name: 'f' } }, tools: null }],
    ['function_call', { function_call: { name: 'f' }, functions: [] }],
  ] as const)
    it(`G2: ${JSON.stringify(fields)} is refused`, () => {
      const { code, param, message: words } = refusal(fields);
      expect({ code, param }).to.deep.equal({ code: 'invalid_request', param: choice });
      expect(words).to.include('has no');
    });

  it('G2: fields that only qualify an empty list are removed with it', () => {
    expect(normal({ tools: [], tool_choice: 'auto', parallel_tool_calls: true })).to.deep.equal({
      model: 'm',
      messages: [HI],
    });
    expect(normal({ functions: [], function_call: 'none' })).to.deep.equal({ model: 'm', messages: [HI] });
    expect(normal({ functions: [], tools: [TOOL], tool_choice: 'required' })).to.include({ tool_choice: 'required' });
  });

  it('caches the facts of a frozen request', () => {
    const request = { model: 'm', messages: [{ ...HI, name: null }], tools: [] } as unknown as ChatRequest;
    const { inputTokens } = factsOf(request, true);
    const facts = factsOf(normalChat(request));
    expect(facts.hasLooseMessages).to.equal(false);
    expect(Math.abs(facts.inputTokens - inputTokens)).to.be.at.most(1);
  });
});
