import { expect } from 'chai';
import { createId, createOrderedId, requestIdOf } from '../../../core/calls/ids.ts';

describe('ids', () => {
  it('have their prefix and 22 url-safe characters, and are unique', () => {
    const ids = Array.from({ length: 1000 }, () => createId('req_'));
    for (const id of ids) expect(id).to.match(/^req_[\w-]{22}$/);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('that are ordered sort as text, also within a millisecond', () => {
    const ids = Array.from({ length: 5000 }, () => createOrderedId('call_'));
    for (const id of ids) expect(id).to.match(/^call_[\da-z]{10}[\w-]{12}$/);
    expect([...new Set(ids)].sort()).to.deep.equal(ids);
  });

  it('follow a clock that was set back, so that records are found by the time in their ids', () => {
    const timeOf = (id: string): number => Math.floor(Number.parseInt(id.slice(5, 15), 36) / 1024);
    const clock = Date.now;
    const [noon, later] = [Date.UTC(2030, 0, 1, 12), Date.UTC(2030, 0, 1, 13)];
    try {
      Date.now = () => later;
      expect(timeOf(createOrderedId('call_'))).to.equal(later);
      Date.now = () => noon;
      expect(timeOf(createOrderedId('call_'))).to.equal(noon);
    } finally {
      Date.now = clock;
    }
    expect(timeOf(createOrderedId('call_'))).to.be.closeTo(clock(), 1000);
  });

  for (const inbound of ['12345678', 'a.b_c-d.e', 'x'.repeat(128)])
    it(`of a request are preserved if they look like ${inbound.slice(0, 12)}`, () => {
      expect(requestIdOf(inbound)).to.equal(inbound);
    });

  const REFUSED = [
    undefined,
    '',
    '1234567',
    'x'.repeat(129),
    'has space',
    'line\nbreak',
    'ünïcode8',
    ['12345678', '12345678'],
    '<script>x',
  ];
  for (const inbound of REFUSED)
    it(`of a request are replaced if they are ${JSON.stringify(inbound)?.slice(0, 24)}`, () => {
      expect(requestIdOf(inbound)).to.match(/^req_[\w-]{22}$/);
    });
});
