import type { Rule } from './rule.ts';

export const OVERDOSE_OR_POISONING: Rule = {
  id: 'overdose_or_poisoning',
  version: 1,
  urgency: 'emergency',
  kind: 'poison',
  sign: {
    en: 'Overdose or poisoning',
    de: 'Überdosis oder Vergiftung',
    fr: 'Surdosage ou intoxication',
    es: 'Sobredosis o intoxicación',
    it: 'Sovradosaggio o avvelenamento',
  },
  when: [
    'overdose',
    'took pills|drug too_many !routine ~10',
    'took #8..500 pills|drug !routine ~6',
    'child took pills|drug|street_drug ~12',
    'took toxin ~10',
    'child toxin foam|vomit|cough ~15',
    'took|child battery ~8',
    'took alcohol pills|drug|gas ~14',
    'took|too_many street_drug -wake|-respond|unconscious|faint|blue|-breathe|no_air|vision_lost|racing|dying|sleepy ~25',
    'pills|drug|pill_box empty sleepy|-wake|unconscious|confuse|child|dizzy ~30',
    'alcohol unconscious|-wake|-respond|cold ~20',
    'alcohol pills|drug sleepy|-stand|-wake|vomit ~20',
    'toxin foam|vomit|sleepy ~14',
    'drug too_many sleepy|no_air|vomit|unconscious|-wake|-breathe|dizzy ~20',
    'instead took|vomit toxin|drug|pills ~14',
    'swallowed_everything',
    'toxin several_ill|vomit took ~20',
    'took dying racing|vision_lost ~25',
  ],
  source: { title: 'NHS: Poisoning; WHO: Poison control', url: 'https://www.nhs.uk/conditions/poisoning/' },
  examples: {
    positive: [
      'My toddler drank some drain cleaner.',
      'Ich habe dreißig Schlaftabletten genommen.',
      'Mon fils a bu de la javel.',
      'Mi hija se ha tragado una pila de botón.',
      'Ha ingoiato un’intera scatola di sonniferi.',
    ],
    negative: [
      'I took two ibuprofen tablets for my back pain.',
      'Ich nehme zwei Tabletten am Tag.',
      'How to store bleach safely',
    ],
    boundary: [
      ['I took 30 paracetamol tablets', true],
      ['I take all my pills every morning', false],
    ],
  },
};
