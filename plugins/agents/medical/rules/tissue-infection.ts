import type { Rule } from './rule.ts';

export const TISSUE_INFECTION: Rule = {
  id: 'tissue_infection',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Dangerous infection of the skin or throat',
    de: 'Gefährliche Infektion der Haut oder des Rachens',
    fr: 'Infection dangereuse de la peau ou de la gorge',
    es: 'Infección peligrosa de la piel o la garganta',
    it: 'Infezione pericolosa della pelle o della gola',
  },
  when: [
    'necrosis wound|leg|arm|pain|fever|infection|skin ~22',
    'wound stink fever|severe ~20',
    'throat|tonsil drool|-open severe|no_air|fever|short_breath|-breathe|still|-swallow ~25',
    'drool -swallow|-open|no_air|short_breath ~20',
    'tonsil -open ~15',
  ],
  source: {
    title: 'NHS: Necrotising fasciitis; NHS: Epiglottitis',
    url: 'https://www.nhs.uk/conditions/necrotising-fasciitis/',
  },
  examples: {
    positive: [
      'The skin around the wound is turning black and I have a fever.',
      'Die Haut um die Wunde wird schwarz.',
      'La peau noircit autour de la plaie.',
      'La herida está negra y huele fatal.',
      'La pelle attorno alla ferita diventa nera.',
    ],
    negative: ['My throat is a bit sore.'],
    boundary: [['I have tonsillitis and can no longer open my mouth.', true]],
  },
};
