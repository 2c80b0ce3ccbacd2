import { ACUTE_ABDOMEN } from './acute-abdomen.ts';
import { ANAPHYLAXIS } from './anaphylaxis.ts';
import { BREATHING } from './breathing.ts';
import { BURNS } from './burns.ts';
import { CARDIAC_ARREST } from './cardiac-arrest.ts';
import { CAUDA_EQUINA } from './cauda-equina.ts';
import { CHEST_PAIN } from './chest-pain.ts';
import { CHOKING } from './choking.ts';
import { DIABETIC_KETOACIDOSIS } from './diabetic-ketoacidosis.ts';
import { FETAL_MOVEMENT } from './fetal-movement.ts';
import { HEAD_INJURY } from './head-injury.ts';
import { HYPOGLYCAEMIA } from './hypoglycaemia.ts';
import { ILL_CHILD } from './ill-child.ts';
import { INFANT_FEVER } from './infant-fever.ts';
import { LABOUR } from './labour.ts';
import { MAJOR_TRAUMA } from './major-trauma.ts';
import { MENINGITIS } from './meningitis.ts';
import { OVERDOSE_OR_POISONING } from './overdose-or-poisoning.ts';
import { PREGNANCY_BLEEDING } from './pregnancy-bleeding.ts';
import type { Rule } from './rule.ts';
import { SEPSIS } from './sepsis.ts';
import { SEVERE_BLEEDING } from './severe-bleeding.ts';
import { STROKE } from './stroke.ts';
import { SUICIDAL_INTENT } from './suicidal-intent.ts';
import { THUNDERCLAP_HEADACHE } from './thunderclap-headache.ts';
import { TISSUE_INFECTION } from './tissue-infection.ts';
import { UNCONSCIOUS_OR_FIT } from './unconscious-or-fit.ts';

const PRE_ECLAMPSIA: Rule = {
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

const PALPITATIONS: Rule = {
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

const EYE_INJURY: Rule = {
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

const HEAT_STROKE: Rule = {
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

const TESTICULAR_TORSION: Rule = {
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

const ELECTRIC_SHOCK: Rule = {
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

const CARBON_MONOXIDE: Rule = {
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

const IMMUNOCOMPROMISED_FEVER: Rule = {
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

const BREATHLESSNESS: Rule = {
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

const AMPUTATION: Rule = {
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

const HYPOTHERMIA: Rule = {
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

const DROWNING: Rule = {
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

/** All rules, in the order in which they are reported: what threatens life fastest first. */
export const RULES: readonly Rule[] = Object.freeze([
  SUICIDAL_INTENT,
  OVERDOSE_OR_POISONING,
  CARBON_MONOXIDE,
  CARDIAC_ARREST,
  CHEST_PAIN,
  PALPITATIONS,
  BREATHING,
  BREATHLESSNESS,
  CHOKING,
  ANAPHYLAXIS,
  STROKE,
  THUNDERCLAP_HEADACHE,
  MENINGITIS,
  UNCONSCIOUS_OR_FIT,
  SEVERE_BLEEDING,
  AMPUTATION,
  SEPSIS,
  IMMUNOCOMPROMISED_FEVER,
  TISSUE_INFECTION,
  DIABETIC_KETOACIDOSIS,
  HYPOGLYCAEMIA,
  TESTICULAR_TORSION,
  ACUTE_ABDOMEN,
  INFANT_FEVER,
  ILL_CHILD,
  PREGNANCY_BLEEDING,
  PRE_ECLAMPSIA,
  FETAL_MOVEMENT,
  LABOUR,
  HEAD_INJURY,
  CAUDA_EQUINA,
  MAJOR_TRAUMA,
  BURNS,
  EYE_INJURY,
  HEAT_STROKE,
  HYPOTHERMIA,
  ELECTRIC_SHOCK,
  DROWNING,
]);
