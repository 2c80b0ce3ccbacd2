import type { Rule } from './rule.ts';

export const CHEST_PAIN: Rule = {
  id: 'chest_pain',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Chest pain or pressure',
    de: 'Schmerz oder Druck in der Brust',
    fr: 'Douleur ou oppression dans la poitrine',
    es: 'Dolor u opresión en el pecho',
    it: 'Dolore o oppressione al petto',
  },
  when: [
    'chest pain|pressure !muscle ~7',
    'clutch',
    'heart_attack',
    'heart pain|pressure ~4',
    'chest numb|sweat|dizzy !muscle ~12',
    'pain|pressure spread arm|jaw sweat|nausea|pale|chest|weak ~25',
    'shoulderblade pain jaw|arm|sweat|pale|nausea ~25',
    'jaw|belly_upper pain sweat|pale|arm|jaw ~20',
    'icd shocked ~10',
    'belly pain jaw|arm|chest sweat|spread|pressure ~18',
    'pressure|pain|numb arm sweat ~25',
    'pressure inhaler still|-help ~15',
  ],
  source: {
    title: 'NHS: Chest pain; AHA: Warning signs of a heart attack',
    url: 'https://www.nhs.uk/conditions/chest-pain/',
  },
  examples: {
    positive: [
      'There is a weight on my chest.',
      'Mein Vater hat Druck auf der Brust und schwitzt.',
      'J’ai très mal à la poitrine.',
      'Me duele mucho el pecho.',
      'Ho una morsa al petto.',
    ],
    negative: [
      'No chest pain, no shortness of breath, just a cough.',
      'My grandfather had a heart attack in 1998.',
      'My chest muscles are sore after push-ups yesterday.',
    ],
    boundary: [
      ['No fever, chest pain since this morning or maybe last night.', true],
      ['When should people call an ambulance for chest pain, generally speaking?', false],
    ],
  },
};
