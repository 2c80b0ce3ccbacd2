import type { Rule } from './rule.ts';

export const CARDIAC_ARREST: Rule = {
  id: 'cardiac_arrest',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Collapse without signs of life',
    de: 'Zusammenbruch ohne Lebenszeichen',
    fr: 'Effondrement sans signe de vie',
    es: 'Desplome sin signos de vida',
    it: 'Collasso senza segni di vita',
  },
  when: [
    '-pulse',
    'arrest',
    'faint -respond|-breathe|blue|-speak ~25',
    'lie_still -respond|-move|-breathe|-wake|-speak ~20',
  ],
  source: {
    title: 'AHA/ERC: Basic life support; NHS: Cardiac arrest',
    url: 'https://www.nhs.uk/conditions/cardiac-arrest/',
  },
  examples: {
    positive: [
      'He has no pulse.',
      'Ich finde keinen Puls bei ihm.',
      'Il n’a plus de pouls.',
      'No le encuentro el pulso.',
      'Non ha polso.',
    ],
    negative: ['My pulse is normal.'],
    boundary: [
      ['My battery has died.', false],
      ['He is lying there and does not react.', true],
    ],
  },
};
