import { expect } from 'chai';
import { readMessagesBody } from './messages-dialect.ts';

const PNG = 'iVBORw0KGgo=';
const user = (...content: object[]) => ({ messages: [{ role: 'user', content: content as never }] });
const assistant = (...content: object[]) => ({ messages: [{ role: 'assistant', content: content as never }] });
const partsOf = (fields: object) => readMessagesBody(fields).request.messages[0]?.content;

describe('the Messages dialect reads', () => {
  describe('system texts', () => {
    const BILLING = 'x-anthropic-billing-header: cc_version=2.1; cch=abc12;';
    for (const [name, system, content] of [
      ['text', 'Be kind.', 'Be kind.'],
      ['G23: text behind Claude Code’s attribution', `${BILLING}\nBe kind.`, 'Be kind.'],
      ['blocks', [{ type: 'text', text: 'Be kind.' }], [{ type: 'text', text: 'Be kind.' }]],
      [
        'G23: blocks behind Claude Code’s attribution, with their cache_control',
        [
          { type: 'text', text: BILLING },
          { type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral', ttl: '1h' } },
        ],
        [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      ],
    ] as const) {
      it(`as a system message: ${name}`, () => {
        const { messages } = readMessagesBody({ system }).request;
        expect(messages).to.deep.equal([
          { role: 'system', content },
          { role: 'user', content: 'Hi' },
        ]);
      });
    }

    it('with only the attribution as none', () => {
      expect(readMessagesBody({ system: BILLING }).request.messages).to.deep.equal([{ role: 'user', content: 'Hi' }]);
    });

    it('between the messages at their place', () => {
      const messages = [
        { role: 'user', content: 'a' },
        { role: 'system', content: 'b' },
        { role: 'user', content: 'c' },
      ];
      expect(readMessagesBody({ messages }).request.messages).to.deep.equal(messages);
    });
  });

  describe('images and documents', () => {
    for (const [name, block, part] of [
      [
        'an image in base64',
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
      ],
      [
        'an image by its address',
        { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' }, cache_control: { type: 'ephemeral' } },
        { type: 'image_url', image_url: { url: 'https://x.test/a.png' }, cache_control: { type: 'ephemeral' } },
      ],
      [
        'a PDF',
        {
          ...{ type: 'document', title: 'A', context: 'of 2020', citations: { enabled: true } },
          source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' },
        },
        {
          ...{ type: 'file', context: 'of 2020', citations: { enabled: true } },
          file: { filename: 'A', file_data: 'data:application/pdf;base64,JVBE' },
        },
      ],
      [
        'a document by its address',
        { type: 'document', source: { type: 'url', url: 'https://x.test/a.pdf' } },
        { type: 'file', file: { file_url: 'https://x.test/a.pdf' } },
      ],
      [
        'a text',
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'é' } },
        { type: 'file', file: { file_data: 'data:text/plain;base64,w6k=' } },
      ],
      [
        'a text in parts',
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'a' }] } },
        {
          ...{ type: 'file', file: { file_data: 'data:text/plain;base64,YQ==' } },
          dialect_fields: { messages: { source: { type: 'content', content: [{ type: 'text', text: 'a' }] } } },
        },
      ],
    ] as const) {
      it(`such as ${name}`, () => {
        expect(partsOf(user(block))).to.deep.equal([part]);
      });
    }

    it('that lie in the operator’s account as references', () => {
      const file = { type: 'image', source: { type: 'file', file_id: 'file_1' } };
      const { needs, request } = readMessagesBody(user({ type: 'text', text: 'a' }, file));
      expect(needs?.[0]).to.deep.equal({ kind: 'reference', name: 'file', param: 'messages[0].content[1].source' });
      expect(request.messages[0]?.content).to.deep.include({ type: 'opaque', dialect: 'messages', value: file });
    });
  });

  describe('a turn with results of tools', () => {
    const result = (id: string, content: unknown, more: object = {}) => ({
      ...{ type: 'tool_result', tool_use_id: id, content, ...more },
    });

    it('as a message for each result, then the user’s text', () => {
      const turn = user(
        result('a', 'sunny', { is_error: true, cache_control: { type: 'ephemeral' } }),
        result('b', undefined),
        { type: 'text', text: 'Go on.' },
      );
      expect(readMessagesBody(turn).request.messages).to.deep.equal([
        { role: 'tool', tool_call_id: 'a', content: 'sunny', is_error: true, cache_control: { type: 'ephemeral' } },
        { role: 'tool', tool_call_id: 'b', content: '' },
        { role: 'user', content: [{ type: 'text', text: 'Go on.' }] },
      ]);
    });

    it('G31: with its images as images', () => {
      const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } };
      expect(partsOf(user(result('a', [{ type: 'text', text: 'seen' }, image])))).to.deep.equal([
        { type: 'text', text: 'seen' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
      ]);
    });
  });

  describe('the content of a model', () => {
    it('with its signed thinking byte for byte, G28: also where it has no text, and the order where it is not the usual one', () => {
      const [message] = readMessagesBody(
        assistant(
          { type: 'thinking', thinking: '', signature: 'Eq+/=' },
          { type: 'redacted_thinking', data: 'Em' },
          { type: 'tool_use', id: 't', name: 'look', input: { at: 1 }, cache_control: { type: 'ephemeral' } },
          { type: 'thinking', thinking: 'Hm', signature: 'Er' },
          { type: 'text', text: 'ok' },
        ),
      ).request.messages;
      expect(message).to.deep.equal({
        role: 'assistant',
        content: [{ type: 'text', text: 'ok' }],
        reasoning_content: 'Hm',
        reasoning_details: [
          { kind: 'text', text: '', signature: 'Eq+/=', format: 'anthropic' },
          { kind: 'encrypted', data: 'Em', format: 'anthropic' },
          { kind: 'text', text: 'Hm', signature: 'Er', format: 'anthropic' },
        ],
        tool_calls: [
          {
            ...{ id: 't', type: 'function', function: { name: 'look', arguments: '{"at":1}' } },
            cache_control: { type: 'ephemeral' },
          },
        ],
        order: ['reasoning:0', 'reasoning:1', 'tool:0', 'reasoning:2', 'content:0'],
      });
    });

    it('G27: with thinking of another provider as its own', () => {
      const [message] = readMessagesBody(
        assistant(
          { type: 'thinking', thinking: 'a', signature: '' },
          { type: 'thinking', thinking: 'b', signature: 'tgr.responses.rs_1.tg1.here.tag.XYZ' },
          { type: 'text', text: 'ok' },
        ),
      ).request.messages;
      expect(message?.reasoning_details).to.deep.equal([
        { kind: 'text', text: 'a', format: 'none' },
        { kind: 'text', text: 'b', data: 'tg1.here.tag.XYZ', format: 'responses', id: 'rs_1' },
      ]);
      expect(message).not.to.have.property('order');
    });

    it('with blocks of server tools for codecs of the format, and as text for others', () => {
      const block = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } };
      const { request, needs } = readMessagesBody(assistant(block, { type: 'text', text: 'ok' }));
      const [part] = (request.messages[0]?.content ?? []) as { type: string; value: unknown; text: string }[];
      expect(part).to.include({ type: 'opaque', dialect: 'messages' });
      expect(part?.value).to.equal(block);
      expect(part?.text).to.include('[server_tool_use]').and.include('"query":"x"');
      expect(needs).to.equal(undefined);
    });
  });

  describe('tools', () => {
    it('of the caller as functions, with the format’s own members', () => {
      const tool = {
        ...{ name: 'look', description: 'Looks.', input_schema: { type: 'object' }, strict: true },
        ...{ cache_control: { type: 'ephemeral' }, input_examples: [{}] },
      };
      expect(readMessagesBody({ tools: [tool] }).request.tools).to.deep.equal([
        {
          type: 'function',
          function: { name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: true },
          cache_control: { type: 'ephemeral' },
          dialect_fields: { messages: { input_examples: [{}] } },
        },
      ]);
    });

    it('of the provider as such, by type, with the models that they call', () => {
      const search = { type: 'web_search_20250305', name: 'web_search' };
      const advisor = { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-5' };
      const bash = { type: 'bash_20250124', name: 'bash' };
      const { request, needs } = readMessagesBody({ tools: [search, advisor, bash] });
      expect(request.tools?.[0]).to.deep.equal({ type: 'opaque', dialect: 'messages', value: search });
      expect(needs).to.deep.equal([
        { kind: 'server tool', name: 'web_search_20250305', param: 'tools[0].type' },
        { kind: 'model', name: 'claude-opus-5', param: 'tools[1].model' },
        { kind: 'server tool', name: 'advisor_20260301', param: 'tools[1].type' },
        { kind: 'native', name: 'bash_20250124', param: 'tools[2].type' },
      ]);
    });

    for (const [choice, fields] of [
      [{ type: 'auto' }, { tool_choice: 'auto' }],
      [{ type: 'none' }, { tool_choice: 'none' }],
      [
        { type: 'any', disable_parallel_tool_use: true },
        { tool_choice: 'required', parallel_tool_calls: false },
      ],
      [{ type: 'tool', name: 'look' }, { tool_choice: { type: 'function', function: { name: 'look' } } }],
    ] as const) {
      it(`with the choice ${JSON.stringify(choice)}`, () => {
        expect(readMessagesBody({ tool_choice: choice }).request).to.deep.include(fields);
      });
    }
  });

  describe('fields', () => {
    for (const [name, fields, wanted] of [
      ['the limit of output', { max_tokens: 5 }, { max_completion_tokens: 5 }],
      ['G13: stop sequences', { stop_sequences: ['X'] }, { stop: ['X'] }],
      ['a stream', { stream: true }, { stream: true }],
      ['the user', { metadata: { user_id: 'u' } }, { user: 'u' }],
      ['sampling', { temperature: 0.5, top_p: 0.9 }, { temperature: 0.5, top_p: 0.9 }],
      ['null as not set', { temperature: null, stop_sequences: null, tools: null, thinking: null }, {}],
      ['the standard tier', { service_tier: 'standard_only' }, { service_tier: 'default' }],
      ['a little thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }, { reasoning_effort: 'low' }],
      ['much thinking', { thinking: { type: 'enabled', budget_tokens: 31_999 } }, { reasoning_effort: 'high' }],
      ['no thinking', { thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
      ['thinking as the model likes', { thinking: { type: 'adaptive' } }, { reasoning_effort: 'medium' }],
      ['an effort', { output_config: { effort: 'xhigh' } }, { reasoning_effort: 'xhigh' }],
      [
        'a form of the response',
        { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
        {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'response', schema: { type: 'object' }, strict: true },
          },
        },
      ],
    ] as const) {
      it(`such as ${name}`, () => {
        const { messages: _, model: __, dialect_fields: ___, ...request } = readMessagesBody(fields as never).request;
        expect(request).to.deep.equal({ max_completion_tokens: 100, ...wanted });
      });
    }

    it('that others lack, exactly, G24: and the betas of the header', () => {
      const own = {
        thinking: { type: 'enabled', budget_tokens: 31_999, display: 'omitted' },
        context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
        top_k: 5,
      };
      const { dialect_fields: fields } = readMessagesBody(own, { 'anthropic-beta': 'a-1, b-2' }).request;
      expect(fields).to.deep.equal({ messages: { ...own, betas: ['a-1', 'b-2'] } });
    });

    it('that refer to the operator’s account as needs', () => {
      const { needs } = readMessagesBody({ container: 'c', mcp_servers: [{ url: 'https://x.test' }] });
      expect(needs?.map(({ kind, param }) => [kind, param])).to.deep.equal([
        ['reference', 'container'],
        ['reference', 'mcp_servers'],
      ]);
    });
  });

  it('and knows a canonical place in the caller’s body', () => {
    const { place } = readMessagesBody({
      tools: ['a', 'b'].map((name) => ({ name, input_schema: { type: 'object' } })),
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: a' },
        { type: 'text', text: 'b' },
      ],
      messages: [
        { role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x.test' } }] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'a', signature: 's' },
            { type: 'text', text: 'b' },
            { type: 'tool_use', id: 't', name: 'n', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'r' }] },
            { type: 'text', text: 'c' },
          ],
        },
      ],
    });
    for (const [canonical, callers] of [
      ['messages[0].content[0]', 'system[1]'],
      ['messages[1].content[0].image_url.url', 'messages[0].content[0].source'],
      ['messages[2].content[0]', 'messages[1].content[1]'],
      ['messages[2].tool_calls[0].function.name', 'messages[1].content[2].name'],
      ['messages[3].tool_call_id', 'messages[2].content[0].tool_use_id'],
      ['messages[3].content[0].text', 'messages[2].content[0].content[0].text'],
      ['messages[4].content[0]', 'messages[2].content[1]'],
      ['max_completion_tokens', 'max_tokens'],
      ['stop', 'stop_sequences'],
      ['tools[1].function.parameters', 'tools[1].input_schema'],
      ['temperature', 'temperature'],
      ['a]]', 'a]]'],
    ]) {
      expect(place?.(canonical ?? ''), canonical).to.equal(callers);
    }
  });
});
