import { expect } from 'chai';
import fc from 'fast-check';
import type { ChatChunk, FinishReason } from '../../../contract/chat.ts';
import { deltaChunk } from '../../../contract/chunks.ts';
import type { Continuation } from '../../../contract/provider.ts';
import { ResumePoint, StreamPrefix } from '../../../core/calls/resume.ts';

const HEAD = { id: 'first', model: 'm', created: 1 };
const chunkOf = (content: string, finish?: FinishReason): ChatChunk =>
  deltaChunk({ id: 'second', model: 'n', created: 2 }, { role: 'assistant', content }, finish ? { finish } : {});

function said(text: string): StreamPrefix {
  const noted = new StreamPrefix();
  noted.record(deltaChunk(HEAD, { role: 'assistant', content: text }));
  return noted;
}

/** Text that a caller reads after `text`, from these pieces of the next vendor. */
function joined(text: string, pieces: readonly string[], continuation?: Continuation): string {
  const seam = new ResumePoint(said(text), continuation);
  const chunks = [...pieces.map((piece) => chunkOf(piece)), chunkOf('', 'stop')].map((piece) => seam.push(piece));
  expect(new Set(chunks.map(({ id, model, created }) => `${id} ${model} ${created}`))).to.deep.equal(
    new Set(['first m 1']),
  );
  expect(chunks.some(({ choices: [choice] }) => choice?.delta.role)).to.equal(false);
  return chunks.map(({ choices: [choice] }) => choice?.delta.content ?? '').join('');
}

/** Words of few letters and blanks, so that they contain repetitions. */
const words = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', 'é', '🎉'), minLength: 1, maxLength: 60 });
const cut = (text: string, sizes: readonly number[]): readonly string[] => {
  const pieces: string[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return [...pieces, text.slice(at)];
};
const sizes = fc.array(fc.nat({ max: 9 }), { maxLength: 12 });

describe('the seam between two targets’ texts', () => {
  it('loses and duplicates nothing of a vendor that repeats its prefix', () => {
    fc.assert(
      fc.property(words, words, sizes, (before, after, at) => {
        expect(joined(before, cut(before + after, at), { echoes: true })).to.equal(after);
      }),
    );
  });

  it('loses and duplicates nothing of a vendor that sends the continuation', () => {
    fc.assert(
      fc.property(words, words, sizes, (before, after, at) => {
        fc.pre(before.length < 32 || !after.startsWith(before));
        expect(joined(before, cut(after, at))).to.equal(after);
      }),
    );
  });

  it('adds white space once that a vendor does not get', () => {
    fc.assert(
      fc.property(words, words, sizes, (before, after, at) => {
        const given = before.trimEnd();
        const blank = before.slice(given.length);
        fc.pre(given.length < 32 || !(blank + after).startsWith(given));
        expect(joined(before, cut(blank + after, at), { trims: true })).to.equal(after);
      }),
    );
    expect(joined('a \n', ['b'], { trims: true })).to.equal('b');
    expect(joined('a ', ['\nb'], { trims: true })).to.equal('\nb');
  });

  it('ends on a mismatch: another text in place of the repetition, and an undeclared repetition', () => {
    const long = 'x'.repeat(40);
    expect(() => joined('Hello', ['Hell', ' no'], { echoes: true })).to.throw('did not resume the partial response');
    expect(() => joined('Hello', ['Hel'], { echoes: true })).to.throw('did not resume the partial response');
    expect(() => joined(long, [long, ' more'])).to.throw('did not resume the partial response');
    expect(joined(long, [long.slice(1)])).to.equal(long.slice(1));
  });

  it('drops thinking; tool calls pass', () => {
    const seam = new ResumePoint(said('Hello'));
    const [choice] = seam.push(deltaChunk(HEAD, { reasoning_content: 'hm', content: ' you' })).choices;
    expect(choice?.delta).to.deep.equal({ content: ' you' });
    const call = { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] };
    expect(seam.push(deltaChunk(HEAD, call)).choices[0]?.delta).to.deep.equal(call);
  });
});

describe('the text of a stream', () => {
  it('is recorded for one unfinished choice of text, up to a million characters', () => {
    const noted = said('Hello');
    noted.record(deltaChunk(HEAD, { content: ' you', refusal: null, annotations: [], reasoning_content: '' }));
    expect(noted).to.include({ isOpen: true, text: 'Hello you' });
    for (const chunk of [
      deltaChunk(HEAD, { content: '!' }, { finish: 'stop' }),
      deltaChunk(HEAD, { content: '!' }, { index: 1 }),
      deltaChunk(HEAD, { tool_calls: [{ index: 0 }] }),
      deltaChunk(HEAD, { reasoning_details: [{ kind: 'text', signature: 's', format: 'anthropic' }] }),
      deltaChunk(HEAD, { refusal: 'no' }),
      deltaChunk(HEAD, { content: 'x'.repeat(1_000_000) }),
    ]) {
      const other = said('Hello');
      other.record(chunk);
      expect(other, JSON.stringify(chunk).slice(0, 200)).to.include({ isOpen: false, text: '' });
    }
  });
});
