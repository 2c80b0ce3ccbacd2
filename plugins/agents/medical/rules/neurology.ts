import type { Rule } from './rule.ts';

export const STROKE: Rule = {
  id: 'stroke',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Signs of a stroke (face, arm, speech)',
    de: 'Zeichen eines Schlaganfalls (Gesicht, Arm, Sprache)',
    fr: 'Signes d’un AVC (visage, bras, parole)',
    es: 'Signos de un ictus (cara, brazo, habla)',
    it: 'Segni di un ictus (viso, braccio, parola)',
  },
  when: [
    'face|mouth|smile|eye_lid droop ~7',
    'slur',
    '-speak arm|leg|face|mouth|sudden|one_side|confuse|numb|weak|droop|paralysed|still ~20',
    'numb|weak|paralysed one_side|face !mild ~6',
    'arm|leg numb|weak|paralysed sudden|slur|face|-speak|nonsense ~14',
    'stroke !heatstroke',
    'vision_lost sudden|one_eye ~14',
    'double_vision sudden|dizzy|-stand|-move|slur|weak|headache ~20',
    '-see one_eye ~8',
    '-move|-obey arm|leg|one_side ~8',
    'paralysed arm|leg|face|one_side ~6',
    'drop_things nonsense|slur|weak|-speak|confuse ~22',
    '-understand speak|sudden ~15',
    'nonsense sudden ~12',
    'smile one_side ~8',
    '-smile',
    'dizzy sudden -stand|-move double_vision ~25',
    '-strength arm|leg|one_side|sudden ~8',
  ],
  source: { title: 'NHS: Stroke, symptoms; AHA/ASA: BE FAST', url: 'https://www.nhs.uk/conditions/stroke/symptoms/' },
  examples: {
    positive: [
      'My mother’s face is drooping on one side and her speech is slurred',
      'Sein Mundwinkel hängt herunter und er spricht verwaschen',
      'Ma mère a la bouche de travers',
      'A mi padre se le tuerce la boca',
      'Mio padre ha la bocca storta e biascica',
    ],
    negative: ['What are the symptoms of a stroke?', 'My father had a stroke ten years ago; should I change my diet?'],
    boundary: [
      ['In the series last night someone had a stroke on a plane.', false],
      ['I suddenly can’t see out of one eye', true],
    ],
  },
};

export const THUNDERCLAP_HEADACHE: Rule = {
  id: 'thunderclap_headache',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Sudden, worst-ever headache',
    de: 'Plötzlicher, nie gekannter Kopfschmerz',
    fr: 'Mal de tête soudain, le pire jamais ressenti',
    es: 'Dolor de cabeza repentino, el peor de la vida',
    it: 'Mal di testa improvviso, il peggiore della vita',
  },
  when: [
    'headache worst|tear ~10',
    'headache sudden severe !mild ~10',
    'head tear ~8',
    'head pain worst ~8',
    'headache severe vomit|stiff|confuse|vision_lost|faint ~18',
  ],
  source: { title: 'NHS: Subarachnoid haemorrhage', url: 'https://www.nhs.uk/conditions/subarachnoid-haemorrhage/' },
  examples: {
    positive: [
      'This is the worst headache of my life, it came within seconds',
      'Plötzlich heftigste, schlimmste Kopfschmerzen meines Lebens',
      'le pire mal de tête de ma vie',
      'es el peor dolor de cabeza de mi vida',
      'È il peggior mal di testa della mia vita',
    ],
    negative: [
      'Headache after a long day at the screen.',
      'My headache isn’t sudden and isn’t severe, just the usual tension.',
    ],
    boundary: [['My boss gives me a headache.', false]],
  },
};

export const UNCONSCIOUS_OR_FIT: Rule = {
  id: 'unconscious_or_fit',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Unconsciousness or a fit',
    de: 'Bewusstlosigkeit oder Krampfanfall',
    fr: 'Perte de connaissance ou convulsions',
    es: 'Pérdida de conciencia o convulsiones',
    it: 'Perdita di coscienza o convulsioni',
  },
  when: ['unconscious', 'faint', '-wake', '-respond', 'seizure'],
  source: {
    title: 'NHS: What to do if someone has a seizure (fit)',
    url: 'https://www.nhs.uk/conditions/what-to-do-if-someone-has-a-seizure-fit/',
  },
  examples: {
    positive: [
      'He collapsed and is unresponsive',
      'Meine Tochter hatte gerade einen Krampfanfall',
      'il ne se réveille pas',
      'Mi hermano está convulsionando.',
      'Mia nonna è svenuta.',
    ],
    negative: [
      'has not had any seizures',
      'sans perte de connaissance ni convulsions',
      'I used to have seizures, I’ve been seizure-free since 2011.',
    ],
    boundary: [
      ['Why do some people faint when they see blood?', false],
      ['She won’t wake up.', true],
    ],
  },
};

