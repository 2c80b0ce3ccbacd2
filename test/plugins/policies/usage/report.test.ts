import { expect } from 'chai';
import fc from 'fast-check';
import type { ReportRow } from '../../../../contract/index.ts';
import { BY_WORDS, type By, readBy } from '../../../../plugins/policies/usage/dimensions.ts';
import { makeReport } from '../../../../plugins/policies/usage/report.ts';
import { pageOf, readCursor, type Sort, sortRows } from '../../../../plugins/policies/usage/usage-query.ts';
import { refusal } from '../../../support/errors.ts';

const NO_UNITS = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, reasoning_tokens: 0, characters: 0 };

const row = (rest: Partial<ReportRow>): ReportRow => ({
  ...{ interval: 0, requests: 1, errors: 0, estimated: 0, unpriced: 0, units: NO_UNITS, cost: 10n, saved: 0n },
  ...rest,
});

describe('the dimensions of a report', () => {
  it('are taken with spaces, each once, in their order', () =>
    expect(readBy(' model, user ,model,day')).to.deep.equal(['model', 'user', 'day']));

  const WRONG: readonly (readonly [text: string, message: RegExp])[] = [
    ['', /"by" cannot be ""; use one or more of user, key, tag/],
    ['usr', /cannot be "usr"; did you mean user\?/],
    ['tags', /did you mean tag\?/],
    ['user,,model', /cannot be ""/],
    ['day,month', /has day and month; choose one unit of time/],
    ['constructor', /cannot be "constructor"/],
    ['x'.repeat(5000), /cannot be "x{40}"/],
  ];
  for (const [text, message] of WRONG)
    it(`are refused as "${text.slice(0, 20)}"`, () => expect(refusal(() => readBy(text)).message).to.match(message));
});

describe('a usage report', () => {
  it('G83: counts a call with two tags once in its totals, and reports the amount in several rows', () => {
    const found = [
      row({ tags: '["project=x","team=search"]', cost: 30n }),
      row({ tags: '["team=search"]', cost: 5n }),
      row({ tags: '[]', cost: 7n }),
    ];
    const { rows, totals, shared } = makeReport(found, ['tag'], ['']);
    expect(rows.map(({ names, sums }) => [names[0], sums.cost])).to.deep.equal([
      ['project=x', 30n],
      ['team=search', 35n],
      ['-', 7n],
    ]);
    expect(totals).to.include({ requests: 3, cost: 42n });
    expect(shared?.calls).to.include({ requests: 1, cost: 30n });
    expect(shared?.repeated).to.include({ requests: 1, cost: 30n });
  });

  it('adds up to the store’s total with any grouping, without repeated calls', () => {
    const text = fc.constantFrom('a', 'b', '', '=x', '-', 'ü');
    const anyRow = fc.record({
      interval: fc.nat(2),
      user: text,
      key: text,
      provider: text,
      model: text,
      operation: text,
      session: text,
      account: text,
      tags: fc.uniqueArray(fc.constantFrom('t=1', 'u=2', 'v=3'), { maxLength: 3 }).map((tags) => JSON.stringify(tags)),
      cost: fc.bigInt(0n, 2n ** 60n),
      requests: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(anyRow, { maxLength: 30 }), fc.subarray([...BY_WORDS], { minLength: 1 }), (parts, by) => {
        const words = by.filter((word) => !['hour', 'month'].includes(word));
        fc.pre(words.length > 0);
        const found = parts.map((part) => row(part));
        const { rows, totals, shared } = makeReport(found, words, ['d1', 'd2', 'd3']);
        for (const what of ['cost', 'requests'] as const) {
          const sum = (list: readonly (number | bigint)[]) =>
            list.reduce((whole: bigint, each) => whole + BigInt(each), 0n);
          expect(BigInt(totals[what])).to.equal(sum(found.map((each) => each[what])));
          const ofRows = sum(rows.map(({ sums }) => sums[what]));
          expect(ofRows - BigInt(shared?.repeated[what] ?? 0)).to.equal(BigInt(totals[what]));
        }
      }),
    );
  });
});

describe('the pages of a report', () => {
  const by: readonly By[] = ['day', 'user'];
  const rows = ['b', 'a', 'c', 'a,', '=1'].flatMap((user, i) =>
    [2, 0, 1].map((interval) => ({
      names: [`d${interval}`, user],
      interval,
      sums: { ...makeReport([], by, []).totals, cost: BigInt((i * 7 + interval) % 4), requests: 1 },
    })),
  );
  const range = { from: 1, to: 2 };

  for (const sort of ['name', 'cost'] as readonly Sort[])
    for (const limit of [1, 2, 7, 15, 100])
      it(`sorted by ${sort} have every row once, ${limit} a page`, () => {
        const sorted = sortRows(rows, by, sort);
        const seen: unknown[] = [];
        let next: string | undefined;
        do {
          const after = next === undefined ? undefined : readCursor(next, by);
          const page = pageOf(sorted, { by, sort, limit, after }, range);
          expect(page.rows.length).to.be.within(1, limit);
          seen.push(...page.rows);
          next = page.next;
        } while (next !== undefined);
        expect(seen).to.deep.equal(sorted);
      });

  it('refuse an invalid cursor', () => {
    const other = Buffer.from(JSON.stringify({ from: 1, to: 2, interval: 0, cost: 0, names: ['x'] })).toString(
      'base64url',
    );
    for (const text of ['', 'x', 'null', other, Buffer.from('{"from":"1"}').toString('base64url'), 'A'.repeat(9000)])
      expect(refusal(() => readCursor(text, by))).to.include({ code: 'invalid_request', param: 'after' });
  });
});
