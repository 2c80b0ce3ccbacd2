import type { Rule } from './rule.ts';

export const PRE_ECLAMPSIA: Rule = {
  id: 'pre_eclampsia',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Severe headache, vision problems or swelling in pregnancy',
    de: 'Starker Kopfschmerz, Sehstörung oder Schwellung in der Schwangerschaft',
    fr: 'Mal de tête intense, troubles de la vue ou gonflement pendant la grossesse',
    es: 'Dolor de cabeza intenso, visión alterada o hinchazón en el embarazo',
    it: 'Forte mal di testa, disturbi della vista o gonfiore in gravidanza',
  },
  when: [
    'pregnant headache severe|vision_lost|high_bp|ear_ring|swell|dizzy ~25',
    'pregnant vision_lost|double_vision|swelling_preg ~25',
    'pregnant belly_upper pain ~18',
    'pregnant seizure',
    'pregnant high_bp',
  ],
  source: { title: 'NHS: Pre-eclampsia', url: 'https://www.nhs.uk/conditions/pre-eclampsia/' },
  examples: {
    positive: [
      '34 weeks pregnant with a severe headache and blurred vision',
      'Bin in der 32. SSW, habe starke Kopfschmerzen und Flimmern vor den Augen',
      'Enceinte, j’ai un mal de tête violent et je vois flou.',
      'Embarazada, me duele mucho la cabeza y veo luces.',
      'Incinta, ho un forte mal di testa e vedo macchie davanti agli occhi.',
    ],
    negative: ['I’m pregnant and my feet are tired.'],
    boundary: [['Pregnant, my blood pressure is 180 over 110.', true]],
  },
};

export const PREGNANCY_BLEEDING: Rule = {
  id: 'pregnancy_bleeding',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Bleeding or severe pain in pregnancy',
    de: 'Blutung oder starker Schmerz in der Schwangerschaft',
    fr: 'Saignement ou douleur intense pendant la grossesse',
    es: 'Sangrado o dolor intenso en el embarazo',
    it: 'Sanguinamento o dolore forte in gravidanza',
  },
  when: [
    'pregnant bleed|blood !stopped_bleeding ~*',
    'pregnant pain severe|one_side|faint|near_faint|sudden|vision_lost !mild ~22',
    'pregnant faint ~20',
    'pregnant fall|crash belly|bleed|pain|hard ~25',
    'pregnant belly hard ~15',
  ],
  source: {
    title: 'NHS: Vaginal bleeding in pregnancy; RCOG: Ectopic pregnancy',
    url: 'https://www.nhs.uk/pregnancy/related-conditions/common-symptoms/vaginal-bleeding/',
  },
  examples: {
    positive: [
      'I’m 20 weeks pregnant and bleeding',
      'Ich bin schwanger und habe eine Blutung',
      'je suis enceinte et je saigne',
      'estoy embarazada y sangro',
      'Sono incinta e perdo sangue',
    ],
    negative: [
      'I’m 12 weeks pregnant; which vitamins are useful?',
      'The baby is moving normally and I’m not bleeding, I just want to know about swimming.',
    ],
    boundary: [['Seven weeks pregnant, stabbing pain on one side and I feel faint.', true]],
  },
};

export const LABOUR: Rule = {
  id: 'labour',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Danger around a birth',
    de: 'Gefahr rund um eine Geburt',
    fr: 'Danger autour d’un accouchement',
    es: 'Peligro en torno a un parto',
    it: 'Pericolo intorno al parto',
  },
  when: [
    'cord coming_out|see|hanging|waters ~14',
    'coming_out',
    'pregnant hanging ~15',
    'waters early|green|hanging ~20',
    'contractions early|#20..36 ~20',
    'contractions #1..5 minute early|pregnant ~20',
    'postpartum fever|bleed|blood|severe|shiver|stink ~25',
    'push_urge pregnant|baby|head ~15',
  ],
  source: {
    title: 'NHS: Labour and birth emergencies; RCOG: Cord prolapse',
    url: 'https://www.nhs.uk/pregnancy/labour-and-birth/',
  },
  examples: {
    positive: [
      'My waters broke and I can see the cord.',
      'Die Fruchtblase ist geplatzt und die Nabelschnur hängt raus.',
      'J’ai perdu les eaux et je vois le cordon.',
      'He roto aguas y asoma el cordón.',
      'Mi si sono rotte le acque e pende il cordone.',
    ],
    negative: ['How long does labour usually last?'],
    boundary: [['Contractions every two minutes and I’m 28 weeks.', true]],
  },
};

