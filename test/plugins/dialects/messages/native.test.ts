import { expect } from 'chai';
import { type ChatRequest, GatewayError, type NativeChange } from '../../../../contract/index.ts';
import { MESSAGES_NATIVE } from '../../../../plugins/formats/anthropic/native.ts';
import type { MessagesRequest } from '../../../../plugins/formats/anthropic/types.ts';
import { fixture, readSse } from '../../../support/formats/codec.ts';
import { readMessagesStream } from '../../../support/formats/messages-grammar.ts';
import { messagesBody, messagesContext, readMessagesBody } from './messages-dialect.ts';

const ADAPTIVE = { type: 'adaptive', display: 'summarized' };
const OMITTED = { type: 'adaptive', display: 'omitted' };

function patch(
  fields: Partial<MessagesRequest>,
  change: (before: ChatRequest) => Partial<ChatRequest> = () => ({}),
  model = 'claude',
) {
  const before = readMessagesBody(fields).request;
  const given: NativeChange = {
    ...{ before, after: { ...before, ...change(before) }, model, stream: fields.stream === true },
    open: (sealed) => (sealed.startsWith('tg1.here.tag.') ? sealed.slice('tg1.here.tag.'.length) : undefined),
    scope: (text) => text,
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
    it(`writes a hook’s change: ${name}`, () => {
      expect(bodyOf(fields, () => change as Partial<ChatRequest>)).to.deep.include(wanted);
    });
  }

  it('disables thinking if a cap leaves no room for it, and reports it', () => {
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

  it('leaves unsupported changes to translation', () => {
    expect(patch({}, () => ({ reasoning_effort: 'low' }))).to.equal(undefined);
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } } as const;
    const shown = { role: 'user', content: [image] } as const;
    expect(patch({}, ({ messages }) => ({ messages: [...messages, shown] }))).to.equal(undefined);
  });

  it('G27: drops foreign reasoning and reports it; its own stays byte for byte', () => {
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

  it('G30: passes the provider the tools that a history without tools has called', () => {
    const messages = [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'Bash', input: {} }] }];
    expect(bodyOf({ messages })?.['tools']).to.deep.equal([
      { name: 'Bash', input_schema: { type: 'object', properties: {} } },
    ]);
  });

  it('drops features with an unknown price, and reports it', () => {
    const patched = patch({ speed: 'fast', service_tier: null });
    expect(patched?.body).to.have.all.keys('model', 'max_tokens', 'messages');
    expect(patched?.dropped).to.deep.equal(['speed']);
  });

  it('E38: opens the signatures that this gateway sealed, and drops those that it cannot open', () => {
    const thinking = (signature: string) => ({ type: 'thinking', thinking: 'a', signature });
    const content = [thinking('tg1.here.tag.S'), thinking('tg1.there.tag.S'), text('ok')[0]!];
    const patched = patch({ messages: [{ role: 'assistant', content }] });
    expect(patched?.body).to.have.deep.nested.property('messages[0].content', [thinking('S'), text('ok')[0]!]);
    expect(patched?.dropped).to.deep.equal(['reasoning']);
  });

  for (const [given, model, wanted, config] of [
    [{ type: 'enabled', budget_tokens: 8000 }, 'claude-opus-4-8', ADAPTIVE, { effort: 'medium' }],
    [{ type: 'enabled', budget_tokens: 31_999, display: 'omitted' }, 'claude-opus-5-5', OMITTED, { effort: 'high' }],
    [{ type: 'disabled' }, 'claude-opus-5-5', undefined, { effort: 'low' }],
    [{ type: 'disabled' }, 'claude-sonnet-5-5', { type: 'between_tools' }, undefined],
    [{ type: 'adaptive' }, 'claude-haiku-4-5', { type: 'enabled', budget_tokens: 8192 }, undefined],
  ] as const) {
    it(`E20: fits thinking that is ${given.type} to ${model}, and reports it`, () => {
      const patched = patch({ thinking: given, max_tokens: 32_000 }, () => ({}), model);
      expect(patched?.body).to.deep.include({
        ...(wanted && { thinking: wanted }),
        ...(config && { output_config: config }),
      });
      expect('thinking' in (patched?.body ?? {})).to.equal(wanted !== undefined);
      expect(patched?.dropped).to.deep.equal(['thinking']);
    });
  }

  it('E20: keeps thinking that the model accepts, and any that a new Claude may accept', () => {
    for (const [type, model] of [
      ['adaptive', 'claude-opus-5-5'],
      ['enabled', 'claude-haiku-4-5'],
      ['enabled', 'claude-novel-7'],
      ['future', 'claude-opus-5-5'],
    ] as const) {
      const thinking = { type, budget_tokens: 2000 };
      const patched = patch({ thinking }, () => ({}), model);
      expect([patched?.body, patched?.dropped]).to.deep.equal([{ ...messagesBody({ thinking }), model }, undefined]);
    }
  });

  it('passes the provider’s message and events on, the signatures of its thinking sealed', () => {
    const body = { id: 'msg_1', future: 1 };
    expect(MESSAGES_NATIVE.write(body, messagesContext())).to.equal(body);
    const signed = { ...body, content: [{ type: 'thinking', thinking: '', signature: 'S', future: 1 }, text('a')[0]] };
    expect(MESSAGES_NATIVE.write(signed, messagesContext())).to.deep.equal({
      ...body,
      content: [{ type: 'thinking', thinking: '', signature: 'tg1.here.tag.S', future: 1 }, text('a')[0]],
    });
    const stream = MESSAGES_NATIVE.stream(messagesContext());
    const bytes = fixture('anthropic/stream-thinking-and-tools.sse');
    const passed = readSse(bytes)
      .map((event) => stream.push(event))
      .join('');
    const opened = (passed + stream.end()).replaceAll('tg1.here.tag.', '');
    expect(passed.split('tg1.here.tag.')).to.have.length(3);
    expect(readSse(Buffer.from(opened))).to.deep.equal(readSse(bytes));
    expect(stream.push({ event: 'x\ndata: y', data: '{"a":1}' })).to.equal('event: xdata: y\ndata: {"a":1}\n\n');
    const failed = stream.fail(new GatewayError('provider_timeout', 'Late.'), 'req_1');
    expect(readMessagesStream(failed).error?.['error']).to.deep.equal({ type: 'timeout_error', message: 'Late.' });
  });
});
