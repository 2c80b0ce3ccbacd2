import type { Rule } from './rule.ts';

export const HYPOTHERMIA: Rule = {
  id: 'hypothermia',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: { en: 'Hypothermia', de: 'Unterkühlung', fr: 'Hypothermie', es: 'Hipotermia', it: 'Ipotermia' },
  when: [
    'hypothermia',
    'cold|snow -shiver|sleepy sleepy|slur|confuse|-move|-respond ~25',
    '-shiver sleepy|slur|cold|confuse|snow ~20',
    'snow sleepy|slur|confuse|-shiver|-respond|-wake|numb|-speak ~28',
  ],
  source: { title: 'NHS: Hypothermia', url: 'https://www.nhs.uk/conditions/hypothermia/' },
  examples: {
    positive: [
      'He was in the snow all night and has stopped shivering.',
      'Er lag im Schnee und zittert nicht mehr.',
      'Il ne tremble plus, il est gelé.',
      'Ya no tirita y está helado.',
      'Non trema più ed è gelato.',
    ],
    negative: ['I’m cold, which tea do you recommend?'],
    boundary: [['She fell through the ice and is sleepy.', true]],
  },
};
