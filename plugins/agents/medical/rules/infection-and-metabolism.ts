import type { Rule } from './rule.ts';

export const SEPSIS: Rule = {
  id: 'sepsis',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Signs of sepsis: infection or fever with confusion, mottled skin or very fast breathing',
    de: 'Zeichen einer Sepsis: Infekt oder Fieber mit Verwirrtheit, fleckiger Haut oder sehr schneller Atmung',
    fr: 'Signes de septicémie : infection ou fièvre avec confusion, peau marbrée ou respiration très rapide',
    es: 'Signos de sepsis: infección o fiebre con confusión, piel moteada o respiración muy rápida',
    it: 'Segni di sepsi: infezione o febbre con confusione, pelle marezzata o respiro molto veloce',
  },
  when: [
    'infection|fever|wound|shiver confuse|mottled|fast_breath|hallucinate|-pee|-urine|-respond|nonsense ~28',
    'fever shiver racing|severe|sleepy|pale|redness|weak ~20',
    'infection shiver|racing|sleepy|redness|dying|fever severe|pale|cold|confuse|racing|dying ~28',
    'redness shiver|fever|dying|confuse|spread ~20',
    'sepsis',
    'fever sleepy|pale mottled|-pee|-urine|confuse|fast_breath ~20',
    'fever #40.5..43',
    'mottled shiver|racing|infection|fever|confuse ~25',
  ],
  source: { title: 'NHS: Sepsis; Surviving Sepsis Campaign', url: 'https://www.nhs.uk/conditions/sepsis/' },
  examples: {
    positive: [
      'He has a fever from an infection and is confused, his skin is mottled',
      'Fieber und sie ist völlig verwirrt.',
      'Elle a de la fièvre et elle est confuse.',
      'Tiene fiebre y está desorientado.',
      'Ha la febbre ed è molto confusa.',
    ],
    negative: ['Can you explain what sepsis is?', 'he is confused about his insurance bill after an ear infection'],
    boundary: [['fever 38 in my 4 year old', false]],
  },
};

export const TISSUE_INFECTION: Rule = {
  id: 'tissue_infection',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Dangerous infection of the skin or throat',
    de: 'Gefährliche Infektion der Haut oder des Rachens',
    fr: 'Infection dangereuse de la peau ou de la gorge',
    es: 'Infección peligrosa de la piel o la garganta',
    it: 'Infezione pericolosa della pelle o della gola',
  },
  when: [
    'necrosis wound|leg|arm|pain|fever|infection|skin ~22',
    'wound stink fever|severe ~20',
    'throat|tonsil drool|-open severe|no_air|fever|short_breath|-breathe|still|-swallow ~25',
    'drool -swallow|-open|no_air|short_breath ~20',
    'tonsil -open ~15',
  ],
  source: {
    title: 'NHS: Necrotising fasciitis; NHS: Epiglottitis',
    url: 'https://www.nhs.uk/conditions/necrotising-fasciitis/',
  },
  examples: {
    positive: [
      'The skin around the wound is turning black and I have a fever.',
      'Die Haut um die Wunde wird schwarz.',
      'La peau noircit autour de la plaie.',
      'La herida está negra y huele fatal.',
      'La pelle attorno alla ferita diventa nera.',
    ],
    negative: ['My throat is a bit sore.'],
    boundary: [['I have tonsillitis and can no longer open my mouth.', true]],
  },
};

export const IMMUNOCOMPROMISED_FEVER: Rule = {
  id: 'immunocompromised_fever',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Fever with a weak immune system',
    de: 'Fieber bei geschwächter Abwehr',
    fr: 'Fièvre avec immunité affaiblie',
    es: 'Fiebre con defensas bajas',
    it: 'Febbre con difese immunitarie basse',
  },
  when: ['immune fever|shiver ~25', 'immune #38..42 ~20'],
  source: { title: 'NICE: Neutropenic sepsis', url: 'https://www.nice.org.uk/guidance/cg151' },
  examples: {
    positive: [
      'I am on chemotherapy and have a fever.',
      'Ich bekomme Chemo und habe Fieber.',
      'Je suis sous chimio et j’ai de la fièvre.',
      'Estoy con quimio y tengo fiebre.',
      'Faccio la chemio e ho la febbre.',
    ],
    negative: ['I finished chemo and feel well.'],
    boundary: [['After my transplant I have a temperature of 38.6.', true]],
  },
};

export const DIABETIC_KETOACIDOSIS: Rule = {
  id: 'diabetic_ketoacidosis',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Diabetes with vomiting, fruity breath or confusion',
    de: 'Diabetes mit Erbrechen, Azetongeruch oder Verwirrtheit',
    fr: 'Diabète avec vomissements, haleine fruitée ou confusion',
    es: 'Diabetes con vómitos, aliento afrutado o confusión',
    it: 'Diabete con vomito, alito fruttato o confusione',
  },
  when: [
    'diabetic|glucose|hyper vomit|ketone|fast_breath|confuse|-respond|thirst|nausea ~28',
    'hyper vomit|nausea|ketone|fast_breath|sleepy|confuse|weak ~22',
    'ketone confuse|vomit|sleepy|nonsense|fast_breath ~25',
    'glucose #20.1..60 confuse|vomit|thirst|nausea|fast_breath ~15',
    'glucose #400..2000 ~8',
    'glucose #5.5..12 vomit -respond|confuse|sleepy ~25',
  ],
  source: { title: 'NHS: Diabetic ketoacidosis', url: 'https://www.nhs.uk/conditions/diabetic-ketoacidosis/' },
  examples: {
    positive: [
      'Type 1 diabetes, vomiting since last night, my breath smells fruity',
      'Ich bin Diabetiker und erbreche ständig.',
      'Je suis diabétique et je vomis.',
      'Soy diabético y no paro de vomitar.',
      'Sono diabetico e vomito da stanotte.',
    ],
    negative: [
      'I have diabetes, what fruit can I eat?',
      'My diabetes is well controlled, but I get confused about carb counting',
    ],
    boundary: [
      ['My blood sugar is 600.', true],
      ['My blood sugar is 105.', false],
    ],
  },
};

