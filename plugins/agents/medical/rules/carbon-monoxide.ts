import type { Rule } from './rule.ts';

export const CARBON_MONOXIDE: Rule = {
  id: 'carbon_monoxide',
  version: 1,
  urgency: 'emergency',
  kind: 'poison',
  sign: {
    en: 'Possible carbon monoxide or gas poisoning',
    de: 'Mögliche Vergiftung durch Kohlenmonoxid oder Gas',
    fr: 'Possible intoxication au monoxyde de carbone ou au gaz',
    es: 'Posible intoxicación por monóxido de carbono o gas',
    it: 'Possibile intossicazione da monossido di carbonio o gas',
  },
  when: [
    'gas headache|dizzy|nausea|vomit|unconscious|several_ill|faint|confuse|sleepy|cough|pain|no_air|weak ~22',
    'gas_mixed no_air|cough|chest|eye|pain|dizzy|nausea ~28',
  ],
  source: { title: 'NHS: Carbon monoxide poisoning', url: 'https://www.nhs.uk/conditions/carbon-monoxide-poisoning/' },
  examples: {
    positive: [
      'The boiler is leaking and we all have a headache.',
      'Hier riecht es nach Gas und mir ist schwindlig.',
      'Ça sent le gaz et j’ai la nausée.',
      'Huele a gas y estamos mareados.',
      'La stufa perde e in casa abbiamo tutti la nausea.',
    ],
    negative: ['Do carbon monoxide alarms need a yearly check?', 'The gas bill gives me a headache.'],
    boundary: [['There is a smell of gas outside.', false]],
  },
};
