import { expect } from 'chai';
import { anthropicStream } from '../../../../plugins/providers/anthropic/stream.ts';
import { codecCall, collect, decode, fixture } from '../../../support/codec.ts';
import { tortureStream, withGiantText } from '../../../support/torture.ts';

const decoder = () => anthropicStream(codecCall({ stream: true }));

for (const name of ['text', 'thinking-and-tools'] as const) {
  tortureStream(`the anthropic stream ${name}.sse`, { bytes: fixture(`anthropic/${name}.sse`), decoder });
}

describe('an anthropic stream', () => {
  it('carries an event of a megabyte', () => {
    const { events, text } = withGiantText(fixture('anthropic/text.sse'), 'Grüß');
    expect(collect(decode(decoder(), events).chunks).content).to.equal(`${text} Gott 👋`);
  });
});
