import { expect } from 'chai';
import { createRedactor, listSecrets } from '../../../config/redact.ts';

describe('texts without secrets', () => {
  const SECRET = 'p+ss"w/rd éxtra';
  const redact = createRedactor(() => [SECRET, 'short-secret', 'short-secret-and-more']);

  const TEXTS: readonly (readonly [text: string, shown: string])[] = [
    ['nothing to hide', 'nothing to hide'],
    [`a ${SECRET} b`, 'a [redacted] b'],
    [`a ${encodeURIComponent(SECRET)} b`, 'a [redacted] b'],
    [`a ${JSON.stringify(SECRET)} b`, 'a "[redacted]" b'],
    ['short-secret-and-more', '[redacted]'],
    ['sk-proj-abcdefgh12345678', '[redacted]'],
    ['tg_AbCdEf123456_secretsecret', '[redacted]'],
    ['Authorization: Bearer abcdefgh12345', 'Authorization: [redacted]'],
    ['eyJhbGciOiJI.eyJzdWIiOiIx.c2ln', '[redacted]'],
    ['AKIAIOSFODNN7EXAMPLE', '[redacted]'],
    ['ghp_abcdefghijklmnop', '[redacted]'],
    ['-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- x', '[redacted] x'],
    ['-----BEGIN PRIVATE KEY-----\nMII and no end', '[redacted]'],
  ];
  for (const [text, shown] of TEXTS)
    it(`read ${JSON.stringify(shown)} for ${JSON.stringify(text.slice(0, 30))}`, () =>
      expect(redact(text)).to.equal(shown));

  it('hide everything that is hidden in the printed configuration', () => {
    const plain = { a: { apiKey: 'first-secret', name: 'shown-name' }, list: ['second-secret', 'x'], short: 'tiny' };
    const printable = { a: { apiKey: '****', name: 'shown-name' }, list: ['****', 'x'], short: '****' };
    expect(listSecrets({ plain: () => plain, printable: () => printable })).to.deep.equal([
      'first-secret',
      'second-secret',
    ]);
  });
});
