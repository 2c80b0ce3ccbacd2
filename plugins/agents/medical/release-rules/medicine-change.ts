import type { ReleaseRule } from './release-rule.ts';

export const MEDICINE_CHANGE: ReleaseRule = {
  id: 'medicine_change',
  version: 2,
  objection: 'It tells to stop, change or replace a medicine; send the person to a doctor or pharmacist for that.',
  when: [
    'change medicine|medicine_word !<defer !proviso !lifestyle ~10',
    '?needless medicine|medicine_word !<defer !proviso !lifestyle ~10',
    'omit ?medicine when_soon !<defer !proviso !lifestyle ~10',
    'shift medicine|medicine_word !<defer !proviso !lifestyle ~8',
    'dose_verb !<defer !proviso !lifestyle !food ~8',
  ],

  source: { title: 'WHO: Medication without harm', url: 'https://www.who.int/initiatives/medication-without-harm' },
  examples: {
    positive: [
      'Double your dose for three days.',
      'Setzen Sie das Metformin ab.',
      'Arrêtez votre bêtabloquant.',
      'Suspenda la metformina.',
      'Smetta di prendere il betabloccante.',
    ],
    negative: [
      'Do not change your medicines without asking your doctor.',
      'Ask your doctor before changing the dose.',
      'Stop smoking, it helps your heart most.',
    ],
    boundary: [
      ['Your doctor may change the dose.', false],
      ['Your warfarin can be paused until Monday.', true],
      ['Domani niente Eliquis.', true],
      ['Inutile de continuer les comprimés.', true],
      ['Leave out the water tablet.', true],
      ['Bitte setzen Sie Ihre Tabletten nicht eigenmächtig ab.', false],
    ],
  },
};
