import type { Rule } from './rule.ts';

export const MAJOR_TRAUMA: Rule = {
  id: 'major_trauma',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Serious injury',
    de: 'Schwere Verletzung',
    fr: 'Blessure grave',
    es: 'Lesión grave',
    it: 'Lesione grave',
  },
  when: [
    'crash -feel|neck|back|numb|unconscious|-respond|-move|leg|bleed|chest|belly|severe|paralysed|head_danger ~25',
    'hit_by',
    'fall height back|neck|numb|leg|unconscious|-speak|-move|head|severe|-respond|blood ~28',
    'stab',
    'crushed',
    'bone_out',
    '-feel leg|arm ~6',
    'leg paralysed|-move fall|crash|neck|back|dive ~25',
    'neck broken|pain|tear|dive -move|numb|paralysed ~20',
    'fall -move|-stand severe|pain|pale|bone_out ~20',
    'bitten',
    'fall height #3..100 ~12',
    'numb leg|arm fall|crash|back|neck|height ~25',
    'road_user lie_still|-respond|unconscious ~20',
    'explosion pain|burn|face|eye|arm ~20',
  ],
  source: { title: 'NICE NG39: Major trauma; NHS: First aid', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'I was in a car crash and can’t feel my legs.',
      'Nach dem Autounfall spüre ich meine Beine nicht.',
      'Après l’accident de voiture je ne sens plus mes jambes.',
      'Choqué con el coche y no siento las piernas.',
      'Dopo l’incidente non sento le gambe.',
    ],
    negative: ['Do you have any tips for preventing falls at home for older people?'],
    boundary: [
      ['He fell off the third floor and does not speak.', true],
      ['I have a small bruise on my shin from bumping into the table.', false],
    ],
  },
};

export const SEVERE_BLEEDING: Rule = {
  id: 'severe_bleeding',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Severe bleeding, or blood in vomit or black stools',
    de: 'Starke Blutung, Bluterbrechen oder schwarzer Stuhl',
    fr: 'Saignement grave, vomissement de sang ou selles noires',
    es: 'Hemorragia grave, vómito con sangre o heces negras',
    it: 'Emorragia grave, vomito con sangue o feci nere',
  },
  when: [
    'bleed|blood severe|-stop !mild !stopped_bleeding ~10',
    'vomit_blood',
    'black_stool',
    'blood bottom severe|pale|dizzy|faint|sudden ~14',
    'blood mouth operation|sudden|severe ~15',
    'thinner bleed|blood|nose -stop|severe|hit|wound ~22',
    'bleed #2..20 towels ~14',
    'towels severe ~8',
    'nose blood|bleed -stop|thinner|severe ~15',
    'bleed operation -stop|severe|sudden|now ~14',
    'spurt',
    'bleed faint|near_faint|pale ~15',
    'wound -stop|severe !mild ~8',
    'towels wound ~15',
  ],
  source: {
    title: 'NHS: Vomiting blood; NHS: First aid, heavy bleeding',
    url: 'https://www.nhs.uk/conditions/vomiting-blood/',
  },
  examples: {
    positive: [
      'The cut is bleeding heavily and won’t stop',
      'Er erbricht Blut',
      'je vomis du sang',
      'vomito sangre',
      'La ferita sanguina molto e non si ferma.',
    ],
    negative: [
      'My nose bled for a minute this morning and stopped.',
      'There is no blood in my stool, it’s just a little soft.',
      'My gums bleed a little when I floss.',
    ],
    boundary: [
      ['The bleeding has stopped and the doctor says everything is fine.', false],
      ['my stool is black and tarry', true],
    ],
  },
};

export const AMPUTATION: Rule = {
  id: 'amputation',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'A finger or limb cut off',
    de: 'Abgetrennter Finger oder Gliedmaße',
    fr: 'Doigt ou membre sectionné',
    es: 'Dedo o miembro amputado',
    it: 'Dito o arto amputato',
  },
  when: ['amputate', 'cut_off arm|leg ~6'],
  source: { title: 'NHS: First aid, amputations', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'He chopped his finger off.',
      'Der Finger ist ab.',
      'Doigt sectionné avec la scie.',
      'Se ha amputado un dedo con la sierra.',
      'Si è tranciato un dito.',
    ],
    negative: ['I cut my finger nail too short.'],
    boundary: [['He has had his hand in the circular saw.', true]],
  },
};

export const BURNS: Rule = {
  id: 'burns',
  version: 2,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Serious burn or scald',
    de: 'Schwere Verbrennung oder Verbrühung',
    fr: 'Brûlure grave',
    es: 'Quemadura grave',
    it: 'Ustione grave',
  },
  when: [
    'burn burn_big|severe|chemical|child|face !mild !sunburn ~18',
    'boiling burn_big|child|face|neck|chest|arm !mild ~18',
    'boiling spilled ~6',
  ],
  source: { title: 'NHS: Burns and scalds', url: 'https://www.nhs.uk/conditions/burns-and-scalds/' },
  examples: {
    positive: [
      'Boiling water all over my face.',
      'Kochendes Wasser über den ganzen Arm, alles voller Blasen.',
      'De l’huile bouillante sur le visage.',
      'Se quemó la cara con aceite hirviendo.',
      'Si è ustionato la faccia con l’acqua bollente.',
    ],
    negative: ['I burned my tongue a little on the coffee.'],
    boundary: [
      ['My toddler pulled the hot tea over himself.', true],
      ['Me quemé la punta del dedo con una sartén, está un poco rojo.', false],
    ],
  },
};