export const FETAL_MOVEMENT: Rule = {
  id: 'fetal_movement',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'The unborn baby moves less or not at all',
    de: 'Das ungeborene Kind bewegt sich weniger oder gar nicht',
    fr: 'Le bébé bouge moins ou plus du tout dans le ventre',
    es: 'El bebé se mueve menos o nada en el vientre',
    it: 'Il bambino nella pancia si muove meno o per niente',
  },
  when: [
    'pregnant -kicks|-move|-feel ~28',
    'baby|child -kicks|-move #28..42 ~20',
    'kicker',
    '-kicks belly|baby|pregnant|hours ~20',
    'pregnant quiet_baby ~20',
    'baby -move belly|hours ~12',
    '-feel baby ~5',
  ],
  source: {
    title: 'NHS: Your baby’s movements; RCOG',
    url: 'https://www.nhs.uk/pregnancy/keeping-well/your-babys-movements/',
  },
  examples: {
    positive: [
      'I’m 36 weeks and my baby hasn’t moved since yesterday.',
      'In der 37. Woche, mein Baby bewegt sich nicht mehr.',
      'Je suis enceinte et mon bébé ne bouge plus.',
      'Estoy de 37 semanas y el bebé no se mueve.',
      'Sono incinta di 38 settimane e il bambino non si muove.',
    ],
    negative: ['The baby is moving normally.'],
    boundary: [['Pregnant, no kicks all day.', true]],
  },
};

export const ILL_CHILD: Rule = {
  id: 'ill_child',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Danger signs in a baby or child',
    de: 'Warnzeichen bei einem Baby oder Kind',
    fr: 'Signes de danger chez un bébé ou un enfant',
    es: 'Señales de peligro en un bebé o niño',
    it: 'Segni di pericolo in un neonato o bambino',
  },
  when: [
    'child limp !mild ~14',
    'child blue ~12',
    'child pale|sleepy sleepy|limp|-wake|-respond|-open|-feed ~20',
    'child vomit dry|sunken|-urine|-wet_nappy|-pee ~25',
    'infant vomit|-feed dry|sleepy|-urine|-wet_nappy|-pee|green_vomit|limp|hours ~25',
    'child dry sunken|-feed|hours ~20',
    'child ribs_suck',
    'ribs_suck -feed|short_breath|pale ~20',
    'bark short_breath|no_air|difficulty|ribs_suck|-breathe ~15',
    'child drool -swallow|-feed|no_air|wheeze|short_breath|difficulty ~18',
    'child -feed limp|fever|quiet_baby|hot_body ~18',
    'quiet_baby limp|-cry|-feed|-see ~20',
    'infant -cry|quiet_baby ~15',
    'child shaken',
    'child vomit green_vomit|cry_weird ~18',
    'child fall sleepy|limp|vomit ~20',
    'child seizure',
    'limp -wake|-feed|-respond|-cry ~14',
    'child cry_weird vomit|belly_swollen|pale ~15',
    'sunken vomit|dry|-wet_nappy|-urine ~20',
    'infant|baby -wet_nappy|-urine|-pee hours|sunken|vomit ~20',
    'infant #8..40 hours -wet_nappy|dry ~20',
    'infant|baby -wake|-respond',
  ],
  source: {
    title: 'NHS: Is your baby or toddler seriously ill?; WHO: IMCI danger signs',
    url: 'https://www.nhs.uk/conditions/baby/health/is-your-baby-or-toddler-seriously-ill/',
  },
  examples: {
    positive: [
      'My baby has gone limp.',
      'Mein Baby ist ganz schlaff und trinkt nicht.',
      'Mon bébé est tout mou.',
      'Mi bebé está muy flojo y no se despierta.',
      'Il mio bambino è tutto molle.',
    ],
    negative: ['My baby has mild nappy rash but is cheerful and drinking well.', 'my kid swallowed a grape seed'],
    boundary: [['The toddler has had no wet nappy all day and keeps vomiting.', true]],
  },
};

export const INFANT_FEVER: Rule = {
  id: 'infant_fever',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Fever in a baby under three months',
    de: 'Fieber bei einem Säugling unter drei Monaten',
    fr: 'Fièvre chez un nourrisson de moins de trois mois',
    es: 'Fiebre en un bebé menor de tres meses',
    it: 'Febbre in un neonato sotto i tre mesi',
  },
  when: ['infant fever|hot_body ~15', 'infant #38..42 ~10'],
  source: {
    title: 'NHS: High temperature (fever) in children; NICE NG143',
    url: 'https://www.nhs.uk/conditions/fever-in-children/',
  },
  examples: {
    positive: [
      'My 5 week old has a fever of 38.6',
      'Unser Baby ist drei Wochen alt und hat Fieber',
      'mon bébé de deux mois a de la fièvre',
      'mi bebé de un mes tiene fiebre',
      'Il mio bimbo di cinque settimane ha la febbre',
    ],
    negative: [
      'My six year old has a fever of 38.5 and a cold.',
      'The baby is three weeks old and healthy; when is the first vaccination?',
    ],
    boundary: [
      ['2 month old baby with fever 39', true],
      ['fever 38 in my 4 year old', false],
    ],
  },
};
