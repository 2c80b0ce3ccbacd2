import fc from 'fast-check';

/**
 * Code points of all kinds, and characters of several. fast-check's units `binary` and `grapheme` build a map of every
 * code point, which takes a second and 80 MB in each process.
 */
const CHARACTER = fc.oneof(
  fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCodePoint(code)),
  fc.integer({ min: 0, max: 0x2ff }).map((code) => String.fromCodePoint(code)),
  fc.integer({ min: 0x300, max: 0xd7ff }).map((code) => String.fromCodePoint(code)),
  fc.integer({ min: 0xe000, max: 0x10ffff }).map((code) => String.fromCodePoint(code)),
  fc.constantFrom('é', 'e\u0301', '👍🏽', '👩‍👩‍👧', '🇩🇪', '한', '\u2028', '\ufeff'),
);

/** Names that objects of JavaScript have already. */
const RISKY = fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', '0');

/** Arbitrary text of valid Unicode. The lengths count characters, of up to seven code points. */
export function anyText({ minLength = 0, maxLength = 20 } = {}): fc.Arbitrary<string> {
  const text = fc.array(CHARACTER, { minLength, maxLength }).map((characters) => characters.join(''));
  return fc.oneof(
    { weight: 9, arbitrary: text },
    { weight: 1, arbitrary: RISKY.filter((name) => name.length <= maxLength) },
  );
}
