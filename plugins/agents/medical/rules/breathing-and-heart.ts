import type { Rule } from './rule.ts';

export const CARDIAC_ARREST: Rule = {
  id: 'cardiac_arrest',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Collapse without signs of life',
    de: 'Zusammenbruch ohne Lebenszeichen',
    fr: 'Effondrement sans signe de vie',
    es: 'Desplome sin signos de vida',
    it: 'Collasso senza segni di vita',
  },
  when: [
    '-pulse',
    'arrest',
    'faint -respond|-breathe|blue|-speak ~25',
    'lie_still -respond|-move|-breathe|-wake|-speak ~20',
  ],
  source: {
    title: 'AHA/ERC: Basic life support; NHS: Cardiac arrest',
    url: 'https://www.nhs.uk/conditions/cardiac-arrest/',
  },
  examples: {
    positive: [
      'He has no pulse.',
      'Ich finde keinen Puls bei ihm.',
      'Il n’a plus de pouls.',
      'No le encuentro el pulso.',
      'Non ha polso.',
    ],
    negative: ['My pulse is normal.'],
    boundary: [
      ['My battery has died.', false],
      ['He is lying there and does not react.', true],
    ],
  },
};

export const CHEST_PAIN: Rule = {
  id: 'chest_pain',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Chest pain or pressure',
    de: 'Schmerz oder Druck in der Brust',
    fr: 'Douleur ou oppression dans la poitrine',
    es: 'Dolor u opresión en el pecho',
    it: 'Dolore o oppressione al petto',
  },
  when: [
    'chest pain|pressure !muscle ~7',
    'clutch',
    'heart_attack',
    'heart pain|pressure ~4',
    'chest numb|sweat|dizzy !muscle ~12',
    'pain|pressure spread arm|jaw sweat|nausea|pale|chest|weak ~25',
    'shoulderblade pain jaw|arm|sweat|pale|nausea ~25',
    'jaw|belly_upper pain sweat|pale|arm|jaw ~20',
    'icd shocked ~10',
    'belly pain jaw|arm|chest sweat|spread|pressure ~18',
    'pressure|pain|numb arm sweat ~25',
    'pressure inhaler still|-help ~15',
  ],
  source: {
    title: 'NHS: Chest pain; AHA: Warning signs of a heart attack',
    url: 'https://www.nhs.uk/conditions/chest-pain/',
  },
  examples: {
    positive: [
      'There is a weight on my chest.',
      'Mein Vater hat Druck auf der Brust und schwitzt.',
      'J’ai très mal à la poitrine.',
      'Me duele mucho el pecho.',
      'Ho una morsa al petto.',
    ],
    negative: [
      'No chest pain, no shortness of breath, just a cough.',
      'My grandfather had a heart attack in 1998.',
      'My chest muscles are sore after push-ups yesterday.',
    ],
    boundary: [
      ['No fever, chest pain since this morning or maybe last night.', true],
      ['When should people call an ambulance for chest pain, generally speaking?', false],
    ],
  },
};

export const PALPITATIONS: Rule = {
  id: 'palpitations',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Racing or irregular heartbeat with danger signs',
    de: 'Herzrasen oder Herzstolpern mit Warnzeichen',
    fr: 'Palpitations avec signes de danger',
    es: 'Palpitaciones con señales de peligro',
    it: 'Palpitazioni con segni di pericolo',
  },
  when: [
    'heart|pulse racing|irregular faint|near_faint|dizzy|chest|no_air|short_breath|vision_lost|sweat|double_vision ~20',
    'heart|pulse|racing #140..280 ~8',
    'racing faint|chest ~15',
    'pacemaker dizzy|faint|near_faint|chest ~15',
    'heart irregular severe|dizzy|electric ~15',
  ],
  source: { title: 'NHS: Heart palpitations', url: 'https://www.nhs.uk/conditions/heart-palpitations/' },
  examples: {
    positive: [
      'My heart is racing and I nearly fainted.',
      'Mein Herz rast und mir wird schwarz vor Augen.',
      'Mon cœur s’emballe et je vais m’évanouir.',
      'El corazón me va a mil y estoy mareado.',
      'Il cuore batte all’impazzata e mi gira la testa.',
    ],
    negative: ['My heart beats calmly at 62.'],
    boundary: [['My heart rate is 190.', true]],
  },
};

export const BREATHING: Rule = {
  id: 'breathing',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Severe difficulty breathing',
    de: 'Schwere Atemnot',
    fr: 'Difficulté respiratoire grave',
    es: 'Dificultad grave para respirar',
    it: 'Grave difficoltà a respirare',
  },
  when: [
    '-breathe',
    '-air',
    'no_air',
    'short_breath severe|speak_hard|calf|foam|chest|sweat|sudden|blue|sleepy !mild ~12',
    'breathing_word difficulty severe|speak_hard|blue|pale|sleepy|child|wheeze|sudden !mild ~10',
    'wheeze blue|pale|severe|speak_hard|child|inhaler|sudden !mild ~14',
    'inhaler -help ~8',
    'asthma blue|speak_hard|faint|near_faint|severe|-help ~20',
    'lips|nails blue ~6',
    'breathing_word blue|foam|rattle ~12',
    'wheeze -stop|-help ~15',
    'speak_hard',
    'calf swell short_breath|chest ~25',
    'ribs_suck',
    'foam breathing_word|mouth cough|wheeze|rattle ~15',
  ],
  source: {
    title: 'NHS: Shortness of breath; GINA: Asthma exacerbations',
    url: 'https://www.nhs.uk/conditions/shortness-of-breath/',
  },
  examples: {
    positive: [
      'My husband can’t breathe and his lips are turning blue',
      'Mein Kind bekommt keine Luft mehr',
      'Elle n’arrive pas à respirer',
      'Mi madre no puede respirar',
      'Mia figlia non riesce a respirare',
    ],
    negative: ['I have no trouble breathing', 'Luft bekomme ich problemlos.', 'That view took my breath away.'],
    boundary: [
      ['I am breathing normally again.', false],
      ['He is hardly breathing.', true],
    ],
  },
};

