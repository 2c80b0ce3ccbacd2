import { expect } from 'chai';
import type { ChatRequest, ChatResponse, DialectDefinition, Plugin } from '../../../contract/index.ts';
import plugin from '../../../plugins/dialects/chat.ts';

/** Returns the dialect that the plugin registers. */
function setUp(config: Readonly<Record<string, unknown>> = {}): DialectDefinition<ChatRequest> {
  let registered: DialectDefinition<ChatRequest> | undefined;
  const api = {
    dialect(dialect: DialectDefinition<ChatRequest>) {
      registered = dialect;
    },
  };
  void (plugin as Plugin).setup(api as never, config);
  return registered ?? expect.fail('no dialect');
}

const chat = setUp();
const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };
const [route = expect.fail('no route')] = chat.routes;
const inputOf = (body: object) => ({
  ...{ body: { ...request, ...body }, params: {}, query: {}, headers: {}, route },
});
const read = (body: object) => chat.read(inputOf(body));
const readTurn = (turn: object) =>
  read({ messages: [...request.messages, { role: 'assistant', content: 'x', ...turn }] });
const context = {
  ...{ input: inputOf({}), request, id: 'id', created: 1, requestId: 'r', estimatedInputTokens: 1 },
  seal: (data: string) => `sealed(${data})`,
};
const responseWith = (message: object, more: object = {}): ChatResponse => ({
  ...{ id: 'i', object: 'chat.completion', created: 1, model: 'm', ...more },
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'x', refusal: null, ...message },
      finish_reason: 'stop',
      logprobs: null,
    },
  ],
});

describe('the chat dialect reading', () => {
  it('passes a request on unchanged', () => {
    const input = inputOf({});
    expect(chat.read(input).request).to.equal(input.body);
  });

  it('reads thinking_blocks as reasoning of Anthropic, and an unsigned one without an owner', () => {
    const { request: canonical } = readTurn({
      thinking_blocks: [
        { type: 'thinking', thinking: 'Hm', signature: 'sig' },
        { type: 'redacted_thinking', data: 'abc' },
        { type: 'thinking', thinking: 'Eh', signature: '' },
      ],
    });
    expect(canonical.messages[1]).to.deep.equal({
      ...{ role: 'assistant', content: 'x' },
      reasoning_details: [
        { kind: 'text', text: 'Hm', signature: 'sig', format: 'anthropic' },
        { kind: 'encrypted', data: 'abc', format: 'anthropic' },
        { kind: 'text', text: 'Eh', format: 'none' },
      ],
    });
  });

  it('accepts a relay’s details too, and prefers them if both forms are present', () => {
    const { request: canonical } = readTurn({
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm', signature: 's', format: 'anthropic-claude-v1', index: 0 },
      ],
      thinking_blocks: [{ type: 'thinking', thinking: 'other', signature: 'x' }],
    });
    expect(canonical.messages[1]).to.deep.equal({
      ...{ role: 'assistant', content: 'x' },
      reasoning_details: [{ kind: 'text', text: 'Hm', signature: 's', format: 'anthropic' }],
    });
  });

  it('keeps order, marks of caches and signatures of calls', () => {
    const turn = {
      order: ['tool:0', 'content:0'],
      cache_control: { type: 'ephemeral' },
      tool_calls: [
        {
          ...{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } },
          extra_content: { google: { thought_signature: 's' } },
        },
      ],
    };
    expect(readTurn(turn).request.messages[1]).to.deep.include(turn);
  });

  it('drops and reports fields that only another format’s codecs read, anywhere', () => {
    const inner = { dialect_fields: { messages: { container: 'c' } } };
    const opaque = { type: 'opaque', dialect: 'messages', value: {} };
    const tool = { type: 'function', function: { name: 'f' } };
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
    const { request: canonical, dropped } = read({
      ...inner,
      messages: [
        {
          role: 'user',
          ...inner,
          content: [opaque, { type: 'text', text: 'x', ...inner }],
          tool_calls: [{ ...call, ...inner }],
        },
      ],
      tools: [opaque, { ...tool, ...inner }],
    });
    expect(canonical).to.deep.equal({
      model: 'm',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }], tool_calls: [call] }],
      tools: [tool],
    });
    expect([...(dropped ?? [])].sort()).to.deep.equal(['dialect_fields', 'opaque']);
  });

  it('needs the operator’s permission for a file in the operator’s account, and reads a URL as such', () => {
    const file = (id: string) => ({
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }],
    });
    expect(read(file('file-1')).needs).to.deep.equal([
      { kind: 'reference', name: 'file_id', param: 'messages[0].content[0].file.file_id' },
    ]);
    const { request: canonical, needs } = read(file('https://files.example/a.pdf'));
    expect(needs).to.equal(undefined);
    expect(canonical.messages[0]?.content).to.deep.equal([
      { type: 'file', file: { file_url: 'https://files.example/a.pdf' } },
    ]);
  });

  it('reads images and documents in the form of Mistral’s clients', () => {
    const content = [
      { type: 'image_url', image_url: 'data:image/png;base64,AA==' },
      { type: 'document_url', document_url: 'https://files.example/a.pdf', document_name: 'a.pdf' },
      { type: 'document_url', document_url: 'data:application/pdf;base64,AA==' },
    ];
    expect(read({ messages: [{ role: 'user', content }] }).request.messages[0]?.content).to.deep.equal([
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
      { type: 'file', file: { filename: 'a.pdf', file_url: 'https://files.example/a.pdf' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AA==' } },
    ]);
  });

  it('needs leave for tools that are not the caller’s', () => {
    const tools = [
      { type: 'function', function: { name: 'f' } },
      { type: 'custom', custom: { name: 'g' } },
      { type: 'web_search' },
    ];
    expect(read({ tools }).needs).to.deep.equal([{ kind: 'server tool', name: 'web_search', param: 'tools[2].type' }]);
  });
});

