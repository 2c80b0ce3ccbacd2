import { expect } from 'chai';
import { type ChatChunk, type ChatDelta, GatewayError } from '../../../../contract/index.ts';
import { anthropicStream } from '../../../../plugins/formats/anthropic/read-response.ts';
import { writeStream } from '../../../../plugins/formats/anthropic/write-stream.ts';
import { codecCall, decode, fixture, readSse } from '../../../support/formats/codec.ts';
import { readMessagesStream } from '../../../support/formats/messages-grammar.ts';
import { messagesContext } from './messages-dialect.ts';

const HEAD = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-5' } as const;
const chunkOf = (delta: ChatDelta, finish_reason: 'stop' | 'length' | 'tool_calls' | null = null): ChatChunk => ({
  ...{ ...HEAD, choices: [{ index: 0, delta, finish_reason }] },
});
const USAGE: ChatChunk = {
  ...{ ...HEAD, choices: [], usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 } },
};
const tool = (index: number, id: string, text = '') => ({
  tool_calls: [{ index, id, type: 'function' as const, function: { name: `f${index}`, arguments: text } }],
});
const more = (index: number, text: string) => ({ tool_calls: [{ index, function: { arguments: text } }] });

function stream(
  deltas: readonly ChatDelta[],
  finish: 'stop' | 'length' | 'tool_calls' = 'stop',
  context = messagesContext(),
) {
  const writer = writeStream(context);
  const text = [...deltas.map((delta) => chunkOf(delta)), chunkOf({}, finish), USAGE].map((chunk) =>
    writer.push(chunk),
  );
  return readMessagesStream(text.join('') + writer.end());
}

/** Thinking blocks, sealed by the context of tests. */
function sealed(blocks: readonly Record<string, unknown>[]): readonly object[] {
  return blocks.map((block) => {
    const field = block['type'] === 'thinking' ? 'signature' : 'data';
    return field in block ? { ...block, [field]: `tg1.here.tag.${block[field]}` } : block;
  });
}

