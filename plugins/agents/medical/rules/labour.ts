import type { Rule } from './rule.ts';

export const LABOUR: Rule = {
  id: 'labour',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Danger around a birth',
    de: 'Gefahr rund um eine Geburt',
    fr: 'Danger autour d’un accouchement',
    es: 'Peligro en torno a un parto',
    it: 'Pericolo intorno al parto',
  },
  when: [
    'cord coming_out|see|hanging|waters ~14',
    'coming_out',
    'pregnant hanging ~15',
    'waters early|green|hanging ~20',
    'contractions early|#20..36 ~20',
    'contractions #1..5 minute early|pregnant ~20',
    'postpartum fever|bleed|blood|severe|shiver|stink ~25',
    'push_urge pregnant|baby|head ~15',
  ],
  source: {
    title: 'NHS: Labour and birth emergencies; RCOG: Cord prolapse',
    url: 'https://www.nhs.uk/pregnancy/labour-and-birth/',
  },
  examples: {
    positive: [
      'My waters broke and I can see the cord.',
      'Die Fruchtblase ist geplatzt und die Nabelschnur hängt raus.',
      'J’ai perdu les eaux et je vois le cordon.',
      'He roto aguas y asoma el cordón.',
      'Mi si sono rotte le acque e pende il cordone.',
    ],
    negative: ['How long does labour usually last?'],
    boundary: [['Contractions every two minutes and I’m 28 weeks.', true]],
  },
};
