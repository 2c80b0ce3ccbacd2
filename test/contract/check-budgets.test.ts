import { expect } from 'chai';
import { checkText, problemLines } from '../config/config-plugins.ts';
import { removeFolders } from '../support/folders.ts';

/** Configuration with one budget per line from line 3 on. */
const withBudgets = (...budgets: readonly string[]): string =>
  ['providers: { acme: {} }', 'budgets:', ...budgets.map((budget) => `  - { ${budget} }`), ''].join('\n');

describe('budgets in the configuration', () => {
  afterEach(removeFolders);

  it('are read in nano-dollars, each with its zone', async () => {
    const text = withBudgets(
      'name: all, amount_usd: 20, every: month',
      'name: search, amount_usd: "2.50", soft_usd: 2, every: week, starts_on: sunday, timezone: Asia/Kolkata, tag: team=search, provider: acme, model: "x*"',
    );
    const { budgets } = await checkText(
      `${text}tags: { team: [search] }\nplans: { free: { rpm: 5, budgets: [{ amount_usd: 2, every: day }] } }\n`,
    );
    expect(budgets).to.deep.equal([
      { name: 'all', amount: 20_000_000_000, every: 'month', timezone: 'UTC' },
      {
        ...{ name: 'search', amount: 2_500_000_000, soft: 2_000_000_000, every: 'week', startsOn: 'sunday' },
        ...{ timezone: 'Asia/Kolkata', tag: 'team=search', provider: 'acme', model: 'x*' },
      },
    ]);
  });

  it('belong to a plan too, with a default name from their fields', async () => {
    const { plans } = await checkText(
      'providers: { acme: {} }\nplans: { free: { rpm: 5, budgets: [{ amount_usd: 2, every: day }, { name: m, amount_usd: 9, every: month, provider: acme }] } }\n',
    );
    expect(plans['free']).to.deep.equal({
      rpm: 5,
      budgets: [
        { name: 'day', amount: 2_000_000_000, every: 'day', timezone: 'UTC' },
        { name: 'm', amount: 9_000_000_000, every: 'month', timezone: 'UTC', provider: 'acme' },
      ],
    });
  });

  const cases: readonly (readonly [title: string, text: string, problems: readonly string[]])[] = [
    [
      'of tags that no call can carry',
      `${withBudgets(
        'name: a, amount_usd: 1, every: day, tag: team=serch',
        'name: b, amount_usd: 1, every: day, tag: taem=search',
        'name: c, amount_usd: 1, every: day, tag: "project=,"',
        'name: d, amount_usd: 1, every: day, tag: constructor=x',
        'name: e, amount_usd: 1, every: day, tag: "project=any thing"',
      )}tags: { team: [search, ads], project: "*" }\n`,
      [
        '3:48 budgets[0].tag: refers to a tag that is not in "tags" of the configuration. Did you mean "team=search"?',
        '4:48 budgets[1].tag: refers to a tag that is not in "tags" of the configuration. Did you mean "team"?',
        '5:48 budgets[2].tag: has an invalid tag value. Use 1 to 64 letters, digits, spaces and . _ : / @ + -, and begin with a letter or digit.',
        '6:48 budgets[3].tag: refers to a tag that is not in "tags" of the configuration. There are: team, project.',
      ],
    ],
    [
      'of a tag where there are none',
      withBudgets('name: a, amount_usd: 1, every: day, tag: team=search'),
      [
        '3:48 budgets[0].tag: refers to a tag that is not in "tags" of the configuration. No tags are configured. Add it to "tags".',
      ],
    ],
    [
      'of a plan and a provider that there are not',
      withBudgets('name: a, amount_usd: 1, every: day, plan: fre, provider: acne'),
      [
        '3:49 budgets[0].plan: names a plan that is not configured. There are none.',
        '3:64 budgets[0].provider: names a provider that is not configured. Did you mean "acme"?',
      ],
    ],
    [
      'in a zone that there is not, and in an offset',
      withBudgets(
        'name: a, amount_usd: 1, every: day, timezone: Mars/Olympus',
        'name: b, amount_usd: 1, every: day, timezone: "+02:00"',
      ),
      [
        '3:53 budgets[0].timezone: is not a time zone. Use an IANA name such as Europe/Berlin, America/New_York or UTC.',
        '4:53 budgets[1].timezone: is not a time zone. Use an IANA name such as Europe/Berlin, America/New_York or UTC.',
      ],
    ],
    [
      'of the same name',
      withBudgets('name: a, amount_usd: 1, every: day', 'name: a, amount_usd: 1, every: month'),
      ['4:13 budgets[1].name: is a duplicate of the budget "a"; spend is counted by name. Set a unique "name".'],
    ],
    [
      'of nothing, less than nothing and no amount',
      withBudgets(
        'name: a, amount_usd: 0, every: day',
        'name: b, amount_usd: -2, every: day',
        'name: c, amount_usd: much, every: day',
        'name: d, amount_usd: 0.1234567891, every: day',
        'name: e, amount_usd: 9000000.01, every: day',
      ),
      [3, 4, 5, 6, 7].map(
        (line) =>
          `${line}:28 budgets[${line - 3}].amount_usd: must be an amount of US dollars above 0. Write 25, 0.50 or "12.345678": more than 0, at most 9000000, with at most nine decimals.`,
      ),
    ],
    [
      'that warn when it is too late',
      withBudgets('name: a, amount_usd: 1, soft_usd: 2, every: day'),
      ['3:41 budgets[0].soft_usd: exceeds "amount_usd", so it would never warn. Use less than "amount_usd".'],
    ],
    [
      'that begin on days that there are not',
      withBudgets(
        'name: a, amount_usd: 1, every: month, starts_on: 31',
        'name: b, amount_usd: 1, every: week, starts_on: someday',
        'name: c, amount_usd: 1, every: day, starts_on: monday',
      ),
      [
        '3:56 budgets[0].starts_on: must be a day from 1 to 28. Use a number from 1 to 28.',
        '4:55 budgets[1].starts_on: must be a day of the week. Write one of sunday, monday, tuesday, wednesday, thursday, friday, saturday.',
        '5:54 budgets[2].starts_on: has no effect with "every: day". Remove it, or set every: week or month.',
      ],
    ],
    [
      'with words that there are not',
      withBudgets('name: a, amount_usd: 1, every: year', 'name: b, amount_usd: 1, every: day, teem: x'),
      [
        '3:38 budgets[0].every: must be total, hour, day, week or month, not the text "year".',
        '4:43 budgets[1].teem: unknown key. Keys of budgets[1]: name, amount_usd, every, timezone, starts_on, soft_usd, user, key, tag, plan, end_user, provider, model.',
      ],
    ],
    [
      'for an invalid tag',
      withBudgets('name: a, amount_usd: 1, every: day, tag: search'),
      ['3:48 budgets[0].tag: is not a tag. Use name=value, such as team=search.'],
    ],
    [
      'that nothing would be counted for',
      `billing: off\n${withBudgets('name: a, amount_usd: 1, every: day')}`,
      ['4:3 budgets: are not counted with "billing: off". Set billing: track, or enforce to check balances too.'],
    ],
    [
      'of a plan, with the same mistakes',
      'providers: { acme: {} }\nplans:\n  free:\n    budgets:\n      - { amount_usd: 1, every: day, timezone: Here }\n      - { amount_usd: 1, every: hour }\n      - { amount_usd: 2, every: hour }\n',
      [
        '5:48 plans.free.budgets[0].timezone: is not a time zone. Use an IANA name such as Europe/Berlin, America/New_York or UTC.',
        '7:9 plans.free.budgets[2].name: is a duplicate of the budget "hour"; spend is counted by name. Set a unique "name".',
      ],
    ],
  ];
  for (const [title, text, problems] of cases)
    it(`are refused ${title}`, async () => {
      const lines = await problemLines(text);
      expect(lines.map((line) => line.replace('tollgate.config.yaml:', ''))).to.deep.equal(problems);
    });
});
