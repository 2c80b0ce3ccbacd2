import type { Rule } from './rule.ts';

export const UNCONSCIOUS_OR_FIT: Rule = {
  id: 'unconscious_or_fit',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Unconsciousness or a fit',
    de: 'Bewusstlosigkeit oder Krampfanfall',
    fr: 'Perte de connaissance ou convulsions',
    es: 'Pérdida de conciencia o convulsiones',
    it: 'Perdita di coscienza o convulsioni',
  },
  when: ['unconscious', 'faint', '-wake', '-respond', 'seizure'],
  source: {
    title: 'NHS: What to do if someone has a seizure (fit)',
    url: 'https://www.nhs.uk/conditions/what-to-do-if-someone-has-a-seizure-fit/',
  },
  examples: {
    positive: [
      'He collapsed and is unresponsive',
      'Meine Tochter hatte gerade einen Krampfanfall',
      'il ne se réveille pas',
      'Mi hermano está convulsionando.',
      'Mia nonna è svenuta.',
    ],
    negative: [
      'has not had any seizures',
      'sans perte de connaissance ni convulsions',
      'I used to have seizures, I’ve been seizure-free since 2011.',
    ],
    boundary: [
      ['Why do some people faint when they see blood?', false],
      ['She won’t wake up.', true],
    ],
  },
};
