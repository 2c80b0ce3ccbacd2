import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { LANGUAGES } from '../../../../plugins/agents/medical/engine/language.ts';
import { screen } from '../../../../plugins/agents/medical/index.ts';
import {
  DEVELOPED,
  fillContexts,
  measurePart,
  PARTS,
  type Part,
  readFound,
  readPart,
  shareFound,
} from '../../../support/pages/measure-medical.ts';
import { withFigures } from '../../../support/pages/medical-page.ts';

const PAGE = new URL('../../../../docs/plugins/medical-figures.md', import.meta.url);

/** Minimum recall in every language on the part of the set that the rules were written with. */
const FLOORS = Object.freeze({ emergency: 0.9, dose: 0.95 });
const CEILINGS = Object.freeze({ harmless: 0.05, dose_harmless: 0.05 });

/**
 * Measured limits close to the aim: the maximum number of alarms for harmless phrasings, and the minimum number of
 * found emergencies.
 */
const HELD = Object.freeze({
  'blind-3-held': { en: [6, 20], de: [2, 20], fr: [4, 19], es: [2, 21], it: [5, 21] },
  'strangers-held': { en: [1, 34], de: [1, 30], fr: [4, 32], es: [5, 31], it: [1, 32] },
  'fresh-held': { en: [1, 24], de: [2, 24], fr: [3, 23], es: [3, 24], it: [2, 23] },
  'later-held': { en: [1, 10], de: [0, 10], fr: [0, 9], es: [0, 10], it: [1, 10] },
  'others-held': { en: [9, 37], de: [8, 42], fr: [12, 36], es: [16, 38], it: [8, 45] },
} as const);

const HELDS = ['blind-3-held', 'strangers-held', 'fresh-held', 'later-held', 'others-held'] as const;
const HARMLESS = Object.freeze({
  ...{ 'blind-3-held': 34, 'strangers-held': 53, 'fresh-held': 36, 'later-held': 14 },
  'others-held': { en: 102, de: 94, fr: 108, es: 109, it: 105 },
});

/** Sets without any word in the lexicons. */
const CLEAN = ['blind-3-held', 'strangers-held', 'fresh-held'] as const;

/** Maximum alarm rates on these sets. The aim is 5 % in each language, which German reaches. */
const MOST_ALARMS = Object.freeze({ en: 0.066, de: 0.05, fr: 0.09, es: 0.082, it: 0.066 });

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

  for (const style of ['family', 'hypothetical'])
    it(`raise at most 5 % false alarms on ${style} phrasings, and miss no more emergencies there than elsewhere (E24)`, () => {
      const own = measured.filter((one) => one.style === style);
      expect(own.filter(({ kind }) => kind === 'harmless')).to.have.length.above(25);
      expect(shareFound(own.filter(({ kind }) => kind === 'harmless'))).to.be.at.most(CEILINGS.harmless);
      expect(shareFound(own.filter(({ kind }) => kind === 'emergency'))).to.be.at.least(FLOORS.emergency);
    });

  const unread = measurePart('blind-2');
  for (const language of LANGUAGES)
    it(`hold in ${language} on phrasings that were written before the rules were read (E24)`, () => {
      const own = unread.filter((one) => one.language === language);
      const ofKind = (kind: string) => own.filter((one) => one.kind === kind);
      expect([ofKind('emergency').length, ofKind('harmless').length]).to.deep.equal([30, 30]);
      expect(shareFound(ofKind('emergency'))).to.be.at.least(FLOORS.emergency);
      expect(shareFound(ofKind('harmless'))).to.be.at.most(CEILINGS.harmless);
    });

  for (const part of HELDS)
    for (const language of LANGUAGES)
      it(`are as far in ${language} on phrasings of ${part} that they were not corrected by, as docs/plugins/medical-figures.md says, and no less (E24)`, () => {
        const [alarms, found] = HELD[part][language];
        const own = measurePart(part).filter((one) => one.language === language);
        const countOf = (kind: string) => own.filter((one) => one.kind === kind && one.found).length;
        const harmless = HARMLESS[part];
        expect(own.filter(({ kind }) => kind === 'harmless').length).to.equal(
          typeof harmless === 'number' ? harmless : harmless[language],
        );
        expect(countOf('harmless')).to.be.at.most(alarms);
        expect(countOf('emergency')).to.be.at.least(found);
      });

  for (const language of LANGUAGES)
    it(`find 90 % of the emergencies in ${language} of all parts not used for fixes, with few false alarms (E24)`, () => {
      const own = CLEAN.flatMap(measurePart).filter((one) => one.language === language);
      expect(shareFound(own.filter(({ kind }) => kind === 'emergency'))).to.be.at.least(FLOORS.emergency);
      expect(shareFound(own.filter(({ kind }) => kind === 'harmless'))).to.be.at.most(MOST_ALARMS[language]);
    });

  it('find every emergency that they once found, in every part (E24)', () => {
    const found = readFound();
    const once = PARTS.flatMap((part) =>
      measurePart(part).filter(({ id, kind }) => kind === 'emergency' && found(part, id)),
    );
    expect(once).to.have.length.above(2_900);
    expect(once.filter((one) => !one.found).map(({ id }) => id)).to.deep.equal([]);
  });

  it('separate held phrasings from those that the weights are trained with: no text is in both', () => {
    const texts = (part: Part) => readPart(part).map(({ text }) => text);
    const dev = new Set(DEVELOPED.flatMap(texts));
    for (const part of HELDS) {
      expect([...DEVELOPED]).not.to.include(part);
      const shared = texts(part).filter((text) => dev.has(text));
      expect(shared, part).to.deep.equal([]);
    }
  });

  for (const { language, harmless, danger } of fillContexts())
    it(`tell in ${language} what is of the family, feared, past, ruled out, read or an animal's from what is there now (E24)`, () => {
      const isFound = (text: string) => screen(text).flags.length > 0;
      const alarms = harmless.filter(isFound);
      expect(alarms.length, alarms.join('\n')).to.be.at.most(harmless.length * 0.02);
      expect(danger.filter((text) => !isFound(text))).to.deep.equal([]);
    });

  it('are in docs/plugins/medical-figures.md as npm run medical writes them', () => {
    const page = readFileSync(PAGE, 'utf8');
    expect(page).to.equal(withFigures(page));
  });
});
