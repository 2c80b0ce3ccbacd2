import { expect } from 'chai';
import type { ChatMessage, ChatRequest } from '../../../../contract/index.ts';
import type { AnthropicMessage, AnthropicRequest } from '../../../../plugins/formats/anthropic/types.ts';
import { anthropicRequest } from '../../../../plugins/formats/anthropic/write-request.ts';
import { called, chatRequest, codecCall, result, user } from '../../../support/formats/codec.ts';

const NO_PREFILL = 'claude-opus-4-8';
const PNG = 'data:image/png;base64,iVBORw0KGgo=';

function translate(fields: Partial<ChatRequest>, model = NO_PREFILL): AnthropicRequest {
  return anthropicRequest(chatRequest(fields), codecCall({ model })).body as AnthropicRequest;
}

function turns(messages: readonly ChatMessage[], model = NO_PREFILL): readonly AnthropicMessage[] {
  return translate({ messages }, model).messages;
}

describe('anthropic messages', () => {
  it('make ids of other vendors fit, the same on the call and its result', () => {
    const id = `call_1__thought__${'x+/='.repeat(50)}`;
    const [, calling, response] = turns([user('x'), called(id), result(id, 'A')]);
    const [use] = calling?.content ?? [];
    const [reply] = response?.content ?? [];
    expect(use)
      .to.have.property('id')
      .that.matches(/^[A-Za-z0-9_-]{1,64}$/);
    expect(reply).to.have.property('tool_use_id', use?.['id']);
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
