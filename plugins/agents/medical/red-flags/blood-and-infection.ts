import type { RedFlag } from './red-flag.ts';

/** Bleeding, sepsis, derailed diabetes, torsion. */
export const BLOOD_AND_INFECTION: readonly RedFlag[] = Object.freeze([
  {
    id: 'severe_bleeding',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Severe bleeding, or blood in vomit or black stools',
      de: 'Starke Blutung, Bluterbrechen oder schwarzer Stuhl',
      fr: 'Saignement grave, vomissement de sang ou selles noires',
      es: 'Hemorragia grave, vómito con sangre o heces negras',
    },
    all: [
      [
        /\bbleeding (?:\w+ ){0,3}(?:heavily|badly|severely|a lot|won't stop|not stop\w*|doesn't stop|can't stop)\b|\b(?:heavy|severe|massive|uncontroll\w+) bleeding\b|\b(?:can't|cannot) stop the bleeding\b|\bblood (?:is )?(?:spurting|gushing|pouring)\b/,
        /\b(?:vomit\w*|throwing up|threw up|cough\w*(?: up)?) (?:\w+ ){0,2}blood\b|\bblood in (?:my|his|her|the) vomit\b|\b(?:black|tarry) (?:\w+ )?(?:stools?|poo|poop)\b|\b(?:stools?|poo|poop) (?:\w+ ){0,3}(?:black|tarry)\b/,
        /\bblut(?:et|ung) (?:\w+ ){0,4}(?:stark|nicht (?:auf|stillen|zu stillen)|heftig)\b|\b(?:starke|schwere|heftige) blutung\b|\b(?:erbreche|erbricht|huste|hustet|spucke|spuckt) (?:\w+ )?blut\b|\bbluterbrechen\b|\bteerstuhl\b|\bschwarzer stuhl\b/,
        /\bsaigne (?:\w+ ){0,3}(?:beaucoup|abondamment|sans arret)\b|\b(?:hemorragie|saignement (?:abondant|grave))\b|\b(?:vomi\w*|crache\w*|tousse\w*) (?:\w+ ){0,2}sang\b|\bselles noires\b/,
        /\bsangr\w+ (?:\w+ ){0,3}(?:mucho|abundante\w*|no para)\b|\bhemorragia (?:\w+ )?(?:grave|abundante|fuerte)\b|\b(?:vomit\w+|escup\w+|tos\w*) (?:\w+ ){0,2}sangre\b|\bheces negras\b/,
      ],
    ],
    source: { title: 'NHS: Vomiting blood', url: 'https://www.nhs.uk/conditions/vomiting-blood/' },
  },
  {
    id: 'sepsis',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Signs of sepsis: infection or fever with confusion, mottled skin or very fast breathing',
      de: 'Zeichen einer Sepsis: Infekt oder Fieber mit Verwirrtheit, fleckiger Haut oder sehr schneller Atmung',
      fr: 'Signes de septicémie : infection ou fièvre avec confusion, peau marbrée ou respiration très rapide',
      es: 'Signos de sepsis: infección o fiebre con confusión, piel moteada o respiración muy rápida',
    },
    all: [
      [
        /\bfever\w*\b|\binfect\w+\b|\bhigh temperature\b|\bfieber\w*\b|\binfekt\w*\b|\bfievre\b|\binfection\b|\bfiebre\b|\binfeccion\b/,
      ],
      [
        /\bconfus\w+\b(?! (?:about|by))|\bdisoriented\b|\b(?:mottled|blotchy|bluish|pale) skin\b|\bskin (?:\w+ ){0,3}(?:mottled|blue|blotchy)\b|\bbreathing (?:\w+ ){0,2}(?:very )?(?:fast|rapidly)\b|\bnot (?:pe?ed|urinated) (?:\w+ ){0,3}(?:day|hours)\b/,
        /\bverwirrt\w*\b|\bdesorientiert\b|\b(?:fleckige|marmorierte|blaue) haut\b|\bhaut (?:\w+ ){0,3}(?:fleckig|marmoriert)\b|\batmet (?:\w+ ){0,2}(?:sehr )?schnell\b|\bschuttelfrost (?:\w+ ){0,4}verwirrt\b/,
        /\bdesoriente\w*\b|\bconfuse\b|\bpeau (?:\w+ ){0,2}marbree\b|\brespire (?:\w+ ){0,2}(?:tres )?vite\b|\bdesorientad\w+\b|\bconfundid\w+\b|\bpiel (?:\w+ ){0,2}(?:moteada|azulada)\b|\brespira (?:\w+ ){0,2}(?:muy )?rapido\b/,
      ],
    ],
    source: { title: 'NHS: Sepsis', url: 'https://www.nhs.uk/conditions/sepsis/' },
  },
  {
    id: 'diabetic_ketoacidosis',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Diabetes with vomiting, fruity breath or confusion',
      de: 'Diabetes mit Erbrechen, Azetongeruch oder Verwirrtheit',
      fr: 'Diabète avec vomissements, haleine fruitée ou confusion',
      es: 'Diabetes con vómitos, aliento afrutado o confusión',
    },
    all: [
      [/\bdiabet\w+\b|\bblood sugar\b|\bblutzucker\b|\bglycemie\b|\bglucosa\b|\bglucemia\b/],
      [
        /\bfruity (?:\w+ )?breath\b|\bbreath (?:\w+ ){0,3}(?:fruity|acetone|pear drops)\b|\bhigh ketones\b|\bketoacidosis\b|\bvomit\w*\b|\bthrowing up\b|\bdeep(?:ly)? breathing\b|\bconfus\w+\b(?! (?:about|by))/,
        /\bazeton\w*\b|\bketoazidose\b|\bketone (?:\w+ )?hoch\b|\berbr(?:icht|eche|echen|ochen)\b|\bverwirrt\b|\bhaleine (?:\w+ )?(?:fruitee|acetone)\b|\bacidocetose\b|\bvomi\w*\b|\baliento (?:\w+ ){0,2}(?:frutal|afrutado|acetona)\b|\bcetoacidosis\b/,
      ],
    ],
    source: {
      title: 'NHS: Diabetic ketoacidosis',
      url: 'https://www.nhs.uk/conditions/diabetic-ketoacidosis/',
    },
  },
  {
    id: 'testicular_torsion',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Sudden severe pain in a testicle',
      de: 'Plötzlicher starker Hodenschmerz',
      fr: 'Douleur testiculaire soudaine et intense',
      es: 'Dolor testicular repentino e intenso',
    },
    all: [
      [
        /\b(?:sudden(?:ly)?|severe|intense|excruciating) (?:\w+ ){0,4}(?:testic\w+|ball|balls|scrotum)\b|\b(?:testic\w+|scrotum) (?:\w+ ){0,5}(?:sudden(?:ly)?|severe|excruciating|twisted)\b/,
        /\b(?:plotzlich\w*|stark\w*|heftig\w*) (?:\w+ ){0,4}hoden\w*\b|\bhoden\w* (?:\w+ ){0,4}(?:plotzlich\w*|stark\w*|heftig\w*)\b/,
        /\b(?:soudain\w*|forte|intense|brutal\w*) (?:\w+ ){0,4}testicul\w+\b|\btesticul\w+ (?:\w+ ){0,4}(?:soudain\w*|forte|intense|brutal\w*)\b/,
        /\b(?:repentino|fuerte|intenso|subito) (?:\w+ ){0,4}testicul\w+\b|\btesticul\w+ (?:\w+ ){0,4}(?:repentino|fuerte|intenso|subito)\b/,
      ],
    ],
    source: {
      title: 'NHS: Testicle pain',
      url: 'https://www.nhs.uk/symptoms/testicle-pain/',
    },
  },
]);
