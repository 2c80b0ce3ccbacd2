import { expect } from 'chai';
import { geminiStream } from '../../../../plugins/providers/gemini/stream.ts';
import { codecCall, collect, decode, fixture } from '../../../support/codec.ts';
import { tortureStream, withGiantText } from '../../../support/torture.ts';

const decoder = () => geminiStream(codecCall({ stream: true }));

for (const name of ['text', 'tools'] as const) {
  tortureStream(`the gemini stream ${name}.sse`, { bytes: fixture(`gemini/${name}.sse`), decoder });
}

describe('a gemini stream', () => {
  it('carries an event of a megabyte', () => {
    const { events, text } = withGiantText(fixture('gemini/text.sse'), 'Grüß');
    expect(collect(decode(decoder(), events).chunks).content).to.equal(`${text} Gott 👋!`);
  });
});