export const BREATHLESSNESS: Rule = {
  id: 'breathlessness',
  version: 1,
  urgency: 'urgent',
  kind: 'urgent',
  sign: {
    en: 'Difficulty breathing',
    de: 'Atemnot',
    fr: 'Difficulté à respirer',
    es: 'Dificultad para respirar',
    it: 'Difficoltà a respirare',
  },
  when: ['short_breath !mild', 'breathing_word difficulty !mild ~5', 'wheeze asthma !mild ~8'],
  source: { title: 'NHS: Shortness of breath', url: 'https://www.nhs.uk/conditions/shortness-of-breath/' },
  examples: {
    positive: [
      'She is having trouble breathing.',
      'Atemnot seit einer Stunde',
      'J’ai du mal à respirer',
      'Me cuesta mucho respirar',
      'Faccio fatica a respirare',
    ],
    negative: ['no difficulty breathing or swallowing'],
    boundary: [['I am a bit short of breath after the stairs, as usual.', false]],
  },
};

export const CHOKING: Rule = {
  id: 'choking',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Choking',
    de: 'Ersticken durch Verschlucken',
    fr: 'Étouffement par un corps étranger',
    es: 'Atragantamiento',
    it: 'Soffocamento da corpo estraneo',
  },
  when: [
    'choke',
    'food_bite took blue|-breathe|no_air ~20',
    'stuck throat ~8',
    'food_bite stuck ~5',
    'wrong_pipe no_air|blue|-breathe|-air|food_bite ~20',
    'wrong_pipe -breathe|cough ~8',
    'food_bite throat -breathe|blue ~20',
  ],
  source: { title: 'NHS/ERC: Choking', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'A piece of meat is stuck in his throat.',
      'Mein Sohn hat sich an einer Nuss verschluckt und röchelt.',
      'Il s’étouffe avec un morceau de viande.',
      'Se ha atragantado con una uva.',
      'Si sta strozzando con un boccone.',
    ],
    negative: ['How can I learn first aid for choking babies?', 'Por poco me atraganto al ver el precio del alquiler.'],
    boundary: [['He choked on a grape a moment ago.', true]],
  },
};

export const ANAPHYLAXIS: Rule = {
  id: 'anaphylaxis',
  version: 2,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Signs of a severe allergic reaction (anaphylaxis)',
    de: 'Zeichen einer schweren allergischen Reaktion (Anaphylaxie)',
    fr: 'Signes de réaction allergique grave (anaphylaxie)',
    es: 'Signos de reacción alérgica grave (anafilaxia)',
    it: 'Segni di una reazione allergica grave (anafilassi)',
  },
  when: [
    'swell tongue|lips|throat ~6',
    'swell face|mouth|eye_lid allergen|sting|allergy|took|hives|short_breath|no_air|sudden|cough ~20',
    'face swell !topic !mild ~4',
    'throat_close !mild',
    'anaphylaxis',
    'epipen -help|throat_close|throat_odd|no_air|still|near_faint|-breathe|short_breath ~18',
    'sting|allergy swell !mild !arm !leg ~22',
    'sting|allergy hives|throat_close|throat_odd|wheeze|short_breath|no_air|-breathe|dizzy|near_faint|faint|vomit|pale|voice|cough_fit ~22',
    'allergen hives|throat_close|throat_odd|swell|wheeze|short_breath|no_air|-breathe|near_faint|faint|voice|cough_fit ~22',
    'hives wheeze|near_faint|faint|no_air|short_breath|swell|vomit|racing|numb ~18',
    'allergy severe ~5',
    'allergen -swallow|-breathe ~20',
    'sting mouth|throat|tongue ~10',
  ],
  source: { title: 'NHS: Anaphylaxis; WAO: Anaphylaxis guidance', url: 'https://www.nhs.uk/conditions/anaphylaxis/' },
  examples: {
    positive: [
      'My lips are swelling after a bee sting and I feel faint.',
      'Nach dem Wespenstich ist meine Zunge geschwollen',
      'Ma gorge se serre après avoir mangé des noix',
      'Se me hincha la lengua después de comer marisco',
      'Dopo i gamberi mi si chiude la gola',
    ],
    negative: ['I have a mosquito bite that itches.', 'After my anaphylaxis in 2019 I did desensitisation.'],
    boundary: [
      ['She used her EpiPen but it is not helping.', true],
      ['A mosquito bite on my arm is itchy and a bit swollen.', false],
      ['A wasp stung me and my eyes are swelling.', true],
      ['I am allergic to nuts, which snacks are safe?', false],
    ],
  },
};

export const DROWNING: Rule = {
  id: 'drowning',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: { en: 'Near drowning', de: 'Beinahe-Ertrinken', fr: 'Noyade', es: 'Ahogamiento', it: 'Annegamento' },
  when: ['drown', 'water_out #1..60 minute ~10', 'water_out -breathe|cough|sleepy|blue|unconscious|-respond ~28'],
  source: { title: 'NHS/ERC: Drowning', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'She was under water for two minutes.',
      'Er ist fast ertrunken.',
      'Il a failli se noyer.',
      'Mi hijo casi se ahoga en la piscina.',
      'Ha rischiato di annegare.',
    ],
    negative: ['I’m drowning in work.'],
    boundary: [['We pulled him out of the lake and he is not breathing.', true]],
  },
};
