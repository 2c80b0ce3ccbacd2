import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { createKey, KEY_PATTERN, parseKey, readKeyId } from '../../../../plugins/auth/api-key/format.ts';

const fixed = (size: number) => new Uint8Array(size).fill(7);

describe('the format of API keys', () => {
  it('depends only on the random bytes', () => {
    expect(createKey(fixed)).to.deep.equal(createKey(fixed));
    expect(createKey(fixed).text).to.match(KEY_PATTERN).and.have.lengthOf(65);
  });

  it('keeps its length for the smallest and the greatest random numbers', () => {
    for (const byte of [0, 255]) {
      const { id, text } = createKey((size) => new Uint8Array(size).fill(byte));
      expect(text).to.match(KEY_PATTERN);
      expect(parseKey(text)).to.deep.equal({ id });
    }
  });

  it('finds the public id in every key it makes', () => {
    for (let i = 0; i < 200; i += 1) {
      const { id, text } = createKey(randomBytes);
      expect(parseKey(text)).to.deep.equal({ id });
    }
  });

  it('refuses a key with any one character changed', () => {
    const { text } = createKey(fixed);
    for (let at = 0; at < text.length; at += 1) {
      const other = text[at] === 'x' ? 'y' : 'x';
      expect(parseKey(`${text.slice(0, at)}${other}${text.slice(at + 1)}`), `at ${at}`).to.equal(undefined);
    }
  });

  it('is found in a text by the pattern that docs/keys.md gives to secret scanners', () => {
    const docs = readFileSync(new URL('../../../../docs/keys.md', import.meta.url), 'utf8');
    const pattern = new RegExp(/^\\btg_.*$/m.exec(docs)?.[0] ?? 'no pattern');
    const { text } = createKey(randomBytes);
    expect(pattern.exec(`TOLLGATE_API_KEY="${text}"`)?.[0]).to.equal(text);
    expect(pattern.test(`x${text}`) || pattern.test(`${text}x`)).to.equal(false);
  });

  const { text, id } = createKey(fixed);
  const MALFORMED = [
    '',
    'tg_',
    `tg_${id}`,
    `${text} `,
    ` ${text}`,
    `${text}\n`,
    text.toUpperCase(),
    `${text}, ${text}`,
    'sk-abc',
  ];
  for (const bad of MALFORMED) {
    it(`refuses ${JSON.stringify(bad.length > 40 ? `${bad.slice(0, 40)}…` : bad)}`, () => {
      expect(parseKey(bad)).to.equal(undefined);
    });
  }

  it('reads the id only from an id, a prefix and a complete key', () => {
    expect([id, `tg_${id}`, text].map(readKeyId)).to.deep.equal([id, id, id]);
    expect(['', 'tg_', `tg_${id}_`, `x${id}`, '%', `${id}/../x`].map(readKeyId)).to.deep.equal(
      Array(6).fill(undefined),
    );
  });
});
