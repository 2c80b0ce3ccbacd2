import type { Rule } from './rule.ts';

export const PRE_ECLAMPSIA: Rule = {
  id: 'pre_eclampsia',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Severe headache, vision problems or swelling in pregnancy',
    de: 'Starker Kopfschmerz, Sehstörung oder Schwellung in der Schwangerschaft',
    fr: 'Mal de tête intense, troubles de la vue ou gonflement pendant la grossesse',
    es: 'Dolor de cabeza intenso, visión alterada o hinchazón en el embarazo',
    it: 'Forte mal di testa, disturbi della vista o gonfiore in gravidanza',
  },
  when: [
    'pregnant headache severe|vision_lost|high_bp|ear_ring|swell|dizzy ~25',
    'pregnant vision_lost|double_vision|swelling_preg ~25',
    'pregnant belly_upper pain ~18',
    'pregnant seizure',
    'pregnant high_bp',
  ],
  source: { title: 'NHS: Pre-eclampsia', url: 'https://www.nhs.uk/conditions/pre-eclampsia/' },
  examples: {
    positive: [
      '34 weeks pregnant with a severe headache and blurred vision',
      'Bin in der 32. SSW, habe starke Kopfschmerzen und Flimmern vor den Augen',
      'Enceinte, j’ai un mal de tête violent et je vois flou.',
      'Embarazada, me duele mucho la cabeza y veo luces.',
      'Incinta, ho un forte mal di testa e vedo macchie davanti agli occhi.',
    ],
    negative: ['I’m pregnant and my feet are tired.'],
    boundary: [['Pregnant, my blood pressure is 180 over 110.', true]],
  },
};
