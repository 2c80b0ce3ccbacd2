import type { Rule } from './rule.ts';

export const IMMUNOCOMPROMISED_FEVER: Rule = {
  id: 'immunocompromised_fever',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Fever with a weak immune system',
    de: 'Fieber bei geschwächter Abwehr',
    fr: 'Fièvre avec immunité affaiblie',
    es: 'Fiebre con defensas bajas',
    it: 'Febbre con difese immunitarie basse',
  },
  when: ['immune fever|shiver ~25', 'immune #38..42 ~20'],
  source: { title: 'NICE: Neutropenic sepsis', url: 'https://www.nice.org.uk/guidance/cg151' },
  examples: {
    positive: [
      'I am on chemotherapy and have a fever.',
      'Ich bekomme Chemo und habe Fieber.',
      'Je suis sous chimio et j’ai de la fièvre.',
      'Estoy con quimio y tengo fiebre.',
      'Faccio la chemio e ho la febbre.',
    ],
    negative: ['I finished chemo and feel well.'],
    boundary: [['After my transplant I have a temperature of 38.6.', true]],
  },
};
