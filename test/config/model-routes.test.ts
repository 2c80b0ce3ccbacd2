import { expect } from 'chai';
import { removeFolders } from '../support/folders.ts';
import { checkText } from './config-plugins.ts';

/** Messages of a rejected configuration. */
const problemsOf = (text: string): Promise<string> =>
  checkText(text).then(
    () => 'fine',
    (error: unknown) => String(error instanceof Error ? error.message : error),
  );

const PROVIDERS = "providers: { acme: { apiKey: 'k' } }\n";

describe('an alias with rules in a configuration', () => {
  afterEach(removeFolders);

  it('is read with all defaults', async () => {
    const text = `${PROVIDERS}models: { smart: { targets: ['acme/a', { to: acme/b, weight: 3, order: 2 }], strategy: weighted, onOverflow: acme/c, timeouts: { firstToken: 5s } } }\n`;
    const { models, routes } = await checkText(text);
    expect(models['smart']).to.deep.equal(['acme/a', 'acme/b', 'acme/c']);
    expect(routes['smart']).to.deep.equal({
      targets: [
        { to: 'acme/a', weight: 1, order: 1, onlyWhenCheaper: false },
        { to: 'acme/b', weight: 3, order: 2, onlyWhenCheaper: false },
      ],
      strategy: 'weighted',
      sticky: 'session',
      onOverflow: 'acme/c',
      timeouts: { firstTokenMs: 5000 },
      resume: false,
    });
  });

  it('can be combined with the short forms', async () => {
    const { routes } = await checkText(`${PROVIDERS}models: { one: acme/a, two: [acme/a, acme/b] }\n`);
    expect(routes['one']?.targets.map(({ to }) => to)).to.deep.equal(['acme/a']);
    expect(routes['two']?.strategy).to.equal('fallback');
  });

  for (const [title, models, problem] of [
    ['a star before its end', "'a*b': acme/c", /a\*b.*has a "\*" before its end[\s\S]*Put the "\*" at the end/],
    ['two stars', "'a**': acme/c", /has a "\*" before its end/],
    ['a star that its name does not have', 'smart: acme/*', /smart.*has a "\*", but its alias does not/],
    ['two stars in a target', "'a*': acme/*-*", /must have at most one "\*"/],
    ['a star for the provider', "'a*': '*/b'", /must have at most one "\*"|is not configured/],
    ['hedging that cannot be counted', "'a*': { targets: [acme/*, acme/b], hedge: {} }", /hedge.*is not supported/],
  ] as const)
    it(`is refused with ${title} (E70)`, async () => {
      expect(await problemsOf(`${PROVIDERS}models: { ${models} }\n`)).to.match(problem);
    });

  for (const [title, alias, problem] of [
    [
      'a strategy that there is not',
      '{ targets: [acme/a], strategy: weigted }',
      /must be fallback, weighted or least-latency.*[\s\S]*weighted/,
    ],
    ['a key that there is not', '{ targets: [acme/a], overflow: acme/b }', /unknown key[\s\S]*onOverflow/],
    ['no targets', '{ strategy: weighted }', /needs "targets"/],
    ['a target without its provider', '{ targets: [{ to: b }] }', /must be "provider\/model"/],
    [
      'a provider that is not configured, in a map',
      '{ targets: [{ to: acmee/a }] }',
      /refers to the provider "acmee"[\s\S]*acme/,
    ],
    [
      'a provider that is not configured, for long prompts',
      '{ targets: [acme/a], onOverflow: x/y }',
      /onOverflow.*refers to the provider "x"/,
    ],
    ['a weight below zero', '{ targets: [{ to: acme/a, weight: -1 }] }', /weight.*at least 0/],
    ['a clock that is no duration', '{ targets: [acme/a], timeouts: { idle: 5 } }', /idle.*must be/],
  ] as const)
    it(`is refused with ${title}`, async () => {
      const text = await problemsOf(`${PROVIDERS}models: { smart: ${alias} }\n`);
      expect(text).to.match(problem);
    });
});
