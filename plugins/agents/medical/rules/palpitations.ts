import type { Rule } from './rule.ts';

export const PALPITATIONS: Rule = {
  id: 'palpitations',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Racing or irregular heartbeat with danger signs',
    de: 'Herzrasen oder Herzstolpern mit Warnzeichen',
    fr: 'Palpitations avec signes de danger',
    es: 'Palpitaciones con señales de peligro',
    it: 'Palpitazioni con segni di pericolo',
  },
  when: [
    'heart|pulse racing|irregular faint|near_faint|dizzy|chest|no_air|short_breath|vision_lost|sweat|double_vision ~20',
    'heart|pulse|racing #140..280 ~8',
    'racing faint|chest ~15',
    'pacemaker dizzy|faint|near_faint|chest ~15',
    'heart irregular severe|dizzy|electric ~15',
  ],
  source: { title: 'NHS: Heart palpitations', url: 'https://www.nhs.uk/conditions/heart-palpitations/' },
  examples: {
    positive: [
      'My heart is racing and I nearly fainted.',
      'Mein Herz rast und mir wird schwarz vor Augen.',
      'Mon cœur s’emballe et je vais m’évanouir.',
      'El corazón me va a mil y estoy mareado.',
      'Il cuore batte all’impazzata e mi gira la testa.',
    ],
    negative: ['My heart beats calmly at 62.'],
    boundary: [['My heart rate is 190.', true]],
  },
};
