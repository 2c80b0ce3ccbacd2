import type { ReleaseRule } from './release-rule.ts';

const MEDICINE_CHANGE: ReleaseRule = {
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

const DOSE_FREQUENCY: ReleaseRule = {
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

const DOSE_AMOUNT: ReleaseRule = {
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

const MEDICINE_START: ReleaseRule = {
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

const CERTAIN_DIAGNOSIS: ReleaseRule = {
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

const FALSE_COMFORT: ReleaseRule = {
  id: 'false_comfort',
  version: 1,
  objection: 'It plays a danger sign down.',
  when: ['comfort'],
  onlyWithDanger: true,
  source: { title: 'NICE NG94: Emergency and acute medical care', url: 'https://www.nice.org.uk/guidance/ng94' },
  examples: {
    positive: [
      'It is nothing to worry about.',
      'Das ist harmlos.',
      'Rien de grave.',
      'No es grave.',
      'Niente di grave.',
    ],
    negative: ['See a doctor today.'],
    boundary: [['This is an emergency.', false]],
  },
};

/** All rules that a generated answer is held to. */
export const RELEASE_RULES: readonly ReleaseRule[] = Object.freeze([
  CERTAIN_DIAGNOSIS,
  DOSE_AMOUNT,
  DOSE_FREQUENCY,
  MEDICINE_CHANGE,
  MEDICINE_START,
  FALSE_COMFORT,
]);
