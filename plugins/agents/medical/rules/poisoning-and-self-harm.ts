import type { Rule } from './rule.ts';

export const OVERDOSE_OR_POISONING: Rule = {
  id: 'overdose_or_poisoning',
  version: 1,
  urgency: 'emergency',
  kind: 'poison',
  sign: {
    en: 'Overdose or poisoning',
    de: 'Überdosis oder Vergiftung',
    fr: 'Surdosage ou intoxication',
    es: 'Sobredosis o intoxicación',
    it: 'Sovradosaggio o avvelenamento',
  },
  when: [
    'overdose',
    'street_drug unconscious|-wake|-respond|-breathe|no_air|blue ~15',
    'took pills|drug too_many !routine ~10',
    'took #8..500 pills|drug !routine ~6',
    'child took pills|drug|street_drug ~12',
    'took toxin ~10',
    'child toxin foam|vomit|cough ~15',
    'took|child battery ~8',
    'took alcohol pills|drug|gas ~14',
    'took|too_many street_drug -wake|-respond|unconscious|faint|blue|-breathe|no_air|vision_lost|racing|dying|sleepy ~25',
    'pills|drug|pill_box empty sleepy|-wake|unconscious|confuse|child|dizzy ~30',
    'alcohol unconscious|-wake|-respond|cold ~20',
    'alcohol pills|drug sleepy|-stand|-wake|vomit ~20',
    'toxin foam|vomit|sleepy ~14',
    'drug too_many sleepy|no_air|vomit|unconscious|-wake|-breathe|dizzy ~20',
    'instead took|vomit toxin|drug|pills ~14',
    'swallowed_everything',
    'toxin several_ill|vomit took ~20',
    'took dying racing|vision_lost ~25',
  ],
  source: { title: 'NHS: Poisoning; WHO: Poison control', url: 'https://www.nhs.uk/conditions/poisoning/' },
  examples: {
    positive: [
      'My toddler drank some drain cleaner.',
      'Ich habe dreißig Schlaftabletten genommen.',
      'Mon fils a bu de la javel.',
      'Mi hija se ha tragado una pila de botón.',
      'Ha ingoiato un’intera scatola di sonniferi.',
    ],
    negative: [
      'I took two ibuprofen tablets for my back pain.',
      'Ich nehme zwei Tabletten am Tag.',
      'How to store bleach safely',
    ],
    boundary: [
      ['I took 30 paracetamol tablets', true],
      ['I take all my pills every morning', false],
    ],
  },
};

export const CARBON_MONOXIDE: Rule = {
  id: 'carbon_monoxide',
  version: 1,
  urgency: 'emergency',
  kind: 'poison',
  sign: {
    en: 'Possible carbon monoxide or gas poisoning',
    de: 'Mögliche Vergiftung durch Kohlenmonoxid oder Gas',
    fr: 'Possible intoxication au monoxyde de carbone ou au gaz',
    es: 'Posible intoxicación por monóxido de carbono o gas',
    it: 'Possibile intossicazione da monossido di carbonio o gas',
  },
  when: [
    'gas headache|dizzy|nausea|vomit|unconscious|several_ill|faint|confuse|sleepy|cough|pain|no_air|weak ~22',
    'gas_mixed no_air|cough|chest|eye|pain|dizzy|nausea ~28',
  ],
  source: { title: 'NHS: Carbon monoxide poisoning', url: 'https://www.nhs.uk/conditions/carbon-monoxide-poisoning/' },
  examples: {
    positive: [
      'The boiler is leaking and we all have a headache.',
      'Hier riecht es nach Gas und mir ist schwindlig.',
      'Ça sent le gaz et j’ai la nausée.',
      'Huele a gas y estamos mareados.',
      'La stufa perde e in casa abbiamo tutti la nausea.',
    ],
    negative: ['Do carbon monoxide alarms need a yearly check?', 'The gas bill gives me a headache.'],
    boundary: [['There is a smell of gas outside.', false]],
  },
};

export const SUICIDAL_INTENT: Rule = {
  id: 'suicidal_intent',
  version: 1,
  urgency: 'emergency',
  kind: 'crisis',
  sign: {
    en: 'Thoughts of suicide or self-harm',
    de: 'Gedanken an Suizid oder Selbstverletzung',
    fr: 'Pensées de suicide ou d’automutilation',
    es: 'Pensamientos de suicidio o autolesión',
    it: 'Pensieri di suicidio o di autolesionismo',
  },
  when: [
    'suicide',
    'farewell suicide_weak ~15',
    'suicide_weak give_up ~12',
    'farewell give_up ~12',
    'pills give_up ready ~15',
    'tonight_end',
  ],
  source: {
    title: 'NHS: Help for suicidal thoughts; WHO: Suicide',
    url: 'https://www.nhs.uk/mental-health/feelings-symptoms-behaviours/behaviours/help-for-suicidal-thoughts/',
  },
  examples: {
    positive: [
      'I have a rope and I want to end my life.',
      'Ich will einfach nicht mehr leben.',
      'J’ai décidé d’en finir cette nuit.',
      'He pensado en quitarme la vida.',
      'Ho deciso di farla finita.',
      'My friend says he wants to kill himself.',
    ],
    negative: [
      'I don’t want to kill myself, I just can’t sleep.',
      'I’m dying of boredom.',
      'Suicide prevention resources for a school project?',
    ],
    boundary: [
      ['I was suicidal as a teenager and am happy now.', false],
      ['Ten years ago I tried to hang myself, and tonight I want to die.', true],
    ],
  },
};
