import type { ReleaseRule } from './release-rule.ts';

export const CERTAIN_DIAGNOSIS: ReleaseRule = {
  id: 'certain_diagnosis',
  version: 1,
  objection: 'It states a diagnosis as certain; say what it may be, why, and what speaks against it.',
  when: ['certain'],

  source: {
    title: 'GMC: Good medical practice, honesty about uncertainty',
    url: 'https://www.gmc-uk.org/professional-standards/professional-standards-for-doctors/good-medical-practice',
  },
  examples: {
    positive: [
      'You definitely have pneumonia.',
      'Die Diagnose lautet Grippe.',
      'Vous avez certainement une angine.',
      'Usted tiene sin duda una neumonía.',
      'La diagnosi è polmonite.',
    ],
    negative: ['It may be a cold.', 'Ihr Arzt stellt die Diagnose.'],
    boundary: [['You may have a cold, and a fever would speak against it.', false]],
  },
};
