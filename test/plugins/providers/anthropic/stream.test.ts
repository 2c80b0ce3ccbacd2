import { expect } from 'chai';
import { StreamFailure } from '../../../../contract/index.ts';
import { anthropicStream } from '../../../../plugins/formats/anthropic/read-response.ts';
import { ANSWER_TOOL } from '../../../../plugins/providers/kit/index.ts';
import { codecCall, collect, type Decoded, decode, fixture, readSse } from '../../../support/formats/codec.ts';

function play(name: string): Decoded {
  return decode(anthropicStream(codecCall({ stream: true })), readSse(fixture(`anthropic/${name}.sse`)));
}

function playEvents(events: readonly object[]): Decoded {
  return decode(
    anthropicStream(codecCall()),
    events.map((event) => ({ data: JSON.stringify(event) })),
  );
}

const START = {
  type: 'message_start',
  message: { id: 'msg_1', model: 'm', usage: { input_tokens: 5, output_tokens: 1 } },
};
const block = (index: number, content_block: object): object => ({ type: 'content_block_start', index, content_block });
const delta = (index: number, change: object): object => ({ type: 'content_block_delta', index, delta: change });
const stop = (index: number): object => ({ type: 'content_block_stop', index });
const end = (stop_reason: string, more: object = {}): object => ({
  type: 'message_delta',
  delta: { stop_reason, ...more },
  usage: { output_tokens: 9 },
});

