import type { Rule } from './rule.ts';

export const BREATHLESSNESS: Rule = {
  id: 'breathlessness',
  version: 1,
  urgency: 'urgent',
  kind: 'urgent',
  sign: {
    en: 'Difficulty breathing',
    de: 'Atemnot',
    fr: 'Difficulté à respirer',
    es: 'Dificultad para respirar',
    it: 'Difficoltà a respirare',
  },
  when: ['short_breath !mild', 'breathing_word difficulty !mild ~5', 'wheeze asthma !mild ~8'],
  source: { title: 'NHS: Shortness of breath', url: 'https://www.nhs.uk/conditions/shortness-of-breath/' },
  examples: {
    positive: [
      'She is having trouble breathing.',
      'Atemnot seit einer Stunde',
      'J’ai du mal à respirer',
      'Me cuesta mucho respirar',
      'Faccio fatica a respirare',
    ],
    negative: ['no difficulty breathing or swallowing'],
    boundary: [['I am a bit short of breath after the stairs, as usual.', false]],
  },
};
