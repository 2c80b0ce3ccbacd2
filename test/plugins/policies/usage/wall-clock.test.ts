import { expect } from 'chai';
import fc from 'fast-check';
import { offsetAt } from '../../../../plugins/policies/kit/calendar-windows.ts';
import { firstInstantOf, isTimeZone, wallAt } from '../../../../plugins/policies/kit/index.ts';
import { formatHour, startOfDay, startOfMonth } from '../../../../plugins/policies/usage/range.ts';

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Pacific/Apia',
  'Africa/Casablanca',
  'America/Havana',
  'Asia/Beirut',
  'America/Sao_Paulo',
];
const zone = fc.constantFrom(...ZONES);
const instant = fc.integer({ min: Date.UTC(2010, 0, 1), max: Date.UTC(2035, 0, 1) });
const DAY_MS = 86_400_000;

/** Local day in the format of `en-CA`, independent of our calculation. */
const dayBy = (name: string, at: number): string =>
  new Intl.DateTimeFormat('en-CA', { timeZone: name, year: 'numeric', month: '2-digit', day: '2-digit' }).format(at);

describe('wall clocks of time zones', () => {
  it('know IANA names, and no offsets, blanks or paths', () => {
    for (const name of [...ZONES, 'europe/berlin', 'Etc/GMT+5']) expect(isTimeZone(name), name).to.equal(true);
    for (const name of ['', 'Mars/Olympus', '+01:00', 'Europe/Berlin ', '../etc', 'x'.repeat(100), 'CET\n'])
      expect(isTimeZone(name), name).to.equal(false);
  });

  const TIMES: readonly (readonly [name: string, wall: string, instant: string])[] = [
    ['UTC', '2026-11-01T00:00', '2026-11-01T00:00:00.000Z'],
    ['Europe/Berlin', '2026-03-29T00:00', '2026-03-28T23:00:00.000Z'],
    ['Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:00:00.000Z'],
    ['Europe/Berlin', '2026-03-30T00:00', '2026-03-29T22:00:00.000Z'],
    ['Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30:00.000Z'],
    ['America/New_York', '2026-11-01T01:30', '2026-11-01T05:30:00.000Z'],
    ['Australia/Lord_Howe', '2026-10-04T02:10', '2026-10-03T15:30:00.000Z'],
    ['Australia/Lord_Howe', '2026-04-05T01:45', '2026-04-04T14:45:00.000Z'],
    ['Asia/Kolkata', '2026-11-01T00:00', '2026-10-31T18:30:00.000Z'],
    ['Pacific/Apia', '2011-12-30T00:00', '2011-12-30T10:00:00.000Z'],
    ['Pacific/Apia', '2011-12-31T00:00', '2011-12-30T10:00:00.000Z'],
    ['America/Sao_Paulo', '2018-11-04T00:00', '2018-11-04T03:00:00.000Z'],
  ];
  for (const [name, wall, expected] of TIMES)
    it(`show ${wall} in ${name} first at ${expected}`, () =>
      expect(new Date(firstInstantOf(name, Date.parse(`${wall}Z`))).toISOString()).to.equal(expected));

  it('show, at the instant found for a time, that time or the one after a clock change', () =>
    fc.assert(
      fc.property(zone, instant, (name, at) => {
        const wall = wallAt(name, at);
        const found = firstInstantOf(name, wall);
        expect(found).to.be.at.most(at);
        expect(wallAt(name, found)).to.equal(wall);
      }),
    ));

  it('have a day whose first instant shows it, while the instant before shows another', () =>
    fc.assert(
      fc.property(zone, instant, (name, at) => {
        const start = startOfDay(name, wallAt(name, at));
        const end = startOfDay(name, wallAt(name, at), 1);
        expect(dayBy(name, start)).to.equal(dayBy(name, at));
        expect(dayBy(name, start - 1)).not.to.equal(dayBy(name, at));
        expect(end - start).to.be.within(0.9 * DAY_MS, 2.1 * DAY_MS);
        expect(startOfMonth(name, wallAt(name, at))).to.be.at.most(start);
      }),
    ));

  it('are written with the offset that they have then', () => {
    expect(formatHour('UTC', Date.UTC(2026, 0, 1))).to.equal('2026-01-01T00:00Z');
    expect(formatHour('America/New_York', Date.UTC(2026, 10, 1, 5))).to.equal('2026-11-01T01:00-04:00');
    expect(formatHour('America/New_York', Date.UTC(2026, 10, 1, 6))).to.equal('2026-11-01T01:00-05:00');
    expect(offsetAt('Asia/Kathmandu', 0)).to.equal(5.5 * 3_600_000);
  });
});