describe('anthropic streams', () => {
  it('G11, E19: are incomplete after an unknown stop reason, and after one that asks to continue', () => {
    const text = [START, block(0, { type: 'text', text: 'Half' }), stop(0)];
    const unknown = playEvents([...text, end('something_new'), { type: 'message_stop' }]);
    expect(unknown.complete).to.equal(true);
    expect(collect(unknown.chunks)).to.deep.include({ content: 'Half', finish: ['length'] });
    expect(unknown.chunks.find(({ choices }) => choices[0]?.finish)?.choices[0]?.finish).to.deep.equal({
      native: 'something_new',
      unmapped: true,
    });
    expect(unknown.chunks.at(-1)?.usage).to.include({ completion_tokens: 9 });
    expect(() => playEvents([START, end('something_new')])).to.throw('something_new');
    for (const reason of ['pause_turn', 'compaction'])
      expect(collect(playEvents([...text, end(reason)]).chunks).finish).to.deep.equal(['length']);
  });

  it('G11: end an unknown stop reason with tool_calls if all calls are complete, otherwise with length', () => {
    for (const [text, finish] of [
      ['{"city":"Paris"}', 'tool_calls'],
      ['{"city":"Pa', 'length'],
    ] as const) {
      const call = [
        START,
        block(0, { type: 'tool_use', id: 't', name: 'f', input: {} }),
        delta(0, { type: 'input_json_delta', partial_json: text }),
        stop(0),
      ];
      expect(collect(playEvents([...call, end('something_new')]).chunks).finish, text).to.deep.equal([finish]);
    }
  });

  it('G10: are complete at message_stop, and finished before it', () => {
    const decoder = anthropicStream(codecCall());
    const progress = (event: object) => {
      decoder.push({ data: JSON.stringify(event) });
      return decoder.progress?.();
    };
    expect(progress(START)).to.equal('open');
    expect(progress(block(0, { type: 'text', text: 'x' }))).to.equal('open');
    expect(progress(end('end_turn'))).to.equal('finished');
    expect(progress({ type: 'message_stop' })).to.equal('complete');
  });

  it('open with the role, end with one finish reason and the usage of both ends', () => {
    const { chunks, complete } = play('stream');
    expect(chunks[0]?.choices[0]?.delta).to.deep.equal({ role: 'assistant', content: '', refusal: null });
    expect(collect(chunks)).to.deep.include({ content: 'Grüß Gott 👋', finish: ['stop'], roles: 1 });
    expect(chunks.at(-1)).to.deep.include({ id: 'msg_01X', model: 'claude-sonnet-5-20260401', choices: [] });
    expect(chunks.at(-1)?.usage).to.deep.equal({
      prompt_tokens: 135,
      completion_tokens: 12,
      total_tokens: 147,
      prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 10 },
    });
    expect(complete).to.equal(true);
  });

  it('count tools from 0, whatever block they are in', () => {
    const { chunks } = play('stream-thinking-and-tools');
    const indexes = chunks
      .flatMap(({ choices }) => choices.flatMap((choice) => choice.delta.tool_calls ?? []))
      .map(({ index }) => index);
    expect([...new Set(indexes)]).to.deep.equal([0, 1]);
    expect(collect(chunks).calls).to.deep.equal([
      { id: 'toolu_01', name: 'get_weather', arguments: '{"city": "Paris"}' },
      { id: 'toolu_02', name: 'get_time', arguments: '{}' },
    ]);
    expect(collect(chunks).finish).to.deep.equal(['tool_calls']);
  });

  it('pass thinking on immediately, and its signed blocks for replay', () => {
    const { chunks } = play('stream-thinking-and-tools');
    const replay = chunks.flatMap(({ choices }) => choices.flatMap((choice) => choice.delta.reasoning_details ?? []));
    expect(collect(chunks).reasoning).to.equal('Need weather.');
    expect(replay).to.deep.equal([
      { kind: 'text', text: 'Need weather.', signature: 'EqQBCgIYAhIM', format: 'anthropic' },
      { kind: 'encrypted', data: 'EmwKAhgB', format: 'anthropic' },
    ]);
  });

  it('keep the input tokens of the start when the end has null', () => {
    expect(play('stream-thinking-and-tools').chunks.at(-1)?.usage).to.deep.include({
      prompt_tokens: 135,
      completion_tokens: 89,
      completion_tokens_details: { reasoning_tokens: 30 },
    });
  });

  it('ignore unknown events, blocks and deltas', () => {
    expect(collect(play('stream-unknown-events').chunks)).to.deep.include({
      content: 'from the start',
      finish: ['length'],
    });
  });

  it('are not complete, and get no invented end, when the vendor broke off', () => {
    const { chunks, complete } = play('cut');
    expect(complete).to.equal(false);
    expect(collect(chunks).finish).to.deep.equal([]);
  });

  for (const [name, failure] of [
    ['failure-first', 'rate_limit'],
    ['failure-midway', 'overloaded'],
  ] as const) {
    it(`fail with the class of the error in ${name}`, () => {
      expect(() => play(name))
        .to.throw(StreamFailure)
        .with.nested.property('failure.class', failure);
    });
  }

  it('show a formed answer as text, ended by stop', () => {
    const { chunks } = playEvents([
      START,
      block(0, { type: 'tool_use', id: 't', name: ANSWER_TOOL, input: {} }),
      delta(0, { type: 'input_json_delta', partial_json: '{"a":' }),
      delta(0, { type: 'input_json_delta', partial_json: '1}' }),
      stop(0),
      end('tool_use'),
    ]);
    expect(collect(chunks)).to.deep.include({ content: '{"a":1}', calls: [], finish: ['stop'] });
  });

  it('read the complete input of a call from its first event if no deltas follow', () => {
    const { chunks } = playEvents([
      START,
      block(0, { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } }),
      stop(0),
      end('tool_use'),
    ]);
    expect(collect(chunks).calls[0]?.arguments).to.equal('{"a":1}');
  });

  it('read a call that is complete in the first event', () => {
    const content = [{ type: 'tool_use', id: 't', name: 'f', input: { a: 1 } }];
    const message = { id: 'msg_1', content, stop_reason: 'tool_use', usage: { input_tokens: 0, output_tokens: 0 } };
    const { chunks, complete } = playEvents([{ type: 'message_start', message }, { type: 'message_stop' }]);
    expect(collect(chunks).calls).to.deep.equal([{ id: 't', name: 'f', arguments: '{"a":1}' }]);
    expect([collect(chunks).finish, complete]).to.deep.equal([['tool_calls'], true]);
  });

  it('ignore events after their end', () => {
    const events = [
      START,
      block(0, { type: 'text', text: 'x' }),
      stop(0),
      end('end_turn'),
      { type: 'message_stop' },
      START,
    ];
    expect(collect(playEvents(events).chunks)).to.deep.include({ content: 'x', roles: 1 });
  });

  it('show why the model refused', () => {
    const { chunks } = playEvents([START, end('refusal', { stop_details: { explanation: 'No.' } })]);
    expect(collect(chunks)).to.deep.include({ refusal: 'No.', finish: ['content_filter'] });
  });

  it('ignore a first event that a proxy repeats', () => {
    const { chunks } = playEvents([START, START, block(0, { type: 'text', text: 'x' }), stop(0), end('end_turn')]);
    expect(collect(chunks)).to.deep.include({ content: 'x', roles: 1 });
  });

  it('fail when a second answer begins in the midst of the first', () => {
    const again = { type: 'message_start', message: { id: 'msg_2' } };
    expect(() => playEvents([START, block(0, { type: 'text', text: 'x' }), again])).to.throw(
      StreamFailure,
      'second message',
    );
  });

  it('end once, although the vendor sends the end twice', () => {
    expect(collect(playEvents([START, end('end_turn'), end('max_tokens')]).chunks).finish).to.deep.equal(['stop']);
  });

  it('send nothing after their finish reason', () => {
    const { chunks } = playEvents([START, end('end_turn'), block(0, { type: 'text', text: 'late' }), stop(0)]);
    expect(collect(chunks).content).to.equal('');
  });

  it('are distinguished by their data only, without event names', () => {
    const named = readSse(fixture('anthropic/stream.sse'));
    const { chunks } = decode(
      anthropicStream(codecCall()),
      named.map(({ data }) => ({ data })),
    );
    expect(collect(chunks).content).to.equal('Grüß Gott 👋');
  });

  it('ignore blank events and fail on what is not JSON', () => {
    expect(anthropicStream(codecCall()).push({ data: ' ' })).to.deep.equal([]);
    expect(() => anthropicStream(codecCall()).push({ data: '<html>' })).to.throw(StreamFailure);
  });

  it('that never begin are not complete', () => {
    expect(anthropicStream(codecCall()).end()).to.deep.equal({ chunks: [], complete: false });
  });
});
