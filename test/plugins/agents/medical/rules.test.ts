import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { conceptsOf, parseCondition } from '../../../../plugins/agents/medical/engine/condition.ts';
import { LANGUAGES } from '../../../../plugins/agents/medical/engine/language.ts';
import { LEXICONS, screen } from '../../../../plugins/agents/medical/index.ts';
import { RELEASE_RULES } from '../../../../plugins/agents/medical/release-rules/index.ts';
import { RELEASE_LEXICONS } from '../../../../plugins/agents/medical/release-rules/lexicon/index.ts';
import { RULES } from '../../../../plugins/agents/medical/rules/index.ts';
import type { RuleExamples } from '../../../../plugins/agents/medical/rules/rule.ts';
import { findReleaseRules } from '../../../../plugins/agents/medical/run-medical.ts';
import { measurePart, shareFound } from '../../../support/pages/measure-medical.ts';
import { withFigures } from '../../../support/pages/medical-page.ts';

const PAGE = new URL('../../../../docs/plugins/medical.md', import.meta.url);

/** What the part of the set that the rules were written with must reach in every language. */
const FLOORS = Object.freeze({ emergency: 0.9, dose: 0.95 });
const CEILINGS = Object.freeze({ harmless: 0.05, dose_harmless: 0.05 });

/** Calls `it` for every example of a rule. */
function testExamples(
  id: string,
  { positive, negative, boundary }: RuleExamples,
  holds: (text: string) => boolean,
): void {
  const all = [
    ...positive.map((text) => [text, true] as const),
    ...negative.map((text) => [text, false] as const),
    ...boundary,
  ];
  for (const [text, expected] of all) {
    it(`${id} says ${expected ? 'yes' : 'no'} to "${text}"`, () => {
      expect(holds(text)).to.equal(expected);
    });
  }
}

describe('the medical rules', () => {
  for (const { id, examples } of RULES) {
    testExamples(id, examples, (text) => screen(text).flags.some((flag) => flag.id === id));
  }

  it('have an id, a version, a source and an example in each language', () => {
    expect(new Set(RULES.map(({ id }) => id)).size).to.equal(RULES.length);
    for (const { id, version, source, examples, sign } of [
      ...RULES,
      ...RELEASE_RULES.map((rule) => ({ ...rule, sign: {} })),
    ]) {
      expect(version, id).to.be.greaterThan(0);
      expect(source.title, id).to.not.equal('');
      expect(examples.positive.length, id).to.be.at.least(LANGUAGES.length);
      expect(examples.negative.length, id).to.be.at.least(1);
      expect(examples.boundary.length, id).to.be.at.least(1);
      expect(
        Object.values(sign).every((text) => text !== ''),
        id,
      ).to.equal(true);
    }
  });

  it('name only concepts that every lexicon has', () => {
    const missing = (rules: readonly { readonly when: readonly string[] }[], lexicons: typeof LEXICONS) =>
      rules
        .flatMap(({ when }) => when.map(parseCondition).flatMap(conceptsOf))
        .flatMap((concept) =>
          LANGUAGES.filter((language) => !lexicons[language].concepts[concept]).map(
            (language) => `${language}: ${concept}`,
          ),
        );
    expect(missing(RULES, LEXICONS)).to.deep.equal([]);
    expect(missing(RELEASE_RULES, RELEASE_LEXICONS)).to.deep.equal([]);
  });

  it('are read from a condition that cannot be mistaken', () => {
    expect(() => parseCondition('~8')).to.throw('cannot be read');
    expect(() => parseCondition('chest ~near')).to.throw('cannot be read');
    expect(() => parseCondition('glucose #low..9')).to.throw('no range');
  });
});

describe('the medical release rules', () => {
  for (const { id, examples } of RELEASE_RULES) {
    testExamples(id, examples, (text) => findReleaseRules(text, true).some((rule) => rule.id === id));
  }
});

describe('the figures of the medical rules', () => {
  const measured = measurePart('authoring');
  for (const language of LANGUAGES) {
    for (const [kind, floor] of Object.entries(FLOORS)) {
      it(`find ${floor * 100} % of kind ${kind} in ${language}`, () => {
        expect(shareFound(measured.filter((one) => one.language === language && one.kind === kind))).to.be.at.least(
          floor,
        );
      });
    }
    for (const [kind, ceiling] of Object.entries(CEILINGS)) {
      it(`raise at most ${ceiling * 100} % false alarms of kind ${kind} in ${language}`, () => {
        expect(shareFound(measured.filter((one) => one.language === language && one.kind === kind))).to.be.at.most(
          ceiling,
        );
      });
    }
  }

  it('stand in docs/plugins/medical.md as npm run medical writes them', () => {
    const page = readFileSync(PAGE, 'utf8');
    expect(page).to.equal(withFigures(page));
  });
});
