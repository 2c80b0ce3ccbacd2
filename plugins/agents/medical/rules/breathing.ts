import type { Rule } from './rule.ts';

export const BREATHING: Rule = {
  id: 'breathing',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Severe difficulty breathing',
    de: 'Schwere Atemnot',
    fr: 'Difficulté respiratoire grave',
    es: 'Dificultad grave para respirar',
    it: 'Grave difficoltà a respirare',
  },
  when: [
    '-breathe',
    '-air',
    'no_air',
    'short_breath severe|speak_hard|calf|foam|chest|sweat|sudden|blue|sleepy !mild ~12',
    'breathing_word difficulty severe|speak_hard|blue|pale|sleepy|child|wheeze|sudden !mild ~10',
    'wheeze blue|pale|severe|speak_hard|child|inhaler|sudden !mild ~14',
    'inhaler -help ~8',
    'asthma blue|speak_hard|faint|near_faint|severe|-help ~20',
    'lips|nails blue ~6',
    'breathing_word blue|foam|rattle ~12',
    'wheeze -stop|-help ~15',
    'speak_hard',
    'calf swell short_breath|chest ~25',
    'ribs_suck',
    'foam breathing_word|mouth cough|wheeze|rattle ~15',
  ],
  source: {
    title: 'NHS: Shortness of breath; GINA: Asthma exacerbations',
    url: 'https://www.nhs.uk/conditions/shortness-of-breath/',
  },
  examples: {
    positive: [
      'My husband can’t breathe and his lips are turning blue',
      'Mein Kind bekommt keine Luft mehr',
      'Elle n’arrive pas à respirer',
      'Mi madre no puede respirar',
      'Mia figlia non riesce a respirare',
    ],
    negative: ['I have no trouble breathing', 'Luft bekomme ich problemlos.', 'That view took my breath away.'],
    boundary: [
      ['I am breathing normally again.', false],
      ['He is hardly breathing.', true],
    ],
  },
};
