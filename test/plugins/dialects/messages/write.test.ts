import { expect } from 'chai';
import type { AssistantMessage, ChatChoice, ChatResponse, Usage } from '../../../../contract/index.ts';
import { writeCallId, writeMessage } from '../../../../plugins/formats/anthropic/write-response.ts';
import { messagesContext } from './messages-dialect.ts';

const USAGE: Usage = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 };

function write(
  message: Partial<AssistantMessage>,
  choice: Partial<ChatChoice> = {},
  usage: Usage = USAGE,
  context = messagesContext(),
) {
  const response: ChatResponse = {
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'gpt-5', usage },
    choices: [
      {
        ...{ index: 0, finish_reason: 'stop', logprobs: null, ...choice },
        message: { role: 'assistant', content: null, refusal: null, ...message },
      },
    ],
  };
  return writeMessage(response, context) as Record<string, unknown> & { content: Record<string, unknown>[] };
}
const call = (id: string, text: string) => ({
  id,
  type: 'function' as const,
  function: { name: 'look', arguments: text },
});

describe('the Messages dialect writes', () => {
  it('a message with an id of the call’s own, the provider’s model and no stop sequence', () => {
    expect(write({ content: 'Hi' })).to.deep.equal({
      ...{ id: 'msg_call', type: 'message', role: 'assistant', model: 'gpt-5' },
      ...{ content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn', stop_sequence: null },
      usage: { input_tokens: 20, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 },
    });
  });

  for (const [name, choice, message, reason] of [
    ['the end of a turn', { finish_reason: 'stop' }, { content: 'x' }, 'end_turn'],
    ['G07: a call that ends with stop', { finish_reason: 'stop' }, { tool_calls: [call('a', '{}')] }, 'tool_use'],
    ['calls', { finish_reason: 'tool_calls' }, { tool_calls: [call('a', '{}')] }, 'tool_use'],
    ['G32: a limit amid a call', { finish_reason: 'length' }, { tool_calls: [call('a', '{"a"')] }, 'max_tokens'],
    ['a filter', { finish_reason: 'content_filter' }, { content: 'x' }, 'refusal'],
    ['a refusal', { finish_reason: 'stop' }, { refusal: 'No.' }, 'refusal'],
    ['a pause of the format’s own', { finish_reason: 'stop', finish: { native: 'pause_turn' } }, {}, 'pause_turn'],
    ['another provider’s word', { finish_reason: 'stop', finish: { native: 'STOP' } }, { content: 'x' }, 'end_turn'],
  ] as const) {
    it(`the reason of ${name}`, () => {
      expect(write(message, choice)).to.include({ stop_reason: reason, stop_sequence: null });
    });
  }

  it('G13: the stop sequence if the provider reports it', () => {
    const finish = { native: 'stop_sequence', stop_sequence: 'END' };
    expect(write({ content: 'x' }, { finish })).to.include({ stop_reason: 'stop_sequence', stop_sequence: 'END' });
  });

  it('G12: cached and written tokens separate from the input, not in it', () => {
    const details = { cached_tokens: 7, cache_write_tokens: 3, cache_write_1h_tokens: 1 };
    expect(write({}, {}, { ...USAGE, prompt_tokens_details: details })['usage']).to.deep.equal({
      ...{ input_tokens: 10, cache_read_input_tokens: 7, cache_creation_input_tokens: 3, output_tokens: 5 },
      cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 1 },
    });
  });

  describe('reasoning', () => {
    it('of the format’s own provider with its signatures sealed, in the order it had', () => {
      const { content } = write({
        ...{ content: 'ok', reasoning_content: 'AB', tool_calls: [call('t', '{"a":1}')] },
        reasoning_details: [
          { kind: 'text', text: 'A', signature: 'S+/=', format: 'anthropic' },
          { kind: 'encrypted', data: 'D', format: 'anthropic' },
          { kind: 'text', text: 'B', signature: 'T', format: 'anthropic' },
        ],
        order: ['reasoning:0', 'reasoning:1', 'content:0', 'reasoning:2', 'tool:0'],
      });
      expect(content).to.deep.equal([
        { type: 'thinking', thinking: 'A', signature: 'tg1.here.tag.S+/=' },
        { type: 'redacted_thinking', data: 'tg1.here.tag.D' },
        { type: 'text', text: 'ok' },
        { type: 'thinking', thinking: 'B', signature: 'tg1.here.tag.T' },
        { type: 'tool_use', id: 't', name: 'look', input: { a: 1 } },
      ]);
    });

    it('of others unsigned, or sealed if they need it back', () => {
      expect(write({ reasoning_content: 'Hm' }).content).to.deep.equal([
        { type: 'thinking', thinking: 'Hm', signature: '' },
      ]);
      const detail = { kind: 'encrypted', data: 'X', format: 'responses', id: 'rs_1' } as const;
      const sealed = 'tgr.responses.rs_1.tg1.here.tag.X';
      expect(write({ reasoning_content: 'Hm', reasoning_details: [detail] }).content).to.deep.equal([
        { type: 'thinking', thinking: 'Hm', signature: sealed },
      ]);
      expect(write({ content: 'a', reasoning_details: [detail] }).content).to.deep.equal([
        { type: 'redacted_thinking', data: sealed },
        { type: 'text', text: 'a' },
      ]);
    });

    for (const thinking of [{ type: 'disabled' }, { type: 'adaptive', display: 'omitted' }]) {
      it(`of others not at all if the caller sends ${JSON.stringify(thinking)}`, () => {
        const { content } = write({ content: 'a', reasoning_content: 'Hm' }, {}, USAGE, messagesContext({ thinking }));
        expect(content).to.deep.equal([{ type: 'text', text: 'a' }]);
      });
    }
  });

  for (const [name, text, input] of [
    ['an object', '{"a":[1]}', { a: [1] }],
    ['G10: nothing', '', {}],
    ['an object that breaks off in a text', '{"path":"/a","text":"hel', { path: '/a', text: 'hel' }],
    ['one that breaks off behind a key', '{"path":"/a","te', { path: '/a' }],
    ['one that breaks off in a list', '{"a":[1,2,{"b":3', { a: [1, 2, { b: 3 }] }],
    ['one that breaks off in an escape', '{"a":"x\\', {}],
    ['one that has just begun', '{', {}],
    ['what is not an object', '"x"', { arguments: 'x' }],
    ['what is no JSON', 'x', { arguments: 'x' }],
  ] as const) {
    it(`arguments that are ${name} as an object`, () => {
      expect(write({ tool_calls: [call('t', text)] }).content[0]?.['input']).to.deep.equal(input);
    });
  }

  it('G26: ids of calls in the letters of the format, different ones different, always the same', () => {
    const ids = ['functions.Bash:0', 'functions.Bash:1', 'functions_Bash_0'].map(writeCallId);
    expect(new Set(ids)).to.have.property('size', 3);
    for (const id of ids) expect(id).to.match(/^[A-Za-z0-9_-]{1,64}$/);
    expect(writeCallId('functions.Bash:0')).to.equal(ids[0]);
    const signed = `call__thought__${'A'.repeat(500)}`;
    expect(writeCallId(signed)).to.equal(signed);
  });

  it('citations of pages, and its own unchanged', () => {
    const own = { type: 'char_location', cited_text: 'Hi', document_index: 0, start_char_index: 0, end_char_index: 2 };
    const { content } = write({
      content: 'Hi there',
      annotations: [
        { type: 'opaque', dialect: 'messages', value: own },
        { type: 'url_citation', url_citation: { url: 'https://x.test', title: 'X', start_index: 3, end_index: 8 } },
        { type: 'file_citation', file_id: 'f' },
      ],
    });
    expect(content[0]?.['citations']).to.deep.equal([
      own,
      {
        ...{ type: 'web_search_result_location', url: 'https://x.test', title: 'X' },
        ...{ cited_text: 'there', encrypted_index: '' },
      },
    ]);
  });
});
