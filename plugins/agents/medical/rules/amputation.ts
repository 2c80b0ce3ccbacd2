import type { Rule } from './rule.ts';

export const AMPUTATION: Rule = {
  id: 'amputation',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'A finger or limb cut off',
    de: 'Abgetrennter Finger oder Gliedmaße',
    fr: 'Doigt ou membre sectionné',
    es: 'Dedo o miembro amputado',
    it: 'Dito o arto amputato',
  },
  when: ['amputate', 'cut_off arm|leg ~6'],
  source: { title: 'NHS: First aid, amputations', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'He chopped his finger off.',
      'Der Finger ist ab.',
      'Doigt sectionné avec la scie.',
      'Se ha amputado un dedo con la sierra.',
      'Si è tranciato un dito.',
    ],
    negative: ['I cut my finger nail too short.'],
    boundary: [['He has had his hand in the circular saw.', true]],
  },
};