export const MENINGITIS: Rule = {
  id: 'meningitis',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Fever or headache with a stiff neck, or a rash that does not fade',
    de: 'Fieber oder Kopfschmerz mit steifem Nacken, oder Ausschlag, der nicht verblasst',
    fr: 'Fièvre ou mal de tête avec nuque raide, ou éruption qui ne s’efface pas',
    es: 'Fiebre o dolor de cabeza con rigidez de nuca, o sarpullido que no desaparece',
    it: 'Febbre o mal di testa con collo rigido, o macchie che non spariscono',
  },
  when: [
    'neck stiff fever|headache|light_hurts|rash|vomit|confuse ~25',
    'neck -bend|bend fever|headache|light_hurts|vomit|severe ~25',
    'neck pain fever vomit|light_hurts|confuse|sleepy ~25',
    'fever light_hurts headache|severe|neck|-stand ~20',
    'rash -fade',
    'glass_test fever|child|sleepy|limp|rash|confuse ~25',
    'meningitis sleepy|fever|severe|sudden ~15',
    'rash fever sleepy|limp|confuse|stiff|blue ~18',
  ],
  source: { title: 'NHS: Meningitis', url: 'https://www.nhs.uk/conditions/meningitis/' },
  examples: {
    positive: [
      'fever and a stiff neck',
      'Fieber und mein Nacken ist ganz steif',
      'raideur de la nuque et fièvre',
      'Tiene fiebre y el cuello rígido.',
      'Ha la febbre e il collo rigido.',
    ],
    negative: ['Fever for two days without a stiff neck.', 'How is meningitis transmitted?'],
    boundary: [
      ['My shoulder is stiff in the morning.', false],
      ['The rash does not fade when I press a glass on it.', true],
    ],
  },
};

export const CAUDA_EQUINA: Rule = {
  id: 'cauda_equina',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Back pain with numbness around the saddle or loss of bladder or bowel control',
    de: 'Rückenschmerz mit Taubheit im Reithosenbereich oder Verlust der Blasen- oder Darmkontrolle',
    fr: 'Mal de dos avec engourdissement en selle ou perte du contrôle de la vessie ou des selles',
    es: 'Dolor de espalda con adormecimiento en silla de montar o pérdida del control de esfínteres',
    it: 'Mal di schiena con intorpidimento a sella o perdita del controllo della vescica o dell’intestino',
  },
  when: [
    'back pain control_lost|-pee ~30',
    'back numb groin ~25',
    'control_lost leg numb|weak ~25',
    'leg numb -pee|control_lost ~25',
  ],
  source: {
    title: 'NICE CKS: Sciatica (lumbar radiculopathy), red flags',
    url: 'https://cks.nice.org.uk/topics/sciatica-lumbar-radiculopathy/',
  },
  examples: {
    positive: [
      'back pain and I lost control of my bladder',
      'Rückenschmerzen und ich bin taub im Schritt.',
      'Mal de dos et je n’arrive plus à uriner.',
      'Dolor de espalda y no puedo orinar.',
      'Mal di schiena e non riesco a urinare.',
    ],
    negative: ['My back pain is better since I walk more.'],
    boundary: [['Lower back pain and I’m numb between my legs, I can’t pee', true]],
  },
};

export const HEAD_INJURY: Rule = {
  id: 'head_injury',
  version: 2,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Head injury with danger signs',
    de: 'Kopfverletzung mit Warnzeichen',
    fr: 'Traumatisme crânien avec signes de danger',
    es: 'Golpe en la cabeza con señales de peligro',
    it: 'Trauma cranico con segni di pericolo',
  },
  when: [
    'head_injury head_danger|vomit|sleepy|unconscious|confuse|thinner|faint|dizzy|slur|double_vision ~*',
    'head wound head_danger|confuse|severe ~25',
    'fall thinner head|headache|severe ~30',
    'head hit|fall head_danger|vomit|sleepy|unconscious|confuse|thinner|faint ~30',
    'head_injury severe|bleed|blood ~12',
    'fall sleepy vomit ~15',
  ],
  source: {
    title: 'NHS: Head injury and concussion; NICE NG232',
    url: 'https://www.nhs.uk/conditions/head-injury-and-concussion/',
  },
  examples: {
    positive: [
      'She fell and hit her head and has been vomiting since',
      'Sturz auf den Kopf, jetzt erbricht er.',
      'Il s’est cogné la tête et il vomit.',
      'Se ha golpeado la cabeza y vomita.',
      'Ha battuto la testa e vomita.',
    ],
    negative: [
      'I bumped my head lightly on a shelf, no vomiting, no confusion.',
      'He bumped his knee, not his head, and is running around again.',
    ],
    boundary: [
      ['Gran bumped her head and is on warfarin.', true],
      ['Since the fall she only sleeps and throws up.', true],
    ],
  },
};
