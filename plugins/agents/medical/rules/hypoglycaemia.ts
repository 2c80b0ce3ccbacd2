import type { Rule } from './rule.ts';

export const HYPOGLYCAEMIA: Rule = {
  id: 'hypoglycaemia',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Dangerously low blood sugar',
    de: 'Gefährlich niedriger Blutzucker',
    fr: 'Glycémie dangereusement basse',
    es: 'Nivel de azúcar peligrosamente bajo',
    it: 'Glicemia pericolosamente bassa',
  },
  when: [
    'glucose #0.1..0.6 ~8',
    'glucose #1..3 !grams ~6',
    'glucose #18..52 !grams ~6',
    'hypo confuse|shiver|sweat|-respond|unconscious|faint|severe|double_vision|sleepy|near_faint|weak|nonsense|-understand|limp ~20',
    'diabetic|insulin sweat|confuse|shiver|unconscious|-wake|faint|-respond|nonsense|sleepy|limp|near_faint|weak ~28',
    'insulin_mistake',
    'diabetic -feed|-swallow ~20',
    'insulin twice ~6',
  ],
  source: {
    title: 'NHS: Low blood sugar; ADA: Hypoglycemia',
    url: 'https://www.nhs.uk/conditions/low-blood-sugar-hypoglycaemia/',
  },
  examples: {
    positive: [
      'My blood sugar is 2.1.',
      'Mein Zucker ist bei 35.',
      'Ma glycémie est à 0,38.',
      'Tengo la glucosa en 38.',
      'Ho la glicemia a 35.',
    ],
    negative: ['How does an insulin pen work?'],
    boundary: [
      ['My husband has type 1, he is sweating and talks nonsense.', true],
      ['There are 30 grams of sugar in it.', false],
    ],
  },
};
