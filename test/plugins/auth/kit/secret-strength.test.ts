import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { findSecretWeakness } from '../../../../plugins/auth/kit/secret-strength.ts';

const WEAK: readonly (readonly [string, RegExp])[] = [
  ['', /0 bytes/],
  ['x'.repeat(31), /31 bytes/],
  ['x'.repeat(100), /different/],
  ['01'.repeat(20), /different/],
  ['1234567890'.repeat(4), /repeats/],
  ['Kq7Zt2Wn5Lr8Jf1H'.repeat(2), /repeats/],
  ['abcdefghijklmnopqrstuvwxyz1234567890', /alphabet/],
  ['please-change-me-before-going-live', /placeholder/],
  ['THIS IS USED TO SIGN AND VERIFY JWT TOKENS, REPLACE IT WITH YOUR OWN', /placeholder/],
  ['a-string-secret-at-least-256-bits-long', /placeholder/],
  ['this-is-a-very-long-string-to-make-sure-it-is-32-characters-long', /placeholder/],
];

describe('the strength of shared secrets', () => {
  for (const [secret, reason] of WEAK) {
    it(`is too low for ${JSON.stringify(secret.slice(0, 40))}`, () => {
      expect(findSecretWeakness(secret)).to.match(reason);
    });
  }

  it('is enough for random bytes in any usual spelling', () => {
    for (let i = 0; i < 500; i += 1) {
      for (const encoding of ['hex', 'base64', 'base64url'] as const) {
        // Looks like a random secret, and is the same in every run.
        const secret = createHash('sha256').update(String(i)).digest().toString(encoding);
        expect(findSecretWeakness(secret), secret).to.equal(undefined);
      }
    }
  });

  it('counts bytes, not characters', () => {
    expect(findSecretWeakness('àéîõüßñçøåžšřďťň')).to.equal(undefined);
    expect(findSecretWeakness('àéîõüßñçøåžšřďť')).to.match(/30 bytes/);
  });
});
