import type { Rule } from './rule.ts';

export const MENINGITIS: Rule = {
  id: 'meningitis',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Fever or headache with a stiff neck, or a rash that does not fade',
    de: 'Fieber oder Kopfschmerz mit steifem Nacken, oder Ausschlag, der nicht verblasst',
    fr: 'Fièvre ou mal de tête avec nuque raide, ou éruption qui ne s’efface pas',
    es: 'Fiebre o dolor de cabeza con rigidez de nuca, o sarpullido que no desaparece',
    it: 'Febbre o mal di testa con collo rigido, o macchie che non spariscono',
  },
  when: [
    'neck stiff fever|headache|light_hurts|rash|vomit|confuse ~25',
    'neck -bend|bend fever|headache|light_hurts|vomit|severe ~25',
    'neck pain fever vomit|light_hurts|confuse|sleepy ~25',
    'fever light_hurts headache|severe|neck|-stand ~20',
    'rash -fade',
    'glass_test fever|child|sleepy|limp|rash|confuse ~25',
    'meningitis sleepy|fever|severe|sudden ~15',
    'rash fever sleepy|limp|confuse|stiff|blue ~18',
  ],
  source: { title: 'NHS: Meningitis', url: 'https://www.nhs.uk/conditions/meningitis/' },
  examples: {
    positive: [
      'fever and a stiff neck',
      'Fieber und mein Nacken ist ganz steif',
      'raideur de la nuque et fièvre',
      'Tiene fiebre y el cuello rígido.',
      'Ha la febbre e il collo rigido.',
    ],
    negative: ['Fever for two days without a stiff neck.', 'How is meningitis transmitted?'],
    boundary: [
      ['My shoulder is stiff in the morning.', false],
      ['The rash does not fade when I press a glass on it.', true],
    ],
  },
};
