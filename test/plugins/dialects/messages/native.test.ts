import { expect } from 'chai';
import { type ChatRequest, GatewayError, type NativeChange } from '../../../../core/index.ts';
import { MESSAGES_NATIVE } from '../../../../plugins/dialects/messages/native.ts';
import type { MessagesRequest } from '../../../../plugins/dialects/messages/types.ts';
import { fixture, readSse } from '../../../support/formats/codec.ts';
import { readMessagesStream } from '../../../support/formats/messages-grammar.ts';
import { messagesBody, messagesContext, readMessagesBody } from './messages-dialect.ts';

function patch(fields: Partial<MessagesRequest>, change: (before: ChatRequest) => Partial<ChatRequest> = () => ({})) {
  const before = readMessagesBody(fields).request;
  const given: NativeChange = {
    ...{ before, after: { ...before, ...change(before) }, model: 'claude', stream: fields.stream === true },
    ...{ open: () => undefined, scope: (text) => text },
  };
  return MESSAGES_NATIVE.patch(messagesBody(fields), given);
}
const bodyOf = (...given: Parameters<typeof patch>) => patch(...given)?.body as Record<string, unknown> | undefined;
const text = (value: string) => [{ type: 'text', text: value }];

describe('the native lane of the Messages dialect', () => {
  it('writes the caller’s own body with its order of fields, the model replaced', () => {
    const body = {
      ...{ stream: true, future_field: { a: [1] }, model: 'm', system: text('x-anthropic-billing-header: cch=1') },
      thinking: { type: 'enabled', budget_tokens: 31_999 },
      messages: [{ role: 'user', content: [{ type: 'future_block', x: 1, cache_control: { type: 'ephemeral' } }] }],
      ...{ metadata: { user_id: 'u' }, context_management: { edits: [] }, max_tokens: 32_000 },
    };
    const before = readMessagesBody(body).request;
    const change = { before, after: before, model: 'claude', stream: true, open: () => undefined, scope: String };
    const written = MESSAGES_NATIVE.patch(body, change);
    expect(JSON.stringify(written?.body)).to.equal(JSON.stringify({ ...body, model: 'claude' }));
    expect(written).not.to.have.property('dropped');
  });

  for (const [name, fields, change, wanted] of [
    ['a cap', {}, { max_completion_tokens: 50 }, { max_tokens: 50 }],
    [
      'a cap below the budget of thinking',
      { max_tokens: 9000, thinking: { type: 'enabled', budget_tokens: 8000 } },
      { max_completion_tokens: 4000 },
      { max_tokens: 4000, thinking: { type: 'enabled', budget_tokens: 3999 } },
    ],
    ['a temperature', { temperature: 1 }, { temperature: 0.2 }, { temperature: 0.2 }],
    ['stop sequences', {}, { stop: 'X' }, { stop_sequences: ['X'] }],
    ['another user', { metadata: { user_id: 'a', x: 1 } }, { user: 'b' }, { metadata: { x: 1, user_id: 'b' } }],
    [
      'fields of its own',
      { top_k: 5, future: 1 },
      { dialect_fields: { messages: { top_k: 6, more: 2 } } },
      { top_k: 6, more: 2 },
    ],
  ] as const) {
    it(`writes what a hook changed: ${name}`, () => {
      expect(bodyOf(fields, () => change as Partial<ChatRequest>)).to.deep.include(wanted);
    });
  }

  it('switches thinking off where a cap leaves no room for it, and tells so', () => {
    const fields = { max_tokens: 9000, thinking: { type: 'enabled', budget_tokens: 8000 } };
    const patched = patch(fields, () => ({ max_completion_tokens: 1000 }));
    expect(patched?.body).to.deep.include({ max_tokens: 1000, thinking: { type: 'disabled' } });
    expect(patched?.dropped).to.deep.equal(['thinking']);
  });

  it('adds the messages and tools of hooks at either end', () => {
    const body = bodyOf({ system: 'Own.', tools: [{ name: 'own', input_schema: {} }] }, ({ messages, tools = [] }) => ({
      messages: [
        { role: 'system', content: 'First.' },
        ...messages,
        { role: 'assistant', content: 'Hello' },
        { role: 'system', content: 'Last.' },
      ],
      tools: [...tools, { type: 'function', function: { name: 'added', description: 'Adds.' } }],
    }));
    expect(body?.['system']).to.deep.equal([...text('First.'), ...text('Own.'), ...text('Last.')]);
    expect(body?.['messages']).to.deep.equal([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: text('Hello') },
    ]);
    expect(body?.['tools']).to.deep.equal([
      { name: 'own', input_schema: {} },
      { name: 'added', description: 'Adds.', input_schema: { type: 'object', properties: {} } },
    ]);
  });

  it('leaves to translation what it cannot say', () => {
    expect(patch({}, () => ({ reasoning_effort: 'low' }))).to.equal(undefined);
    const called = { role: 'tool', tool_call_id: 'a', content: 'x' } as const;
    expect(patch({}, ({ messages }) => ({ messages: [...messages, called] }))).to.equal(undefined);
  });

  it('G27: leaves foreign reasoning out and tells so; its own stays byte for byte', () => {
    const own = { type: 'thinking', thinking: '', signature: 'Eq+/=' };
    const said = (...content: object[]) => ({ role: 'assistant', content: content as never });
    const messages = [
      said({ type: 'thinking', thinking: 'a', signature: '' }),
      said(own, { type: 'redacted_thinking', data: 'tgr.responses..tg1.a.b.c' }, text('ok')[0]!),
    ];
    const patched = patch({ messages });
    expect(patched?.dropped).to.deep.equal(['reasoning']);
    expect(patched?.body).to.have.deep.property('messages', [said(own, text('ok')[0]!)]);
  });

  it('G26: makes ids of calls valid, the same in call and result', () => {
    const id = 'functions.Bash:0';
    const messages = [
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'Bash', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'x' }] },
    ];
    const [call, result] = (bodyOf({ messages })?.['messages'] ?? []) as { content: Record<string, string>[] }[];
    expect(call?.content[0]?.['id']).to.match(/^[A-Za-z0-9_-]{1,64}$/);
    expect(result?.content[0]?.['tool_use_id']).to.equal(call?.content[0]?.['id']);
  });

  it('G30: tells the provider of the tools that a history without tools has called', () => {
    const messages = [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'Bash', input: {} }] }];
    expect(bodyOf({ messages })?.['tools']).to.deep.equal([
      { name: 'Bash', input_schema: { type: 'object', properties: {} } },
    ]);
  });

  it('leaves out what has a price that nobody here knows, and tells so', () => {
    const patched = patch({ speed: 'fast', inference_geo: 'us', service_tier: null });
    expect(patched?.body).to.have.all.keys('model', 'max_tokens', 'messages');
    expect(patched?.dropped).to.deep.equal(['speed', 'inference_geo']);
  });

  it('passes the provider’s message and events on', () => {
    const body = { id: 'msg_1', future: 1 };
    expect(MESSAGES_NATIVE.write(body, messagesContext())).to.equal(body);
    const stream = MESSAGES_NATIVE.stream(messagesContext());
    const bytes = fixture('anthropic/stream-thinking-and-tools.sse');
    const passed = readSse(bytes)
      .map((event) => stream.push(event))
      .join('');
    expect(readSse(Buffer.from(passed + stream.end()))).to.deep.equal(readSse(bytes));
    expect(stream.push({ event: 'x\ndata: y', data: '{"a":1}' })).to.equal('event: xdata: y\ndata: {"a":1}\n\n');
    const failed = stream.fail(new GatewayError('provider_timeout', 'Late.'), 'req_1');
    expect(readMessagesStream(failed).error?.['error']).to.deep.equal({ type: 'timeout_error', message: 'Late.' });
  });
});
