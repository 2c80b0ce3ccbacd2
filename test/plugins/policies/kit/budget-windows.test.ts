import { expect } from 'chai';
import fc from 'fast-check';
import { isTimeZone, WEEKDAYS } from '../../../../contract/operators.ts';
import { type CalendarWindow, type WindowRule, windowAt } from '../../../../plugins/policies/kit/calendar-windows.ts';
import { generatedCases } from '../../../support/generated-cases.ts';

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kolkata',
  'Pacific/Apia',
  'America/Havana',
  'Africa/Casablanca',
  'America/Nuuk',
  'Asia/Beirut',
] as const;
const FROM = Date.UTC(2020, 0, 1);
const TO = Date.UTC(2036, 0, 1);
const HOUR_MS = 3_600_000;

const iso = ({ start, end }: CalendarWindow): readonly string[] =>
  [start, end].map((instant) => new Date(instant).toISOString().replace(':00.000Z', 'Z'));

/** Rules of every period, zone and first day. */
const rules: fc.Arbitrary<WindowRule> = fc
  .record({
    every: fc.constantFrom('hour', 'day', 'week', 'month'),
    timezone: fc.constantFrom(...ZONES),
    weekday: fc.constantFrom(...WEEKDAYS),
    day: fc.integer({ min: 1, max: 28 }),
  })
  .map(({ every, timezone, weekday, day }) => ({
    every,
    timezone,
    ...(every === 'week' && { startsOn: weekday }),
    ...(every === 'month' && { startsOn: day }),
  }));

/** Instants, with more of them near clock changes and ends of months. */
const instants: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: FROM, max: TO - 1 }),
  fc
    .tuple(
      fc.constantFrom(
        ...['2026-03-29T01:00Z', '2026-10-25T01:00Z', '2026-03-08T07:00Z', '2026-11-01T06:00Z'],
        ...['2026-10-03T15:30Z', '2026-04-04T15:00Z', '2024-02-29T00:00Z', '2024-12-31T23:59Z', '2028-03-01T00:00Z'],
        ...['2021-03-31T22:00Z', '2022-03-26T22:00Z', '2023-10-29T00:00Z', '2020-10-31T23:00Z', '2021-04-03T14:00Z'],
      ),
      fc.integer({ min: -30 * HOUR_MS, max: 30 * HOUR_MS }),
    )
    .map(([near, by]) => Date.parse(near) + by),
);

/** Local date and time according to Intl, independent of the product's calculation. */
function shown(zone: string, instant: number): Record<'date' | 'time' | 'weekday', string> {
  const date = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' }).format(instant);
  const time = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, timeStyle: 'medium' }).format(instant);
  const weekday = new Intl.DateTimeFormat('en-GB', { timeZone: zone, weekday: 'long' }).format(instant).toLowerCase();
  return { date, time, weekday };
}

