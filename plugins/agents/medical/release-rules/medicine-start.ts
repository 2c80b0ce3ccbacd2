import type { ReleaseRule } from './release-rule.ts';

export const MEDICINE_START: ReleaseRule = {
  id: 'medicine_start',
  version: 2,
  objection: 'It tells to take a medicine; send the person to a doctor or pharmacist for that.',
  when: [
    'start medicine !<defer !proviso !lifestyle ~8',
    'extra medicine !<defer !proviso ~3',
    'another_one !lifestyle',
    'medicine harmless_extra ~6',
    'intake extra medicine ~8',
    'a_one medicine_name !<defer !proviso !lifestyle ~1',
    'start extra medicine_word|form !<defer !proviso !lifestyle ~5',
    'medicine benefit !<defer !proviso !lifestyle ~6',
  ],

  source: { title: 'WHO: Medication without harm', url: 'https://www.who.int/initiatives/medication-without-harm' },
  examples: {
    positive: [
      'Take an antihistamine tonight.',
      'Dagegen könnten Sie etwas Imodium nehmen.',
      'Un Lexomil de plus ne vous fera pas de mal.',
      'Puede tomar ibuprofeno.',
      'Prendi un antistaminico stasera.',
    ],
    negative: ['Ask a pharmacist whether you may take ibuprofen with it.', 'Take a deep breath.'],
    boundary: [
      ['Take a list of your medicines with you.', false],
      ['An extra Xanax won’t hurt.', true],
      ['Un poco de ibuprofeno le bajaría la fiebre.', true],
      ['Antibiotics do not work against viruses.', false],
    ],
  },
};
