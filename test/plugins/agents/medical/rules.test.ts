import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { conceptsOf, parseCondition } from '../../../../plugins/agents/medical/engine/condition.ts';
import { LANGUAGES } from '../../../../plugins/agents/medical/engine/language.ts';
import { LEXICONS, screen } from '../../../../plugins/agents/medical/index.ts';
import { RELEASE_RULES } from '../../../../plugins/agents/medical/release-rules/index.ts';
import { RELEASE_LEXICONS } from '../../../../plugins/agents/medical/release-rules/lexicon/index.ts';
import { RULES, type RuleData } from '../../../../plugins/agents/medical/rules/index.ts';
import { findReleaseRules } from '../../../../plugins/agents/medical/run-medical.ts';
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

/** Sentences with a word of a harmless context, about a person who needs help. */
const STILL_URGENT = Object.freeze([
  'The leaflet says at most four and I took thirty of the tablets.',
  'I took 30 paracetamol and the leaflet says max 8.',
  'I read in a forum that this is normal but I can’t breathe.',
  'My dog knocked me over and I can’t move my legs.',
  'I always worry about a heart attack and I have crushing chest pain.',
  'In case it matters, my husband is unconscious.',
  'Walking the dog, crushing chest pain into my arm.',
  'He jokes about it but he has taken all his pills and won’t wake up.',
  'Ich habe ständig Angst vor einem Infarkt und ich habe starke Schmerzen in der Brust.',
  'Im Beipackzettel steht höchstens vier und ich habe dreißig Tabletten genommen.',
  'Mit dem Hund draußen und Schmerzen in der Brust bekommen, Arm taub.',
  'Wir üben gerade und er ist zusammengebrochen und atmet nicht.',
  'J’ai toujours peur d’un infarctus et j’ai la poitrine qui serre.',
  'La notice dit quatre au plus et j’ai pris trente comprimés.',
  'En cas d’urgence qui appeler, mon fils ne respire pas.',
  'Mon ado a de la fièvre, la nuque raide et vomit.',
  'Siempre tengo miedo de un infarto y me duele mucho el pecho.',
  'El prospecto dice cuatro y me he tomado treinta pastillas.',
  'El perro ladra y mi marido no respira.',
  'Ho sempre paura di un infarto e ho un forte dolore al petto.',
  'Il foglietto dice quattro e ho preso trenta compresse.',
  'In caso di emergenza chi chiamo? Mio figlio non respira.',
]);

/** Object schema with these properties and no others; the last `optional` ones may be missing. */
const closed = (properties: Readonly<Record<string, object>>, optional = 0): object => ({
  type: 'object',
  properties,
  required: Object.keys(properties).slice(0, Object.keys(properties).length - optional),
  additionalProperties: false,
});

/** Calls `it` for every example of a rule. */
function testExamples(
  id: string,
  { positive, negative, boundary }: RuleData['examples'],
  holds: (text: string) => boolean,
): void {
  const all = [
    ...positive.map((text) => [text, true] as const),
    ...negative.map((text) => [text, false] as const),
    ...boundary,
  ];
  for (const [text, expected] of all) {
    it(`${id} ${expected ? 'matches' : 'does not match'} "${text}"`, () => {
      expect(holds(text)).to.equal(expected);
    });
  }
}

describe('the medical rules', () => {
  for (const { id, examples } of RULES) {
    testExamples(id, examples, (text) => screen(text).flags.some((flag) => flag.id === id));
  }

  it('have an id, a version, a source and an example in each language, in the form that the code reads', () => {
    const texts = (minItems: number) => ({ type: 'array', items: { type: 'string', minLength: 1 }, minItems });
    const boundary = {
      type: 'array',
      prefixItems: [{ type: 'string' }, { type: 'boolean' }],
      minItems: 2,
      items: false,
    };
    const review = { by: { type: 'string', minLength: 1 }, on: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d$' } };
    const common = {
      id: { type: 'string', pattern: '^[a-z_]+$' },
      version: { type: 'integer', minimum: 1 },
      reviewed: { anyOf: [{ type: 'null' }, closed(review)] },
      when: texts(1),
      source: closed({ title: { type: 'string', minLength: 1 }, url: { type: 'string', pattern: '^https://' } }),
      examples: closed({
        positive: texts(LANGUAGES.length),
        negative: texts(1),
        boundary: { type: 'array', items: boundary, minItems: 1 },
      }),
    };
    const rule = {
      ...common,
      rank: { type: 'integer' },
      urgency: { enum: ['emergency', 'urgent'] },
      kind: { enum: ['emergency', 'poison', 'crisis', 'urgent'] },
      sign: closed(Object.fromEntries(LANGUAGES.map((language) => [language, { type: 'string', minLength: 1 }]))),
    };
    const flag = { const: true };
    const release = closed({ ...common, objection: { type: 'string' }, onlyWithDanger: flag, mayRepeat: flag }, 2);
    for (const [schema, rules] of [
      [closed(rule), RULES],
      [release, RELEASE_RULES],
    ] as const) {
      const validate = new Ajv2020({ allErrors: true, strict: false }).compile({ type: 'array', items: schema });
      validate(rules);
      expect(validate.errors ?? []).to.deep.equal([]);
      expect(new Set(rules.map(({ id }) => id)).size).to.equal(rules.length);
    }
    expect(new Set(RULES.map(({ rank }) => rank)).size).to.equal(RULES.length);
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
    expect(() => parseCondition('~8')).to.throw('is invalid');
    expect(() => parseCondition('chest ~near')).to.throw('is invalid');
    expect(() => parseCondition('glucose #low..9')).to.throw('not a range');
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
      it(`are as far in ${language} on phrasings of ${part} that nobody has mended them by as docs/plugins/medical-figures.md says, and no less (E24)`, () => {
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

  for (const text of STILL_URGENT)
    it(`find what is urgent beside what is cited, feared, supposed or an animal's: "${text}" (E24)`, () => {
      expect(screen(text).flags).to.not.deep.equal([]);
    });

  it('read the short forms of a chat with their accents: a child is one with a tilde too (E24)', () => {
    for (const text of ['La niña se ha tomado las pastillas', 'El niño se ha tomado las pastillas'])
      expect(
        screen(text).flags.map(({ id }) => id),
        text,
      ).to.include('overdose_or_poisoning');
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
