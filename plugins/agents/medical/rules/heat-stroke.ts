import type { Rule } from './rule.ts';

export const HEAT_STROKE: Rule = {
  id: 'heat_stroke',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: { en: 'Heatstroke', de: 'Hitzschlag', fr: 'Coup de chaleur', es: 'Golpe de calor', it: 'Colpo di calore' },
  when: [
    'heatstroke confuse|faint|hot|nonsense|unconscious|-respond|vomit|sleepy|limp ~25',
    'heat hot|fever confuse|nonsense|limp|faint|unconscious|-respond|sleepy|slur|hallucinate|dizzy ~28',
    'heat faint|confuse|nonsense|hallucinate|limp ~20',
    'hot_car child|limp|sleepy|-respond|hot ~20',
    'heat #40..43 ~20',
    'hot|fever|hot_body confuse|hallucinate|nonsense ~15',
    'heatstroke !topic',
  ],
  source: {
    title: 'NHS: Heat exhaustion and heatstroke',
    url: 'https://www.nhs.uk/conditions/heat-exhaustion-heatstroke/',
  },
  examples: {
    positive: [
      'I was in the sun all day, my skin is hot and I’m confused.',
      'Er war in der Sonne, ist glühend heiß und redet wirr.',
      'Il était en plein soleil, il est brûlant et confus.',
      'Ha estado al sol, está ardiendo y desvaría.',
      'È stato al sole, scotta ed è confuso.',
    ],
    negative: ['What is the difference between heatstroke and heat exhaustion?'],
    boundary: [['My child was in the hot car and is limp.', true]],
  },
};