describe('the Messages dialect streams', () => {
  for (const [name, deltas, content] of [
    [
      'G01, G03, G04: reasoning, text and a call, each in a block of its own, nothing lost where one begins',
      [{ reasoning_content: 'Hm' }, { content: 'Lo' }, { content: 'ok' }, tool(0, 'a'), more(0, '{"x":1}')],
      [
        { type: 'thinking', thinking: 'Hm', signature: '' },
        { type: 'text', text: 'Look' },
        { type: 'tool_use', id: 'a', name: 'f0', input: { x: 1 } },
      ],
    ],
    [
      'G05: text before reasoning',
      [{ content: 'a' }, { reasoning_content: 'b' }, { content: 'c' }],
      [
        { type: 'text', text: 'a' },
        { type: 'thinking', thinking: 'b', signature: '' },
        { type: 'text', text: 'c' },
      ],
    ],
    [
      'G08: a call first as the first block',
      [{ role: 'assistant', content: '' } as const, tool(0, 'a', '{}')],
      [{ type: 'tool_use', id: 'a', name: 'f0', input: {} }],
    ],
    [
      'G09: parallel calls whose arguments come in turns one after the other',
      [
        tool(0, 'a'),
        tool(1, 'b'),
        more(0, '{"x"'),
        more(1, '{"y"'),
        { content: 'text' },
        more(0, ':1}'),
        more(1, ':2}'),
      ],
      [
        { type: 'tool_use', id: 'a', name: 'f0', input: { x: 1 } },
        { type: 'tool_use', id: 'b', name: 'f1', input: { y: 2 } },
        { type: 'text', text: 'text' },
      ],
    ],
    [
      'G10: calls without arguments',
      [tool(0, 'a'), tool(1, 'b')],
      [
        { type: 'tool_use', id: 'a', name: 'f0', input: {} },
        { type: 'tool_use', id: 'b', name: 'f1', input: {} },
      ],
    ],
    [
      'G28: signed thinking without a text, and redacted thinking',
      [
        { reasoning_details: [{ kind: 'text', text: '', signature: 'S', format: 'anthropic' }] },
        { reasoning_details: [{ kind: 'encrypted', data: 'D', format: 'anthropic' }] },
        { content: 'a' },
      ] as const,
      [
        { type: 'thinking', thinking: '', signature: 'tg1.here.tag.S' },
        { type: 'redacted_thinking', data: 'tg1.here.tag.D' },
        { type: 'text', text: 'a' },
      ],
    ],
    [
      'signed thinking twice, each signature sealed',
      [
        { reasoning_content: 'A' },
        { reasoning_details: [{ kind: 'text', text: 'A', signature: 'S+/=', format: 'anthropic' }] },
        { reasoning_content: 'B' },
        { reasoning_details: [{ kind: 'text', text: 'B', signature: 'T', format: 'anthropic' }] },
      ] as const,
      [
        { type: 'thinking', thinking: 'A', signature: 'tg1.here.tag.S+/=' },
        { type: 'thinking', thinking: 'B', signature: 'tg1.here.tag.T' },
      ],
    ],
    [
      'thinking that another provider wants back',
      [
        { reasoning_content: 'A' },
        { reasoning_details: [{ kind: 'encrypted', data: 'X', format: 'responses' }] },
        { content: 'a' },
      ] as const,
      [
        { type: 'thinking', thinking: 'A', signature: 'tgr.responses..tg1.here.tag.X' },
        { type: 'text', text: 'a' },
      ],
    ],
  ] as const) {
    it(name, () => {
      expect(stream(deltas).content).to.deep.equal(content);
    });
  }

  it('G06, G07: calls as tool_use, whatever the provider calls the end', () => {
    for (const finish of ['stop', 'tool_calls'] as const)
      expect(stream([{ content: 'a' }, tool(0, 'a', '{}')], finish).delta).to.include({ stop_reason: 'tool_use' });
  });

  it('G32: a limit in the middle of a call as max_tokens, with the input unchanged', () => {
    const { content, delta } = stream([tool(0, 'a'), more(0, '{"path":"/a')], 'length');
    expect(delta).to.deep.equal({ stop_reason: 'max_tokens', stop_sequence: null });
    expect(content[0]?.['input']).to.equal('{"path":"/a');
  });

  it('G11: an estimate at its start, the true counts at its end', () => {
    const { message, usage } = stream([{ content: 'a' }]);
    expect(message['usage']).to.deep.include({ input_tokens: 7, output_tokens: 0 });
    expect(usage).to.include({ input_tokens: 20, output_tokens: 5 });
  });

  it('G15: an error as the last event', () => {
    const writer = writeStream(messagesContext());
    const begun = writer.push(chunkOf({ content: 'half' }));
    const { error, content } = readMessagesStream(
      begun + writer.fail(new GatewayError('provider_overloaded', 'Full.'), 'req_1'),
    );
    expect(error).to.deep.equal({
      ...{ type: 'error', error: { type: 'overloaded_error', message: 'Full.' }, request_id: 'req_1' },
    });
    expect(content).to.deep.equal([{ type: 'text', text: 'half' }]);
  });

  it('no thinking if the caller disabled it', () => {
    const context = messagesContext({ thinking: { type: 'disabled' } });
    const detail = { kind: 'encrypted', data: 'X', format: 'responses' } as const;
    const deltas = [{ reasoning_content: 'Hm' }, { reasoning_details: [detail] }, { content: 'a' }];
    expect(stream(deltas, 'stop', context).content).to.deep.equal([{ type: 'text', text: 'a' }]);
  });

  it('a response without anything in it', () => {
    expect(stream([])).to.deep.include({ content: [], delta: { stop_reason: 'end_turn', stop_sequence: null } });
    const writer = writeStream(messagesContext());
    expect(readMessagesStream(writer.end()).content).to.deep.equal([]);
  });

  it('a limited number of concurrent calls, against an endless provider', () => {
    const writer = writeStream(messagesContext());
    const flood = () => {
      for (let index = 0; index < 1000; index++) writer.push(chunkOf(tool(index, `c${index}`, '{')));
    };
    expect(flood).to.throw(GatewayError).with.property('code', 'provider_invalid_response');
  });

  it('Anthropic’s stream, block by block unchanged, with sealed signatures', () => {
    const bytes = fixture('anthropic/stream-thinking-and-tools.sse');
    const { chunks } = decode(anthropicStream(codecCall()), readSse(bytes));
    const writer = writeStream(messagesContext());
    const written = readMessagesStream(chunks.map((chunk) => writer.push(chunk)).join('') + writer.end());
    const original = readMessagesStream(bytes);
    expect(written.content).to.deep.equal(sealed(original.content));
    expect(written.delta).to.include({ stop_reason: original.delta['stop_reason'] });
  });
});
