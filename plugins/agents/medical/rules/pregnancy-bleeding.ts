import type { Rule } from './rule.ts';

export const PREGNANCY_BLEEDING: Rule = {
  id: 'pregnancy_bleeding',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Bleeding or severe pain in pregnancy',
    de: 'Blutung oder starker Schmerz in der Schwangerschaft',
    fr: 'Saignement ou douleur intense pendant la grossesse',
    es: 'Sangrado o dolor intenso en el embarazo',
    it: 'Sanguinamento o dolore forte in gravidanza',
  },
  when: [
    'pregnant bleed|blood !stopped_bleeding ~*',
    'pregnant pain severe|one_side|faint|near_faint|sudden|vision_lost !mild ~22',
    'pregnant faint ~20',
    'pregnant fall|crash belly|bleed|pain|hard ~25',
    'pregnant belly hard ~15',
  ],
  source: {
    title: 'NHS: Vaginal bleeding in pregnancy; RCOG: Ectopic pregnancy',
    url: 'https://www.nhs.uk/pregnancy/related-conditions/common-symptoms/vaginal-bleeding/',
  },
  examples: {
    positive: [
      'I’m 20 weeks pregnant and bleeding',
      'Ich bin schwanger und habe eine Blutung',
      'je suis enceinte et je saigne',
      'estoy embarazada y sangro',
      'Sono incinta e perdo sangue',
    ],
    negative: [
      'I’m 12 weeks pregnant; which vitamins are useful?',
      'The baby is moving normally and I’m not bleeding, I just want to know about swimming.',
    ],
    boundary: [['Seven weeks pregnant, stabbing pain on one side and I feel faint.', true]],
  },
};
