import type { Rule } from './rule.ts';

export const DROWNING: Rule = {
  id: 'drowning',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: { en: 'Near drowning', de: 'Beinahe-Ertrinken', fr: 'Noyade', es: 'Ahogamiento', it: 'Annegamento' },
  when: ['drown', 'water_out #1..60 minute ~10', 'water_out -breathe|cough|sleepy|blue|unconscious|-respond ~28'],
  source: { title: 'NHS/ERC: Drowning', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'She was under water for two minutes.',
      'Er ist fast ertrunken.',
      'Il a failli se noyer.',
      'Mi hijo casi se ahoga en la piscina.',
      'Ha rischiato di annegare.',
    ],
    negative: ['I’m drowning in work.'],
    boundary: [['We pulled him out of the lake and he is not breathing.', true]],
  },
};
