import type { Rule } from './rule.ts';

export const BURNS: Rule = {
  id: 'burns',
  version: 2,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Serious burn or scald',
    de: 'Schwere Verbrennung oder Verbrühung',
    fr: 'Brûlure grave',
    es: 'Quemadura grave',
    it: 'Ustione grave',
  },
  when: [
    'burn burn_big|severe|chemical|child|face !mild !sunburn ~18',
    'boiling burn_big|child|face|neck|chest|arm !mild ~18',
    'boiling spilled ~6',
  ],
  source: { title: 'NHS: Burns and scalds', url: 'https://www.nhs.uk/conditions/burns-and-scalds/' },
  examples: {
    positive: [
      'Boiling water all over my face.',
      'Kochendes Wasser über den ganzen Arm, alles voller Blasen.',
      'De l’huile bouillante sur le visage.',
      'Se quemó la cara con aceite hirviendo.',
      'Si è ustionato la faccia con l’acqua bollente.',
    ],
    negative: ['I burned my tongue a little on the coffee.'],
    boundary: [
      ['My toddler pulled the hot tea over himself.', true],
      ['Me quemé la punta del dedo con una sartén, está un poco rojo.', false],
    ],
  },
};