describe('the calendar windows of budgets', () => {
  it('tile time: no gap, no overlap, and every instant in exactly one', () => {
    fc.assert(
      fc.property(rules, instants, (rule, instant) => {
        const window = windowAt(rule, instant);
        expect(window.start).to.be.at.most(instant);
        expect(window.end).to.be.above(instant);
        expect(windowAt(rule, window.end).start).to.equal(window.end);
        expect(windowAt(rule, window.start - 1).end).to.equal(window.start);
        expect(windowAt(rule, window.start)).to.deep.equal(window);
        expect(windowAt(rule, window.end - 1)).to.deep.equal(window);
      }),
      { numRuns: generatedCases(1500) },
    );
  });

  it('begin with the first instant at which the zone’s own clock shows their first day', () => {
    fc.assert(
      fc.property(rules, instants, (rule, instant) => {
        fc.pre(rule.every !== 'hour');
        const { start } = windowAt(rule, instant);
        const first = shown(rule.timezone, start);
        const before = shown(rule.timezone, start - 1000);
        expect(first.date > before.date, `${before.date} ${before.time} → ${first.date} ${first.time}`).to.equal(true);
        if (rule.every === 'week') expect(first.weekday).to.equal(rule.startsOn);
        if (rule.every === 'month') expect(Number(first.date.slice(8))).to.equal(rule.startsOn);
      }),
      { numRuns: generatedCases(1000) },
    );
  });

  it('start an hour at a full hour of the clock or at its change into another', () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), instants, (timezone, instant) => {
        const { start, end } = windowAt({ every: 'hour', timezone }, instant);
        const first = shown(timezone, start).time;
        const before = shown(timezone, start - 1000).time;
        expect(first.slice(2) === ':00:00' || first.slice(0, 2) !== before.slice(0, 2)).to.equal(true);
        for (let at = start; at < end; at += 300_000)
          expect(shown(timezone, at).time.slice(0, 2)).to.equal(first.slice(0, 2));
      }),
      { numRuns: generatedCases(300) },
    );
  });

  it('have 23, 25, 23.5 and 24.5 hours on the days when clocks change', () => {
    const hours = (timezone: string, noon: string): number => {
      const { start, end } = windowAt({ every: 'day', timezone }, Date.parse(noon));
      return (end - start) / HOUR_MS;
    };
    expect(hours('Europe/Berlin', '2026-03-29T12:00Z')).to.equal(23);
    expect(hours('Europe/Berlin', '2026-10-25T12:00Z')).to.equal(25);
    expect(hours('America/New_York', '2026-03-08T16:00Z')).to.equal(23);
    expect(hours('America/New_York', '2026-11-01T16:00Z')).to.equal(25);
    expect(hours('Australia/Lord_Howe', '2026-10-04T02:00Z')).to.equal(23.5);
    expect(hours('Australia/Lord_Howe', '2026-04-05T02:00Z')).to.equal(24.5);
  });

  it('open a day at +9 when it begins there, not nine hours later (G88)', () => {
    const rule = { every: 'day', timezone: 'Asia/Tokyo' } as const;
    expect(iso(windowAt(rule, Date.parse('2026-05-01T15:00Z')))).to.deep.equal([
      '2026-05-01T15:00Z',
      '2026-05-02T15:00Z',
    ]);
    expect(iso(windowAt(rule, Date.parse('2026-05-01T14:59:59.999Z')))).to.deep.equal([
      '2026-04-30T15:00Z',
      '2026-05-01T15:00Z',
    ]);
  });

  it('use calendar months and not thirty days, from any first day, over leap days (G87)', () => {
    const month = (startsOn: number, at: string, timezone = 'Europe/Berlin'): readonly string[] =>
      iso(windowAt({ every: 'month', timezone, startsOn }, Date.parse(at)));
    expect(month(1, '2026-02-11T15:43Z')).to.deep.equal(['2026-01-31T23:00Z', '2026-02-28T23:00Z']);
    expect(month(1, '2024-02-29T12:00Z')).to.deep.equal(['2024-01-31T23:00Z', '2024-02-29T23:00Z']);
    expect(month(28, '2025-03-01T00:00Z', 'UTC')).to.deep.equal(['2025-02-28T00:00Z', '2025-03-28T00:00Z']);
    expect(month(15, '2026-01-14T12:00Z', 'UTC')).to.deep.equal(['2025-12-15T00:00Z', '2026-01-15T00:00Z']);
  });

  it('start weeks on Monday, or on Sunday if configured', () => {
    const week = (startsOn?: 'sunday'): readonly string[] =>
      iso(
        windowAt(
          { every: 'week', timezone: 'America/New_York', ...(startsOn && { startsOn }) },
          Date.parse('2026-11-01T12:00Z'),
        ),
      );
    expect(week()).to.deep.equal(['2026-10-26T04:00Z', '2026-11-02T05:00Z']);
    expect(week('sunday')).to.deep.equal(['2026-11-01T04:00Z', '2026-11-08T05:00Z']);
  });

  it('count an hour that is shown twice as two, and half an hour that is shown twice as one longer hour', () => {
    const hour = (timezone: string, at: string): readonly string[] =>
      iso(windowAt({ every: 'hour', timezone }, Date.parse(at)));
    expect(hour('Europe/Berlin', '2026-10-25T00:30Z')).to.deep.equal(['2026-10-25T00:00Z', '2026-10-25T01:00Z']);
    expect(hour('Europe/Berlin', '2026-10-25T01:30Z')).to.deep.equal(['2026-10-25T01:00Z', '2026-10-25T02:00Z']);
    expect(hour('Australia/Lord_Howe', '2026-04-04T15:10Z')).to.deep.equal(['2026-04-04T14:00Z', '2026-04-04T15:30Z']);
    expect(hour('Australia/Lord_Howe', '2026-10-03T15:40Z')).to.deep.equal(['2026-10-03T15:30Z', '2026-10-03T16:00Z']);
    expect(hour('Asia/Kolkata', '2026-04-04T15:10Z')).to.deep.equal(['2026-04-04T14:30Z', '2026-04-04T15:30Z']);
  });

  it('never end for a budget in total', () => {
    const { start, end } = windowAt({ every: 'total', timezone: 'UTC' }, Date.now());
    expect([start, end]).to.deep.equal([Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]);
  });

  it('identify zones by their names only', () => {
    for (const name of ['UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+9'])
      expect(isTimeZone(name), name).to.equal(true);
    for (const name of ['', '+02:00', 'Mars/Olympus', 'Europe/Berlín', '../etc/passwd', 'x'.repeat(500), 'UTC\n'])
      expect(isTimeZone(name), name).to.equal(false);
  });
});
