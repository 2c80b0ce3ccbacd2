import type { Rule } from './rule.ts';

export const TESTICULAR_TORSION: Rule = {
  id: 'testicular_torsion',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Sudden severe pain in a testicle',
    de: 'Plötzlicher starker Hodenschmerz',
    fr: 'Douleur testiculaire soudaine et intense',
    es: 'Dolor testicular repentino e intenso',
    it: 'Dolore improvviso e forte a un testicolo',
  },
  when: [
    'testicle pain severe|sudden|vomit|nausea|swell|twisted|hours !mild ~18',
    'testicle twisted|swell ~8',
    'testicle vomit ~14',
  ],
  source: { title: 'NHS: Testicle pain', url: 'https://www.nhs.uk/symptoms/testicle-pain/' },
  examples: {
    positive: [
      'My son has sudden severe pain in one testicle',
      'Plötzlich starke Schmerzen im Hoden',
      'Douleur brutale à un testicule',
      'Dolor muy fuerte y repentino en un testículo',
      'Dolore improvviso e fortissimo a un testicolo',
    ],
    negative: ['pain in my big toe'],
    boundary: [['My testicle is swollen and I feel sick.', true]],
  },
};
