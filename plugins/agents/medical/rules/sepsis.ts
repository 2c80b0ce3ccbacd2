import type { Rule } from './rule.ts';

export const SEPSIS: Rule = {
  id: 'sepsis',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Signs of sepsis: infection or fever with confusion, mottled skin or very fast breathing',
    de: 'Zeichen einer Sepsis: Infekt oder Fieber mit Verwirrtheit, fleckiger Haut oder sehr schneller Atmung',
    fr: 'Signes de septicémie : infection ou fièvre avec confusion, peau marbrée ou respiration très rapide',
    es: 'Signos de sepsis: infección o fiebre con confusión, piel moteada o respiración muy rápida',
    it: 'Segni di sepsi: infezione o febbre con confusione, pelle marezzata o respiro molto veloce',
  },
  when: [
    'infection|fever|wound|shiver confuse|mottled|fast_breath|hallucinate|-pee|-urine|-respond|nonsense ~28',
    'fever shiver racing|severe|sleepy|pale|redness|weak ~20',
    'infection shiver|racing|sleepy|redness|dying|fever severe|pale|cold|confuse|racing|dying ~28',
    'redness shiver|fever|dying|confuse|spread ~20',
    'sepsis',
    'fever sleepy|pale mottled|-pee|-urine|confuse|fast_breath ~20',
    'fever #40.5..43',
    'mottled shiver|racing|infection|fever|confuse ~25',
  ],
  source: { title: 'NHS: Sepsis; Surviving Sepsis Campaign', url: 'https://www.nhs.uk/conditions/sepsis/' },
  examples: {
    positive: [
      'He has a fever from an infection and is confused, his skin is mottled',
      'Fieber und sie ist völlig verwirrt.',
      'Elle a de la fièvre et elle est confuse.',
      'Tiene fiebre y está desorientado.',
      'Ha la febbre ed è molto confusa.',
    ],
    negative: ['Can you explain what sepsis is?', 'he is confused about his insurance bill after an ear infection'],
    boundary: [['fever 38 in my 4 year old', false]],
  },
};
