import type { Rule } from './rule.ts';

export const ELECTRIC_SHOCK: Rule = {
  id: 'electric_shock',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Electric shock with danger signs, or lightning',
    de: 'Stromschlag mit Warnzeichen oder Blitzschlag',
    fr: 'Électrocution avec signes de danger, ou foudre',
    es: 'Descarga eléctrica con señales de peligro, o rayo',
    it: 'Folgorazione con segni di pericolo, o fulmine',
  },
  when: [
    'electric faint|unconscious|pain|chest|heart|irregular|racing|lie_still|-move|-respond|-let_go|stuck|burn|numb|dizzy|severe|-stand ~28',
    'lightning',
  ],
  source: { title: 'NHS: First aid, electrocution', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'I touched a live wire and my heart is stumbling.',
      'Stromschlag, seitdem stolpert mein Herz.',
      'Il s’est électrocuté et il est inconscient.',
      'Le dio una descarga eléctrica y se desmayó.',
      'Ha preso la scossa e non risponde.',
    ],
    negative: ['I bought an electric bike.'],
    boundary: [['He was struck by lightning.', true]],
  },
};