describe('the chat dialect writing', () => {
  it('passes a response on unchanged', () => {
    const response = responseWith({});
    expect(chat.write(response, context)).to.equal(response);
  });

  it('E38: seals data that a vendor encrypted or signed; Anthropic’s is in thinking_blocks too', () => {
    const details = [
      { kind: 'text', text: 'Hm', signature: 'sig', format: 'anthropic' },
      { kind: 'encrypted', data: 'abc', format: 'anthropic' },
      { kind: 'encrypted', data: 'def', format: 'responses' },
    ] as const;
    const written = {
      reasoning_details: [
        { ...details[0], signature: 'sealed(sig)' },
        { ...details[1], data: 'sealed(abc)' },
        { ...details[2], data: 'sealed(def)' },
      ],
      thinking_blocks: [
        { type: 'thinking', thinking: 'Hm', signature: 'sealed(sig)' },
        { type: 'redacted_thinking', data: 'sealed(abc)' },
      ],
    };
    const whole = chat.write(responseWith({ reasoning_details: details }), context) as ChatResponse;
    expect(whole.choices[0]?.message).to.deep.include(written);
    const frame = chat.stream(context).push({
      ...{ id: 'i', object: 'chat.completion.chunk', created: 1, model: 'm' },
      choices: [{ index: 0, delta: { reasoning_details: details }, finish_reason: null }],
    });
    expect(JSON.parse(frame.slice('data: '.length))).to.have.deep.nested.property('choices[0].delta', written);
  });

  it('reads back its own output', () => {
    const thinking_blocks = [{ type: 'thinking', thinking: 'Hm', signature: 'sig' }];
    const turn = readTurn({ thinking_blocks }).request.messages[1];
    const { choices } = chat.write(responseWith({ ...turn }), context) as ChatResponse;
    expect(choices[0]?.message).to.deep.include({
      thinking_blocks: thinking_blocks.map((block) => ({ ...block, signature: 'sealed(sig)' })),
    });
  });

  it('E38: reads a sealed signature if core opens it, in any form that a client stores', () => {
    const sealed = { kind: 'text', text: 'Hm', data: 'tg1.x.y.sig', format: 'anthropic' };
    for (const kept of [
      { reasoning_details: [{ kind: 'text', text: 'Hm', signature: 'tg1.x.y.sig', format: 'anthropic' }] },
      { thinking_blocks: [{ type: 'thinking', thinking: 'Hm', signature: 'tg1.x.y.sig' }] },
    ])
      expect(readTurn(kept).request.messages[1]?.reasoning_details).to.deep.equal([sealed]);
  });

  it('omits data that it would not accept back', () => {
    const inner = { dialect_fields: { messages: { container: 'c' } } };
    const message = { opaque: [{}], order: ['opaque:0', 'tool:0', 'content:0'], ...inner };
    expect(chat.write(responseWith(message, inner), context)).to.deep.equal(
      responseWith({ order: ['tool:0', 'content:0'] }),
    );
  });

  it('leaves a sealed detail out while seals cannot be made', () => {
    const seal = (): string => {
      throw new TypeError('no keys');
    };
    const message = { reasoning_details: [{ kind: 'encrypted', data: 'x', format: 'gemini' }] };
    expect(chat.write(responseWith(message), { ...context, seal })).to.deep.equal(responseWith({}));
  });
});

describe('the chat dialect’s option models', () => {
  it('resolves clients’ model names', () => {
    expect(setUp({ models: { 'gpt-5': 'openai/gpt-5', fast: ['a/b', 'c/d'] } }).aliases).to.deep.equal({
      'gpt-5': ['openai/gpt-5'],
      fast: ['a/b', 'c/d'],
    });
  });
});
