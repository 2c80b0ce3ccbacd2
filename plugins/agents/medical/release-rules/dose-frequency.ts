import type { ReleaseRule } from './release-rule.ts';

export const DOSE_FREQUENCY: ReleaseRule = {
  id: 'dose_frequency',
  version: 2,
  objection: 'It says how often a medicine is to be taken; leave that to a doctor, a pharmacist and the leaflet.',
  when: [
    'frequency intake medicine|medicine_word|form !lifestyle ~12',
    'frequency form !lifestyle ~6',
    'frequency medicine !lifestyle ~10',
    'frequency change_dir !lifestyle !food ~8',
    'scheme !lifestyle !food ~12',
    'regimen !<defer !lifestyle !food !alcohol ~25',
    'regimen with_food !<defer !lifestyle !food !alcohol ~10',
    'per_day medicine|form !<defer !lifestyle !food !alcohol ~5',
    'frequency intake !<defer !lifestyle !food !alcohol ~6',
    'again_after !<defer !proviso !lifestyle !food ~12',
  ],

  source: { title: 'WHO: Medication without harm', url: 'https://www.who.int/initiatives/medication-without-harm' },
  examples: {
    positive: [
      'Take one capsule every six hours.',
      'Die Salbe dreimal am Tag auftragen.',
      'L’antibiotique se prend trois fois par jour.',
      'Use el espray nasal mañana y noche.',
      'Il cortisone a giorni alterni.',
    ],
    negative: ['Walk for 30 minutes every day.', 'Messen Sie zweimal täglich Ihre Temperatur.'],
    boundary: [
      ['One in the morning and one at night.', true],
      ['Take a break every hour.', false],
      ['Every six hours is enough.', true],
      ['Das können Sie nach vier Stunden wiederholen.', true],
      ['Coma algo pequeño cada tres horas.', false],
    ],
  },
};
