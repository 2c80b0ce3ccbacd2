import type { RedFlag } from './red-flag.ts';

/** Heart, lungs, allergy. */
export const HEART_AND_BREATH: readonly RedFlag[] = Object.freeze([
  {
    id: 'chest_pain',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Chest pain or pressure',
      de: 'Schmerz oder Druck in der Brust',
      fr: 'Douleur ou oppression dans la poitrine',
      es: 'Dolor u opresión en el pecho',
    },
    all: [
      [
        /\bchest (?:pains?|pressure|tightness|discomfort|ache|hurts?|is tight|feels? (?:tight|heavy))\b/,
        /\b(?:pains?|pressure|tight(?:ness)?|heav(?:y|iness)|squeezing|crushing|burning)\b(?: \w+){0,3} (?:in|on|across|behind) (?:(?:my|his|her|the|their) )?(?:chest|breastbone)\b/,
        /\b(?:having|having another) (?:a )?heart attack\b/,
        /\bbrustschmerz(?:en)?\b|\bbrustenge\b/,
        /\b(?:schmerz(?:en)?|druck|enge(?:gefu?hl)?|stechen|brennen)\b(?: \w+){0,3} (?:in|auf|hinter) (?:der|meiner|dem|seiner|ihrer) (?:brust|brustbein|brustkorb)\b/,
        /\b(?:brust|brustkorb) (?:\w+ ){0,2}(?:tut weh|schmerzt|ist eng)\b/,
        /\b(?:habe|hat|bekomme|bekommt) (?:\w+ ){0,3}herzinfarkt\b/,
        /\bdouleurs? (?:\w+ ){0,3}(?:a|dans|de|au niveau de) (?:la |ma |sa )?poitrine\b|\bdouleurs? thoraciques?\b/,
        /\b(?:oppression|serrement|pression|poids) (?:\w+ ){0,2}(?:dans|sur|a) (?:la |ma |sa )?poitrine\b/,
        /\bmal (?:a|dans) la poitrine\b|\b(?:fais|fait) (?:une crise cardiaque|un infarctus)\b/,
        /\bdolor(?:es)? (?:\w+ ){0,3}(?:en|de) (?:el |mi |su )?pecho\b|\bdolor toracico\b/,
        /\b(?:presion|opresion|peso) (?:\w+ ){0,2}en (?:el |mi |su )?pecho\b|\bme duele (?:mucho )?el pecho\b/,
        /\b(?:teniendo|dando|tengo) un (?:infarto|ataque al corazon)\b/,
      ],
    ],
    source: { title: 'NHS: Chest pain', url: 'https://www.nhs.uk/conditions/chest-pain/' },
  },
  {
    id: 'breathing',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Severe difficulty breathing',
      de: 'Schwere Atemnot',
      fr: 'Difficulté respiratoire grave',
      es: 'Dificultad grave para respirar',
    },
    all: [
      [
        /\b(?:can't|cannot|can not|can hardly|can barely|struggling to|unable to|fighting to) (?:\w+ )?breathe?\b|\b(?:can't|cannot) catch (?:my|his|her) breath\b/,
        /\b(?:hardly|barely|not) (?:able to )?breath(?:e|ing)\b|\b(?:he|she|it|baby|who) stopped breathing\b/,
        /\b(?:severe|sudden|extreme) (?:shortness of breath|breathlessness|difficulty breathing|trouble breathing)\b/,
        /\b(?:lips|face|fingers?) (?:\w+ ){0,3}(?:blue|grey|gray)\b|\bblue lips\b|\bgasping for (?:air|breath)\b|\bchok(?:ing|es) (?:on|and)\b/,
        /\bbekomm(?:e|t) (?:\w+ ){0,2}(?:keine|kaum|schlecht) luft\b|\bkann (?:\w+ ){0,3}(?:nicht|kaum) (?:mehr )?atmen\b|\batmet nicht\b/,
        /\b(?:schwere|starke|plotzliche|akute) atemnot\b|\blippen (?:\w+ ){0,3}blau\b|\bblaue lippen\b|\berstick(?:e|t)\b/,
        /\b(?:n'arrive|arrive|peux|peut) (?:\w+ )?(?:pas|plus|a peine) (?:a )?respirer\b|\bne respire (?:pas|plus)\b|\barrive pas a respirer\b/,
        /\b(?:grave|forte|soudaine) (?:difficulte a respirer|detresse respiratoire)\b|\blevres bleues\b|\b(?:s'etouffe|m'etouffe)\b/,
        /\bno (?:puedo|puede|logra) (?:casi )?respirar\b|\bno respira\b|\bapenas (?:puedo|puede) respirar\b|\bme (?:ahogo|asfixio)\b/,
        /\b(?:mucha|grave|severa) dificultad (?:para|al) respirar\b|\blabios (?:azules|morados)\b/,
      ],
    ],
    source: { title: 'NHS: Shortness of breath', url: 'https://www.nhs.uk/conditions/shortness-of-breath/' },
  },
  {
    id: 'breathlessness',
    urgency: 'urgent',
    kind: 'urgent',
    sign: {
      en: 'Difficulty breathing',
      de: 'Atemnot',
      fr: 'Difficulté à respirer',
      es: 'Dificultad para respirar',
    },
    all: [
      [
        /\b(?:trouble|difficulty|problems?) breathing\b|\bshort(?:ness)? of breath\b|\bbreathless(?:ness)?\b|\bhard to breathe\b/,
        /\b(?:atemnot|luftnot|kurzatmig\w*)\b|\b(?:schwer|schlecht) (?:zu )?(?:atmen|luft)\b/,
        /\b(?:du mal|difficultes?) a respirer\b|\bessouffle\w*\b|\b(?:dificultad|problemas) (?:para|al) respirar\b|\bcuesta (?:\w+ )?respirar\b|\bfalta (?:de|el) aire\b/,
      ],
    ],
    source: { title: 'NHS: Shortness of breath', url: 'https://www.nhs.uk/conditions/shortness-of-breath/' },
  },
  {
    id: 'anaphylaxis',
    urgency: 'emergency',
    kind: 'emergency',
    sign: {
      en: 'Signs of a severe allergic reaction (anaphylaxis)',
      de: 'Zeichen einer schweren allergischen Reaktion (Anaphylaxie)',
      fr: 'Signes de réaction allergique grave (anaphylaxie)',
      es: 'Signos de reacción alérgica grave (anafilaxia)',
    },
    all: [
      [
        /\b(?:throat|tongue|lips|face|mouth) (?:\w+ ){0,3}(?:swelling|swollen|swelled|closing(?: up)?|swells?)\b|\bswollen (?:throat|tongue)\b/,
        /\bswelling (?:of|in) (?:my|his|her|the) (?:throat|tongue|lips|mouth)\b|\b(?:having|in) (?:an )?anaphyla(?:xis|ctic)\b/,
        /\b(?:hals|zunge|kehle|rachen|lippen|gesicht) (?:\w+ ){0,4}(?:schwillt|schwellen|geschwollen|zugeschwollen|zu)\b|\banaphylaktische\w* schock\b/,
        /\b(?:gorge|langue|levres|visage) (?:\w+ ){0,3}(?:gonfle\w*|enfle\w*|se serre|se ferme)\b|\bchoc anaphylactique\b/,
        /\b(?:garganta|lengua|labios|cara) (?:\w+ ){0,3}(?:hinchad\w+|hinchan\w*|cierra\w*|cerrando)\b|\bse me (?:hincha|cierra) la (?:garganta|lengua)\b|\bchoque anafilactico\b/,
      ],
    ],
    source: { title: 'NHS: Anaphylaxis', url: 'https://www.nhs.uk/conditions/anaphylaxis/' },
  },
]);
