import type { RedFlag } from './red-flag.ts';

/** Stroke, bleeding and infection of the brain, fits, injuries, nerves. */
export const BRAIN: readonly RedFlag[] = Object.freeze([
  {
    id: 'stroke',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Signs of a stroke (face, arm, speech)',
      de: 'Zeichen eines Schlaganfalls (Gesicht, Arm, Sprache)',
      fr: 'Signes d’un AVC (visage, bras, parole)',
      es: 'Signos de un ictus (cara, brazo, habla)',
    },
    all: [
      [
        /\b(?:face|mouth|smile|eyelid) (?:\w+ ){0,4}(?:droop\w*|hanging|lopsided|crooked|uneven)\b|\b(?:facial|face) droop\w*\b/,
        /\b(?:slurr(?:ed|ing)|garbled) (?:\w+ ){0,2}(?:speech|words|speaking)\b|\bspeech (?:\w+ ){0,3}(?:slurred|garbled)\b|\bslurring\b/,
        /\bsudden(?:ly)? (?:\w+ ){0,4}(?:can't|cannot|unable to) (?:speak|talk|see|move)\b/,
        /\b(?:sudden(?:ly)?|one[- ]sided|left[- ]sided|right[- ]sided) (?:\w+ ){0,3}(?:weak(?:ness)?|numb(?:ness)?|paraly[sz]\w*)\b/,
        /\b(?:weak(?:ness)?|numb(?:ness)?|paraly[sz]\w*) (?:\w+ ){0,3}(?:on )?(?:one|left|right) side\b|\b(?:left|right|one) side (?:of (?:my|his|her|the) (?:body|face) )?(?:\w+ ){0,2}(?:numb|weak|paraly[sz]\w*)\b|\bcan(?:'t|not) (?:lift|raise|move) (?:\w+ )?(?:one |left |right )?arm\b/,
        /\bhaving a (?:mini[- ])?stroke\b|\bsudden(?:ly)? (?:\w+ ){0,2}(?:loss of (?:vision|sight|speech)|lost (?:\w+ )?(?:vision|sight|speech))\b/,
        /\b(?:mund\w*|gesicht\w*) (?:\w+ ){0,4}hang(?:t|en|end\w*)\b|\bhangender mundwinkel\b|\bschlaganfall (?:habe|hat)\b|\b(?:habe|hat) (?:\w+ ){0,3}schlaganfall\b/,
        /\b(?:spricht|spreche|sprache|redet|rede) (?:\w+ ){0,4}(?:verwaschen|lallend|undeutlich)\b|\b(?:verwaschene|undeutliche) (?:aus)?sprache\b|\blall(?:t|e)\b/,
        /\b(?:halbseitig\w*|einseitig\w*|plotzlich\w*) (?:\w+ ){0,4}(?:gelahmt|lahmung\w*|taub\w*|schwach\w*|laehmung\w*)\b|\barm (?:\w+ ){0,3}(?:nicht (?:mehr )?(?:heben|bewegen)|gelahmt)\b|\bplotzlich (?:\w+ ){0,3}(?:nicht|kaum) (?:mehr )?(?:sprechen|reden|sehen|bewegen)\b|\b(?:linke|rechte) (?:korper)?(?:seite|halfte) (?:\w+ ){0,4}(?:taub|gelahmt|schwach)\b|\bplotzlich blind\b/,
        /\b(?:bouche|visage|sourire) (?:\w+ ){0,3}(?:tombe\w*|affaisse\w*|deforme\w*|de travers|paralyse\w*)\b|\bparalysie (?:faciale|d'un cote)\b/,
        /\b(?:parle|parler|parole|elocution) (?:\w+ ){0,4}(?:mal|difficile\w*|incomprehensible|trouble\w*|pateuse)\b.{0,40}\b(?:soudain\w*|d'un coup)\b|\b(?:soudain\w*|brusque\w*) (?:\w+ ){0,4}(?:faiblesse|engourdi\w*|paralys\w*|du mal a parler)\b/,
        /\b(?:fais|fait) un avc\b|\b(?:faiblesse|engourdissement|paralys\w*) (?:\w+ ){0,3}d'un (?:seul )?cote\b|\bne (?:peux|peut) plus (?:bouger|lever|parler)\b|\bperte (?:soudaine |brutale )?de (?:la )?(?:vision|vue|parole)\b/,
        /\b(?:cara|boca|sonrisa) (?:\w+ ){0,3}(?:caida|torcida|desviada)\b|\bse (?:me|le) (?:cae|cayo|tuerce|torcio) (?:un lado de )?la (?:cara|boca)\b|\bno (?:puedo|puede) mover (?:el|su|la|una?) (?:brazo|pierna|lado)\b|\bperdida (?:repentina |subita )?de (?:la )?(?:vision|habla)\b/,
        /\b(?:habla|hablo|hablar) (?:\w+ ){0,3}(?:arrastrad\w+|enredad\w+|confus\w+)\b|\b(?:debilidad|entumecimiento|paralisis) (?:\w+ ){0,3}(?:un|medio|lado) ?(?:lado|cuerpo)?\b|\b(?:teniendo|dando) un (?:ictus|derrame)\b/,
      ],
    ],
    source: { title: 'NHS: Stroke, symptoms', url: 'https://www.nhs.uk/conditions/stroke/symptoms/' },
  },
  {
    id: 'thunderclap_headache',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Sudden, worst-ever headache',
      de: 'Plötzlicher, nie gekannter Kopfschmerz',
      fr: 'Mal de tête soudain, le pire jamais ressenti',
      es: 'Dolor de cabeza repentino, el peor de la vida',
    },
    all: [
      [
        /\bworst (?:headache|pain in (?:my|the) head)\b|\bheadache\b.{0,40}\bworst (?:ever|of (?:my|his|her) life)\b|\bthunderclap\b|\bsudden(?:ly)? (?:\w+ ){0,3}(?:severe|explosive|intense|terrible) headache\b|\bheadache (?:\w+ ){0,4}(?:explod\w+|like a thunderclap|within seconds)\b/,
        /\b(?:schlimmste|starkste)n? kopfschmerz\w*\b|\bvernichtungskopfschmerz\w*\b|\bplotzlich\w* (?:\w+ ){0,3}(?:heftig\w*|stark\w*|extrem\w*) kopfschmerz\w*\b/,
        /\bpire (?:mal de tete|mal de crane|cephalee)\b|\bmal de tete (?:\w+ ){0,3}(?:soudain|brutal|foudroyant)\b|\bcephalee en coup de tonnerre\b/,
        /\bpeor dolor de cabeza\b|\bdolor de cabeza (?:\w+ ){0,3}(?:repentino|subito|explosivo)\b|\bcefalea en trueno\b/,
      ],
    ],
    source: { title: 'NHS: Subarachnoid haemorrhage', url: 'https://www.nhs.uk/conditions/subarachnoid-haemorrhage/' },
  },
  {
    id: 'meningitis',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Fever or headache with a stiff neck, or a rash that does not fade',
      de: 'Fieber oder Kopfschmerz mit steifem Nacken, oder Ausschlag, der nicht verblasst',
      fr: 'Fièvre ou mal de tête avec nuque raide, ou éruption qui ne s’efface pas',
      es: 'Fiebre o dolor de cabeza con rigidez de nuca, o sarpullido que no desaparece',
    },
    all: [
      [
        /\bstiff neck\b|\bneck (?:\w+ ){0,2}(?:stiff|stiffness|rigid)\b|\brash (?:\w+ ){0,5}(?:not|n't) (?:fade|blanch|disappear)\b/,
        /\b(?:steife[rn]?|starre[rn]?) (?:nacken|hals)\b|\bnacken(?:steif\w*| (?:\w+ ){0,2}steif)\b|\bausschlag (?:\w+ ){0,5}nicht (?:verblasst|weggeht|wegdrucken)\b/,
        /\b(?:nuque|cou) (?:\w+ ){0,2}raide\b|\braideur (?:de la nuque|du cou)\b|\b(?:rougeurs?|taches?|eruption) (?:\w+ ){0,4}ne (?:s'efface|disparait)\w* pas\b/,
        /\b(?:cuello|nuca) (?:\w+ ){0,2}rigid\w+\b|\brigidez (?:de|en) (?:la |el )?(?:nuca|cuello)\b|\b(?:sarpullido|manchas) (?:\w+ ){0,4}no (?:desaparece|se quita)\w*\b/,
      ],
      [
        /\bfever\w*\b|\bheadache\b|\bfieber\w*\b|\bkopf(?:schmerz\w*|weh)\b|\bfievre\b|\bmal (?:de|a la) tete\b|\bfiebre\b|\bdolor de cabeza\b|\bhigh temperature\b|\blight hurts\b|\brash\b/,
      ],
    ],
    source: { title: 'NHS: Meningitis', url: 'https://www.nhs.uk/conditions/meningitis/' },
  },
  {
    id: 'unconscious_or_fit',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Unconsciousness or a fit',
      de: 'Bewusstlosigkeit oder Krampfanfall',
      fr: 'Perte de connaissance ou convulsions',
      es: 'Pérdida de conciencia o convulsiones',
    },
    all: [
      [
        /\bunconscious\b|\bunresponsive\b|\b(?:won't|doesn't|can't|cannot|not) wake up\b|\b(?:not|isn't) waking up\b|\bpassed out\b|\bcollapsed\b|\b(?:having|had) (?:a )?(?:seizure|fit|convulsions?)\b|\bconvulsing\b/,
        /\b(?:bewusstlos|ohnmachtig|nicht ansprechbar|nicht bei bewusstsein)\b|\bwacht nicht (?:mehr )?auf\b|\b(?:krampfanfall|krampft)\b|\bzusammengebrochen\b/,
        /\binconscient\w*\b|\bperdu connaissance\b|\bne (?:se )?reveille pas\b|\bconvuls\w+\b|\bs'est (?:evanoui\w*|effondre\w*)\b/,
        /\binconsciente\b|\bperdi\w* el conocimiento\b|\bno (?:se )?despierta\b|\bconvulsion\w*\b|\bse desmayo\b/,
      ],
    ],
    source: {
      title: 'NHS: What to do if someone has a seizure (fit)',
      url: 'https://www.nhs.uk/conditions/what-to-do-if-someone-has-a-seizure-fit/',
    },
  },
  {
    id: 'head_injury',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Head injury with danger signs',
      de: 'Kopfverletzung mit Warnzeichen',
      fr: 'Traumatisme crânien avec signes de danger',
      es: 'Golpe en la cabeza con señales de peligro',
    },
    all: [
      [
        /\b(?:hit|banged|bumped|injur\w+|knocked|blow to|fell on) (?:\w+ ){0,3}head\b|\bhead injury\b|\bconcussion\b/,
        /\bkopf (?:\w+ ){0,3}(?:gestossen|gefallen|angeschlagen|aufgeschlagen)\b|\b(?:kopfverletzung|gehirnerschutterung|sturz auf den kopf)\b/,
        /\b(?:coup|choc|chute) (?:\w+ ){0,3}(?:a|sur) la tete\b|\btraumatisme cranien\b|\bgolpe (?:\w+ ){0,3}(?:en )?la cabeza\b|\bgolpeado la cabeza\b/,
      ],
      [
        /\bvomit\w*\b|\bthrowing up\b|\bconfus\w+\b(?! (?:about|by))|\bdrows\w+\b|\bblood thinner\w*\b|\bfluid from\b|\bblood from (?:\w+ )?(?:ear|nose)\b|\bdouble vision\b|\bmemory loss\b|\bcan't remember\b/,
        /\berbr(?:icht|ochen|echen)\b|\bverwirrt\b|\bschlafrig\b|\bblutverdunner\b|\bblut aus (?:der nase|dem ohr)\b|\berinner\w* (?:\w+ ){0,2}nicht\b/,
        /\bvomi\w*\b|\bconfus\w*\b|\bsomnolen\w*\b|\banticoagulant\w*\b|\banticoagulante\w*\b|\bsomnolient\w*\b/,
      ],
    ],
    source: {
      title: 'NHS: Head injury and concussion',
      url: 'https://www.nhs.uk/conditions/head-injury-and-concussion/',
    },
  },
  {
    id: 'cauda_equina',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Back pain with numbness around the saddle or loss of bladder or bowel control',
      de: 'Rückenschmerz mit Taubheit im Reithosenbereich oder Verlust der Blasen- oder Darmkontrolle',
      fr: 'Mal de dos avec engourdissement en selle ou perte du contrôle de la vessie ou des selles',
      es: 'Dolor de espalda con adormecimiento en silla de montar o pérdida del control de esfínteres',
    },
    all: [
      [
        /\bback(?:ache| pain| hurts)\b|\bpain in my back\b|\bsciatica\b|\bruckenschmerz\w*\b|\bischias\b|\bmal (?:de|au) dos\b|\bsciatique\b|\bdolor de espalda\b|\bciatica\b/,
      ],
      [
        /\bnumb\w* (?:\w+ ){0,5}(?:genitals?|groin|saddle|buttocks|between (?:my|the) legs|private parts)\b|\b(?:can't|cannot|unable to) (?:pee|urinate|control (?:my )?(?:bladder|bowels?))\b|\b(?:lost|losing|loss of) (?:\w+ ){0,2}(?:bladder|bowel) control\b|\b(?:lost|losing|loss of) control of (?:my |his |her |the )?(?:bladder|bowels?)\b|\bincontinen\w+\b/,
        /\btaub\w* (?:\w+ ){0,5}(?:genital\w*|schritt|gesass|reithose\w*|damm)\b|\b(?:blase|darm|stuhl|urin) (?:\w+ ){0,3}nicht (?:mehr )?(?:kontrollieren|halten|entleeren)\b|\bkann nicht (?:mehr )?(?:urinieren|pinkeln|wasser lassen)\b|\binkontinen\w*\b/,
        /\bengourdi\w* (?:\w+ ){0,5}(?:entrejambe|perinee|fesses|parties genitales)\b|\bne (?:peux|peut|controle) (?:\w+ ){0,3}(?:uriner|vessie|selles)\b|\bperte de controle (?:\w+ ){0,3}(?:vessie|selles)\b/,
        /\badormec\w* (?:\w+ ){0,5}(?:genital\w*|ingle|entrepierna|gluteos)\b|\bno (?:puedo|puede|controla|controlo) (?:\w+ ){0,2}(?:orinar|la orina|la vejiga|las heces|esfinteres)\b/,
      ],
    ],
    source: {
      title: 'NICE CKS: Sciatica (lumbar radiculopathy), red flags',
      url: 'https://cks.nice.org.uk/topics/sciatica-lumbar-radiculopathy/',
    },
  },
]);
