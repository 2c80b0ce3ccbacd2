import { expect } from 'chai';
import type { ChatMessage, ChatRequest } from '../../../../core/index.ts';
import type { AnthropicMessage, AnthropicRequest } from '../../../../plugins/formats/anthropic/types.ts';
import { anthropicRequest } from '../../../../plugins/formats/anthropic/write-request.ts';
import { called, chatRequest, codecCall, result, user } from '../../../support/formats/codec.ts';

const PREFILL = 'claude-sonnet-4-5';
const NO_PREFILL = 'claude-opus-4-8';
const PNG = 'data:image/png;base64,iVBORw0KGgo=';

function translate(fields: Partial<ChatRequest>, model = NO_PREFILL): AnthropicRequest {
  return anthropicRequest(chatRequest(fields), codecCall({ model })).body as AnthropicRequest;
}

function turns(messages: readonly ChatMessage[], model = NO_PREFILL): readonly AnthropicMessage[] {
  return translate({ messages }, model).messages;
}

describe('anthropic messages', () => {
  it('gather system and developer texts in front, with their cache marks', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const body = translate({
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'A', ...mark }] },
        user('Hi'),
        { role: 'developer', content: 'B' },
      ],
    });
    expect(body.system).to.deep.equal([
      { type: 'text', text: 'A', ...mark },
      { type: 'text', text: 'B' },
    ]);
    expect(body.messages).to.have.length(1);
  });

  it('take a request of system texts alone for a user’s', () => {
    const body = translate({ messages: [{ role: 'system', content: 'A' }] });
    expect(body).to.not.have.property('system');
    expect(body.messages).to.deep.equal([{ role: 'user', content: [{ type: 'text', text: 'A' }] }]);
  });

  it('hold no blank text, which the vendor refuses', () => {
    const messages = [
      user([
        { type: 'text', text: '' },
        { type: 'text', text: 'a' },
      ]),
      { role: 'assistant', content: ' \n' } as const,
      user('b'),
    ];
    expect(turns(messages)).to.deep.equal([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    ]);
  });

  it('are refused when they hold nothing', () => {
    expect(() => turns([user('  ')]))
      .to.throw('content')
      .with.property('param', 'messages');
  });

  it('put all results of a turn and the user’s words after them into one message, results first, in the order of the calls', () => {
    expect(turns([user('x'), called('a', 'b'), result('b', 'B'), result('a', 'A'), user('and?')])[2]).to.deep.equal({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'A' }] },
        { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'B' }] },
        { type: 'text', text: 'and?' },
      ],
    });
  });

  it('keep an empty result as a result', () => {
    expect(turns([user('x'), called('a'), result('a', '')])[2]?.content).to.deep.equal([
      { type: 'tool_result', tool_use_id: 'a' },
    ]);
  });

  it('carry images in results', () => {
    const image = { type: 'image_url', image_url: { url: PNG } };
    const [block] = turns([user('x'), called('a'), result('a', [image])])[2]?.content ?? [];
    expect(block).to.have.nested.property('content[0].type', 'image');
  });

  it('refuse a call without its result', () => {
    expect(() => turns([user('x'), called('a', 'b'), result('b', 'B')]))
      .to.throw()
      .with.property('param', 'messages[1].tool_calls[0].id');
  });

  it('put text before the calls of a turn, and a mark on the whole message on its last block', () => {
    const message = {
      ...called('a'),
      content: 'Looking.',
      cache_control: { type: 'ephemeral', ttl: '5m' },
    } as ChatMessage;
    expect(turns([user('x'), message, result('a', 'A')])[1]?.content).to.deep.equal([
      { type: 'text', text: 'Looking.' },
      { type: 'tool_use', id: 'a', name: 'do_a', input: { a: 1 }, cache_control: { type: 'ephemeral', ttl: '5m' } },
    ]);
  });

  it('make ids of other vendors fit, the same on the call and its result', () => {
    const id = `call_1__thought__${'x+/='.repeat(50)}`;
    const [, calling, answering] = turns([user('x'), called(id), result(id, 'A')]);
    const [use] = calling?.content ?? [];
    const [answer] = answering?.content ?? [];
    expect(use)
      .to.have.property('id')
      .that.matches(/^[A-Za-z0-9_-]{1,64}$/);
    expect(answer).to.have.property('tool_use_id', use?.['id']);
  });

  it('replay signed thinking before the answer, and leave out thinking that lost its signature', () => {
    const thinking_blocks = [
      { type: 'thinking', thinking: 'Hm.', signature: 'EqQB' },
      { type: 'thinking', thinking: 'Hm?', signature: '' },
      { type: 'redacted_thinking', data: 'EmwK' },
    ];
    const message = { ...called('a'), reasoning_content: 'Hm.', thinking_blocks } as ChatMessage;
    expect(turns([user('x'), message, result('a', 'A')])[1]?.content.slice(0, 2)).to.deep.equal([
      thinking_blocks[0],
      thinking_blocks[2],
    ]);
  });

  it('stop thinking by budget in the middle of a tool loop whose thinking the client lost', () => {
    const loop = [user('x'), called('a'), result('a', 'A')];
    const fields = { messages: loop, reasoning_effort: 'high' };
    expect(translate(fields, 'claude-haiku-4-5')).to.not.have.property('thinking');
    expect(translate({ ...fields, messages: [...loop, user('go')] }, 'claude-haiku-4-5')).to.have.property('thinking');
  });

  it('declare the tools of the history again when a request has none, closed to calls', () => {
    const body = translate({ messages: [user('x'), called('a'), result('a', 'A')] });
    expect(body.tools).to.deep.equal([{ name: 'do_a', input_schema: { type: 'object', properties: {} } }]);
    expect(body.tool_choice).to.deep.equal({ type: 'none' });
  });

  it('begin with the user where an assistant speaks first', () => {
    expect(turns([{ role: 'assistant', content: 'Welcome' }, user('Hi')]).map(({ role }) => role)).to.deep.equal([
      'user',
      'assistant',
      'user',
    ]);
  });

  it('let a last assistant turn stand where the model goes on with it, without white space at its end', () => {
    const messages: ChatMessage[] = [user('x'), { role: 'assistant', content: 'The answer is \n' }];
    expect(turns(messages, PREFILL).at(-1)).to.deep.equal({
      role: 'assistant',
      content: [{ type: 'text', text: 'The answer is' }],
    });
    expect(turns(messages, NO_PREFILL).at(-1)?.role).to.equal('user');
  });

  for (const [title, part, expected] of [
    [
      'an image as base64',
      { type: 'image_url', image_url: { url: PNG } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
    ],
    [
      'an image by URL',
      { type: 'image_url', image_url: { url: 'https://x.test/a' } },
      { type: 'image', source: { type: 'url', url: 'https://x.test/a' } },
    ],
    [
      'a PDF',
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }, title: 'a.pdf' },
    ],
    [
      'a plain text',
      { type: 'file', file: { file_data: 'data:text/plain;charset=utf-8;base64,R3LDvMOf' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Grüß' } },
    ],
  ] as const) {
    it(`carry ${title}`, () => {
      expect(turns([user([part])])[0]?.content).to.deep.equal([expected]);
    });
  }

  for (const [title, part, param] of [
    [
      'a BMP',
      { type: 'image_url', image_url: { url: 'data:image/bmp;base64,AAAA' } },
      'messages[0].content[0].image_url.url',
    ],
    [
      'plain http',
      { type: 'image_url', image_url: { url: 'http://x.test/a.png' } },
      'messages[0].content[0].image_url.url',
    ],
    ['sound', { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } }, 'messages[0].content[0].type'],
    ['a file of OpenAI’s', { type: 'file', file: { file_id: 'file-1' } }, 'messages[0].content[0].file'],
  ] as const) {
    it(`refuse ${title}`, () => {
      expect(() => turns([user([part])]))
        .to.throw()
        .with.property('param', param);
    });
  }
});