export const ELECTRIC_SHOCK: Rule = {
  id: 'electric_shock',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Electric shock with danger signs, or lightning',
    de: 'Stromschlag mit Warnzeichen oder Blitzschlag',
    fr: 'Électrocution avec signes de danger, ou foudre',
    es: 'Descarga eléctrica con señales de peligro, o rayo',
    it: 'Folgorazione con segni di pericolo, o fulmine',
  },
  when: [
    'electric faint|unconscious|pain|chest|heart|irregular|racing|lie_still|-move|-respond|-let_go|stuck|burn|numb|dizzy|severe|-stand ~28',
    'lightning',
  ],
  source: { title: 'NHS: First aid, electrocution', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'I touched a live wire and my heart is stumbling.',
      'Stromschlag, seitdem stolpert mein Herz.',
      'Il s’est électrocuté et il est inconscient.',
      'Le dio una descarga eléctrica y se desmayó.',
      'Ha preso la scossa e non risponde.',
    ],
    negative: ['I bought an electric bike.'],
    boundary: [['He was struck by lightning.', true]],
  },
};

export const EYE_INJURY: Rule = {
  id: 'eye_injury',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Dangerous injury of an eye, or something stuck in the body',
    de: 'Gefährliche Verletzung eines Auges oder Fremdkörper',
    fr: 'Blessure dangereuse d’un œil, ou corps étranger',
    es: 'Lesión peligrosa de un ojo, o cuerpo extraño',
    it: 'Lesione pericolosa a un occhio, o corpo estraneo',
  },
  when: [
    'chemical eye_injury|eye ~12',
    'eye_injury pain|-see|vision_lost|blood|burn|stuck|sharp ~18',
    'sharp eye_injury|eye ~10',
    'sharp stuck face|throat|chest|belly|head|neck ~10',
    'eye -see|vision_lost chemical|burn|hit|sharp ~18',
  ],
  source: { title: 'NHS: Eye injuries', url: 'https://www.nhs.uk/conditions/eye-injuries/' },
  examples: {
    positive: [
      'Bleach splashed into my eye.',
      'Mir ist Kalk in die Augen gespritzt.',
      'De la javel dans l’œil.',
      'Me ha salpicado lejía en el ojo.',
      'Mi è schizzata la candeggina nell’occhio.',
    ],
    negative: ['My eyes are dry from the screen.'],
    boundary: [['A nail went into his eye.', true]],
  },
};

export const HEAT_STROKE: Rule = {
  id: 'heat_stroke',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: { en: 'Heatstroke', de: 'Hitzschlag', fr: 'Coup de chaleur', es: 'Golpe de calor', it: 'Colpo di calore' },
  when: [
    'heatstroke confuse|faint|hot|nonsense|unconscious|-respond|vomit|sleepy|limp ~25',
    'heat hot|fever confuse|nonsense|limp|faint|unconscious|-respond|sleepy|slur|hallucinate|dizzy ~28',
    'heat faint|confuse|nonsense|hallucinate|limp ~20',
    'hot_car child|limp|sleepy|-respond|hot ~20',
    'heat #40..43 ~20',
    'hot|fever|hot_body confuse|hallucinate|nonsense ~15',
    'heatstroke !topic',
  ],
  source: {
    title: 'NHS: Heat exhaustion and heatstroke',
    url: 'https://www.nhs.uk/conditions/heat-exhaustion-heatstroke/',
  },
  examples: {
    positive: [
      'I was in the sun all day, my skin is hot and I’m confused.',
      'Er war in der Sonne, ist glühend heiß und redet wirr.',
      'Il était en plein soleil, il est brûlant et confus.',
      'Ha estado al sol, está ardiendo y desvaría.',
      'È stato al sole, scotta ed è confuso.',
    ],
    negative: ['What is the difference between heatstroke and heat exhaustion?'],
    boundary: [['My child was in the hot car and is limp.', true]],
  },
};

export const HYPOTHERMIA: Rule = {
  id: 'hypothermia',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: { en: 'Hypothermia', de: 'Unterkühlung', fr: 'Hypothermie', es: 'Hipotermia', it: 'Ipotermia' },
  when: [
    'hypothermia',
    'cold|snow -shiver|sleepy sleepy|slur|confuse|-move|-respond ~25',
    '-shiver sleepy|slur|cold|confuse|snow ~20',
    'snow sleepy|slur|confuse|-shiver|-respond|-wake|numb|-speak ~28',
  ],
  source: { title: 'NHS: Hypothermia', url: 'https://www.nhs.uk/conditions/hypothermia/' },
  examples: {
    positive: [
      'He was in the snow all night and has stopped shivering.',
      'Er lag im Schnee und zittert nicht mehr.',
      'Il ne tremble plus, il est gelé.',
      'Ya no tirita y está helado.',
      'Non trema più ed è gelato.',
    ],
    negative: ['I’m cold, which tea do you recommend?'],
    boundary: [['She fell through the ice and is sleepy.', true]],
  },
};
