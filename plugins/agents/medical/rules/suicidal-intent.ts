import type { Rule } from './rule.ts';

export const SUICIDAL_INTENT: Rule = {
  id: 'suicidal_intent',
  version: 1,
  urgency: 'emergency',
  kind: 'crisis',
  sign: {
    en: 'Thoughts of suicide or self-harm',
    de: 'Gedanken an Suizid oder Selbstverletzung',
    fr: 'Pensées de suicide ou d’automutilation',
    es: 'Pensamientos de suicidio o autolesión',
    it: 'Pensieri di suicidio o di autolesionismo',
  },
  when: [
    'suicide',
    'farewell suicide_weak ~15',
    'suicide_weak give_up ~12',
    'farewell give_up ~12',
    'pills give_up ready ~15',
    'tonight_end',
  ],
  source: {
    title: 'NHS: Help for suicidal thoughts; WHO: Suicide',
    url: 'https://www.nhs.uk/mental-health/feelings-symptoms-behaviours/behaviours/help-for-suicidal-thoughts/',
  },
  examples: {
    positive: [
      'I have a rope and I want to end my life.',
      'Ich will einfach nicht mehr leben.',
      'J’ai décidé d’en finir cette nuit.',
      'He pensado en quitarme la vida.',
      'Ho deciso di farla finita.',
      'My friend says he wants to kill himself.',
    ],
    negative: [
      'I don’t want to kill myself, I just can’t sleep.',
      'I’m dying of boredom.',
      'Suicide prevention resources for a school project?',
    ],
    boundary: [
      ['I was suicidal as a teenager and am happy now.', false],
      ['Ten years ago I tried to hang myself, and tonight I want to die.', true],
    ],
  },
};
