import type { Rule } from './rule.ts';

export const CHOKING: Rule = {
  id: 'choking',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Choking',
    de: 'Ersticken durch Verschlucken',
    fr: 'Étouffement par un corps étranger',
    es: 'Atragantamiento',
    it: 'Soffocamento da corpo estraneo',
  },
  when: [
    'choke',
    'food_bite took blue|-breathe|no_air ~20',
    'stuck throat ~8',
    'food_bite stuck ~5',
    'wrong_pipe no_air|blue|-breathe|-air|food_bite ~20',
    'wrong_pipe -breathe|cough ~8',
    'food_bite throat -breathe|blue ~20',
  ],
  source: { title: 'NHS/ERC: Choking', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'A piece of meat is stuck in his throat.',
      'Mein Sohn hat sich an einer Nuss verschluckt und röchelt.',
      'Il s’étouffe avec un morceau de viande.',
      'Se ha atragantado con una uva.',
      'Si sta strozzando con un boccone.',
    ],
    negative: ['How can I learn first aid for choking babies?', 'Por poco me atraganto al ver el precio del alquiler.'],
    boundary: [['He choked on a grape a moment ago.', true]],
  },
};
