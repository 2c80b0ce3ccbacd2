import { expect } from 'chai';
import { toolCallId } from '../../../../plugins/providers/kit/index.ts';

describe('ids of tool calls', () => {
  it('stay unchanged when they are valid', () => {
    expect(toolCallId('call_Ab-9', 64)).to.equal('call_Ab-9');
  });

  it('are made to fit, always in the same way, and stay different', () => {
    const ids = ['a b', 'a_b', 'a/b', 'x'.repeat(64), 'x'.repeat(65), 'x'.repeat(66), '', 'ü'].map((id) =>
      toolCallId(id, 40),
    );
    for (const id of ids) expect(id).to.match(/^[A-Za-z0-9_-]{1,40}$/);
    expect(new Set(ids).size).to.equal(ids.length);
    expect(toolCallId('a b', 40)).to.equal(ids[0]);
  });
});
