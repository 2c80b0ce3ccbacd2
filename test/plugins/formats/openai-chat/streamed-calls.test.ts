import { expect } from 'chai';
import { trackToolCalls } from '../../../../plugins/formats/openai-chat/tool-calls.ts';

interface Put {
  readonly name: string;
  arguments: string;
}

/** Combines a tracker's deltas as a client does. */
function collect(deltas: readonly object[]): readonly Put[] {
  const tracker = trackToolCalls('seed');
  const calls: Put[] = [];
  for (const delta of deltas.flatMap((one) => tracker.push([one]) ?? [])) {
    const call = calls[delta.index];
    if (call) call.arguments += delta.function?.arguments ?? '';
    else calls[delta.index] = { name: delta.function?.name ?? '', arguments: delta.function?.arguments ?? '' };
  }
  return calls;
}

const delta = (name: string | undefined, args: string, more: object = {}) => ({
  index: 0,
  function: { ...(name !== undefined && { name }), arguments: args },
  ...more,
});

describe('streamed tool calls with index 0 and no id', () => {
  it('D22: a second name opens a new call', () => {
    expect(collect([delta('f', '{"a":'), delta(undefined, '1}'), delta('g', '{}')])).to.deep.equal([
      { name: 'f', arguments: '{"a":1}' },
      { name: 'g', arguments: '{}' },
    ]);
  });

  it('D22: the same name opens a new call once the arguments were complete JSON', () => {
    expect(collect([delta('f', '{"a":1}'), delta('f', '{"a":2}')])).to.deep.equal([
      { name: 'f', arguments: '{"a":1}' },
      { name: 'f', arguments: '{"a":2}' },
    ]);
  });

  it('D22: a name repeated in the middle of the arguments opens none', () => {
    expect(collect([delta('f', '{"a":'), delta('f', '1}')])).to.deep.equal([{ name: 'f', arguments: '{"a":1}' }]);
  });

  it('D22: a repeated id keeps a call together', () => {
    const more = { id: 'c1' };
    expect(collect([delta('f', '{}', more), delta('f', '', more)])).to.deep.equal([{ name: 'f', arguments: '{}' }]);
  });
});
