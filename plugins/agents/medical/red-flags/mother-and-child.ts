import type { RedFlag } from './red-flag.ts';

const PREGNANT = [
  /\bpregnan(?:t|cy)\b|\b\d{1,2} weeks pregnant\b|\bexpecting a baby\b|\bschwanger\w*\b|\bssw\b|\benceinte\b|\bgrossesse\b|\bembaraza\w*\b/,
] as const;

const FEVER = [
  /\bfever\w*\b|\bhigh temperature\b|\btemperature (?:of|is|over|above) (?:3[89]|4[0-2]|10[0-5])\b|\b(?:3[89]|4[01])(?:[.,]\d)? ?(?:°|degrees?|grad|c\b)|\bfieber\w*\b|\bfievre\b|\bfiebre\b/,
] as const;

/** Pregnancy and newborns. */
export const MOTHER_AND_CHILD: readonly RedFlag[] = Object.freeze([
  {
    id: 'infant_fever',
    urgency: 'emergency',
    kind: 'emergency',
    patient: 'infant',
    sign: {
      en: 'Fever in a baby under three months',
      de: 'Fieber bei einem Säugling unter drei Monaten',
      fr: 'Fièvre chez un nourrisson de moins de trois mois',
      es: 'Fiebre en un bebé menor de tres meses',
    },
    all: [
      [
        /\bnewborn\b|\b(?:[1-9]|1[0-2]|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)[- ](?:day|week)s?[- ]old\b|\b(?:1|2|one|two)[- ]months?[- ]old\b|\bbaby (?:\w+ ){0,2}(?:[1-9]|1[0-2]) weeks?\b/,
        /\bneugeborene\w*\b|\b(?:[1-9]|1[0-2]|ein|eine|zwei|drei|vier|funf|sechs|sieben|acht|neun|zehn|elf|zwolf) (?:tage?|wochen?) alt\w*\b|\b(?:1|2|ein|einen|zwei) monate? alt\w*\b/,
        /\bnouveau[- ]ne\b|\b(?:[1-9]|1[0-2]|un|une|deux|trois|quatre|cinq|six) (?:jours?|semaines?)\b(?=.{0,40}\b(?:bebe|fils|fille|nourrisson)\b)|\b(?:bebe|fils|fille|nourrisson) (?:\w+ ){0,3}(?:[1-9]|1[0-2]|un|une|deux|trois|quatre|cinq|six) (?:jours?|semaines?)\b|\b(?:bebe|fils|fille|nourrisson) (?:\w+ ){0,3}(?:1|2|un|deux) mois\b/,
        /\brecien nacid\w+\b|\b(?:bebe|hijo|hija) (?:\w+ ){0,3}(?:[1-9]|1[0-2]|un|una|dos|tres|cuatro|cinco|seis) (?:dias?|semanas?)\b|\b(?:bebe|hijo|hija) (?:\w+ ){0,3}(?:1|2|un|dos) mes(?:es)?\b/,
      ],
      FEVER,
    ],
    source: {
      title: 'NHS: High temperature (fever) in children',
      url: 'https://www.nhs.uk/conditions/fever-in-children/',
    },
  },
  {
    id: 'pregnancy_bleeding',
    urgency: 'emergency',
    kind: 'emergency',
    patient: 'pregnant',
    sign: {
      en: 'Bleeding or severe pain in pregnancy',
      de: 'Blutung oder starker Schmerz in der Schwangerschaft',
      fr: 'Saignement ou douleur intense pendant la grossesse',
      es: 'Sangrado o dolor intenso en el embarazo',
    },
    all: [
      PREGNANT,
      [
        /\bbleed(?:ing|s)?\b|\bspotting\b|\bwaters? (?:\w+ )?broke\b|\b(?:baby|fetus) (?:\w+ ){0,3}(?:not moving|stopped moving|moving less)\b|\bsevere (?:\w+ ){0,2}(?:pain|cramps)\b/,
        /\bblut(?:et|e|ung|en)\w*\b|\bfruchtwasser\b|\bfruchtblase\b|\bkind (?:\w+ ){0,3}(?:bewegt sich nicht|weniger)\b|\bstarke (?:\w+ )?(?:schmerzen|krampfe)\b/,
        /\bsaign\w+\b|\bpertes de sang\b|\bperdu les eaux\b|\bbebe ne bouge plus\b|\bfortes? douleurs?\b|\bsangr\w+\b|\brompi\w* aguas\b|\bbebe no se mueve\b|\bdolor (?:fuerte|intenso)\b/,
      ],
    ],
    source: {
      title: 'NHS: Vaginal bleeding in pregnancy',
      url: 'https://www.nhs.uk/pregnancy/related-conditions/common-symptoms/vaginal-bleeding/',
    },
  },
  {
    id: 'pre_eclampsia',
    urgency: 'emergency',
    kind: 'emergency',
    patient: 'pregnant',
    sign: {
      en: 'Severe headache, vision problems or swelling in pregnancy',
      de: 'Starker Kopfschmerz, Sehstörung oder Schwellung in der Schwangerschaft',
      fr: 'Mal de tête intense, troubles de la vue ou gonflement pendant la grossesse',
      es: 'Dolor de cabeza intenso, visión alterada o hinchazón en el embarazo',
    },
    all: [
      PREGNANT,
      [
        /\b(?:severe|bad|terrible) headache\b|\b(?:blurred|blurry|double) vision\b|\bflashing lights\b|\bseeing (?:spots|stars)\b|\bpain (?:\w+ ){0,3}(?:below|under) (?:my |the )?ribs\b|\b(?:face|hands) (?:\w+ ){0,3}(?:swollen|swelling)\b|\bsudden swelling\b/,
        /\b(?:starke|heftige) kopfschmerzen\b|\bsehstorung\w*\b|\b(?:flimmern|verschwommen)\b|\b(?:gesicht|hande) (?:\w+ ){0,3}geschwollen\b/,
        /\b(?:violent|fort|intense)\w* maux? de tete\b|\bmal de tete (?:violent|intense)\b|\bvision (?:trouble|floue)\b|\bdolor de cabeza (?:fuerte|intenso)\b|\bvision borrosa\b|\b(?:visage|mains) gonfle\w*\b|\b(?:cara|manos) hinchad\w+\b/,
      ],
    ],
    source: { title: 'NHS: Pre-eclampsia', url: 'https://www.nhs.uk/conditions/pre-eclampsia/' },
  },
]);