export const HYPOGLYCAEMIA: Rule = {
  id: 'hypoglycaemia',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Dangerously low blood sugar',
    de: 'Gefährlich niedriger Blutzucker',
    fr: 'Glycémie dangereusement basse',
    es: 'Nivel de azúcar peligrosamente bajo',
    it: 'Glicemia pericolosamente bassa',
  },
  when: [
    'glucose #0.1..0.6 ~8',
    'glucose #1..3 !grams ~6',
    'glucose #18..52 !grams ~6',
    'hypo confuse|shiver|sweat|-respond|unconscious|faint|severe|double_vision|sleepy|near_faint|weak|nonsense|-understand|limp ~20',
    'diabetic|insulin sweat|confuse|shiver|unconscious|-wake|faint|-respond|nonsense|sleepy|limp|near_faint|weak ~28',
    'insulin_mistake',
    'diabetic -feed|-swallow ~20',
    'insulin twice ~6',
  ],
  source: {
    title: 'NHS: Low blood sugar; ADA: Hypoglycemia',
    url: 'https://www.nhs.uk/conditions/low-blood-sugar-hypoglycaemia/',
  },
  examples: {
    positive: [
      'My blood sugar is 2.1.',
      'Mein Zucker ist bei 35.',
      'Ma glycémie est à 0,38.',
      'Tengo la glucosa en 38.',
      'Ho la glicemia a 35.',
    ],
    negative: ['How does an insulin pen work?'],
    boundary: [
      ['My husband has type 1, he is sweating and talks nonsense.', true],
      ['There are 30 grams of sugar in it.', false],
    ],
  },
};

export const ACUTE_ABDOMEN: Rule = {
  id: 'acute_abdomen',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Signs of an emergency in the belly',
    de: 'Zeichen eines Notfalls im Bauch',
    fr: 'Signes d’une urgence abdominale',
    es: 'Signos de una urgencia abdominal',
    it: 'Segni di un’urgenza addominale',
  },
  when: [
    'belly hard ~6',
    'belly pain severe|sudden|faint|near_faint|worst !mild !period ~10',
    'belly pain fever vomit ~25',
    'belly tear ~8',
    'low_right pain fever|vomit|severe|-move|-stand ~25',
    'hernia push_back|-push|vomit|severe ~18',
    'no_stool vomit|belly_swollen|severe|pain ~22',
    'vomit_feces',
    'belly pain yellow|-stand|-move|sweat ~20',
    'yellow pain shiver|fever|belly ~20',
    'aneurysm pain|sudden|faint|near_faint|severe ~20',
    'belly touch pain|severe ~12',
    'belly -bear ~10',
    'belly pain vibration ~18',
    'pain #9..10 belly ~20',
    'pain belly fever lie_still ~25',
  ],
  source: { title: 'NHS: Stomach ache; NICE CKS: Acute abdomen', url: 'https://www.nhs.uk/conditions/stomach-ache/' },
  examples: {
    positive: [
      'My belly is as hard as a board.',
      'Mein Bauch ist bretthart.',
      'Mon ventre est dur comme du bois.',
      'Tengo la barriga dura como una piedra y mucho dolor.',
      'Ho la pancia dura come il legno.',
    ],
    negative: ['My period cramps are the same as every month.', 'I’m a bit bloated after eating beans.'],
    boundary: [['Sudden tearing pain in my stomach.', true]],
  },
};

export const TESTICULAR_TORSION: Rule = {
  id: 'testicular_torsion',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Sudden severe pain in a testicle',
    de: 'Plötzlicher starker Hodenschmerz',
    fr: 'Douleur testiculaire soudaine et intense',
    es: 'Dolor testicular repentino e intenso',
    it: 'Dolore improvviso e forte a un testicolo',
  },
  when: [
    'testicle pain severe|sudden|vomit|nausea|swell|twisted|hours !mild ~18',
    'testicle twisted|swell ~8',
    'testicle vomit ~14',
  ],
  source: { title: 'NHS: Testicle pain', url: 'https://www.nhs.uk/symptoms/testicle-pain/' },
  examples: {
    positive: [
      'My son has sudden severe pain in one testicle',
      'Plötzlich starke Schmerzen im Hoden',
      'Douleur brutale à un testicule',
      'Dolor muy fuerte y repentino en un testículo',
      'Dolore improvviso e fortissimo a un testicolo',
    ],
    negative: ['pain in my big toe'],
    boundary: [['My testicle is swollen and I feel sick.', true]],
  },
};
