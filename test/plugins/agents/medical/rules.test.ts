import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { conceptsOf, parseCondition } from '../../../../plugins/agents/medical/engine/condition.ts';
import { LANGUAGES } from '../../../../plugins/agents/medical/engine/language.ts';
import { LEXICONS, screen } from '../../../../plugins/agents/medical/index.ts';
import { RELEASE_RULES } from '../../../../plugins/agents/medical/release-rules/index.ts';
import { RELEASE_LEXICONS } from '../../../../plugins/agents/medical/release-rules/lexicon/index.ts';
import { RULES, type RuleData } from '../../../../plugins/agents/medical/rules/index.ts';
import { findReleaseRules } from '../../../../plugins/agents/medical/run-medical.ts';

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

describe('the medical rules, next to what is harmless,', () => {
  for (const text of STILL_URGENT)
    it(`find what is urgent next to what is cited, feared, supposed or an animal's: "${text}" (E24)`, () => {
      expect(screen(text).flags).to.not.deep.equal([]);
    });

  it('read the short forms of a chat with their accents: a child is one with a tilde too (E24)', () => {
    for (const text of ['La niña se ha tomado las pastillas', 'El niño se ha tomado las pastillas'])
      expect(
        screen(text).flags.map(({ id }) => id),
        text,
      ).to.include('overdose_or_poisoning');
  });
});
