import type { ReleaseRule } from './release-rule.ts';

export const DOSE_AMOUNT: ReleaseRule = {
  id: 'dose_amount',
  version: 2,
  objection: 'It names an amount of a medicine; leave amounts to a doctor, a pharmacist and the leaflet.',
  when: [
    'amount !alcohol',
    'soft_amount !food',
    'soft_amount medicine ~8',
    'spoon !food ~*',
    'spoon medicine ~8',
    'dose_share !<defer !proviso !food !lifestyle ~12',
    'take_number !lifestyle !food !measure !alcohol ~4',
    'few_forms',
    'few_of !lifestyle !food !measure !alcohol ~4',
  ],
  mayRepeat: true,
  source: { title: 'WHO: Medication without harm', url: 'https://www.who.int/initiatives/medication-without-harm' },
  examples: {
    positive: [
      'Take two tablets.',
      'Nehmen Sie 400 Milligramm.',
      'Un demi-comprimé suffira.',
      'Beba 5 ml de jarabe.',
      'Mezza compressa stasera.',
    ],
    negative: ['Drink two glasses of water.', 'Zwei Esslöffel Leinsamen ins Müsli.', 'Walk for 30 minutes.'],
    boundary: [
      ['Eat 30 g of fibre a day.', false],
      ['1 g of paracetamol', true],
      ['a quarter of a tablet', true],
      ['Nehmen Sie davon zwei.', true],
      ['La moitié de la dose suffira.', true],
      ['Take two minutes to breathe slowly.', false],
    ],
  },
};
