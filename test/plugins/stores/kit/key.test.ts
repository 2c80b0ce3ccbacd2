import { expect } from 'chai';
import fc from 'fast-check';
import { storeKey } from '../../../../plugins/stores/kit/check.ts';
import { anyText } from '../../../support/arbitrary-text.ts';

describe('keys from users’ input', () => {
  it('are the text itself when it is short and plain', () => {
    for (const text of ['', 'u_42', 'auth0|5f7c', 'a:b/c@d.e', 'Zoë', 'a b']) expect(storeKey(text)).to.equal(text);
  });

  it('are short, without NUL and well-formed, whatever the text, and differ when texts do', () => {
    const any = fc.oneof(anyText({ maxLength: 300 }), fc.constantFrom('~', '~a', '\ud800', '\ud801', 'a\0', 'a\0b'));
    fc.assert(
      fc.property(any, any, (one, two) => {
        const key = storeKey(one);
        expect(key.length).to.be.at.most(200);
        expect(key).not.to.include('\0');
        expect(Buffer.from(key).toString()).to.equal(key);
        expect(storeKey(two) === key).to.equal(one === two);
      }),
    );
  });

  it('never look like a hash unless they are one', () => {
    expect(storeKey(storeKey('x'.repeat(300)))).not.to.equal(storeKey('x'.repeat(300)));
  });
});
