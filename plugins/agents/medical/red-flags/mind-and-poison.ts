import type { RedFlag } from './red-flag.ts';

/** Suicide and self-harm, overdose and poisoning. */
export const MIND_AND_POISON: readonly RedFlag[] = Object.freeze([
  {
    id: 'suicidal_intent',
    urgency: 'emergency',
    kind: 'crisis',
    sign: {
      en: 'Thoughts of suicide or self-harm',
      de: 'Gedanken an Suizid oder Selbstverletzung',
      fr: 'Pensées de suicide ou d’automutilation',
      es: 'Pensamientos de suicidio o autolesión',
    },
    all: [
      [
        /\b(?:kill|hurt|harm|cut|hang|shoot) (?:myself|himself|herself|themselves)\b|\bsuicid(?:e|al)\b(?! (?:prevention|hotline|rates?|statistics|awareness))|\bend(?:ing)? (?:my|his|her|it) ?(?:own )?(?:life|all)\b|\btake my (?:own )?life\b/,
        /\b(?:want|wants|wanted|going|ready|plan\w*) to die\b|\b(?:don't|do not|no longer) want to (?:live|be alive|wake up|be here anymore)\b|\bbetter off (?:dead|without me)\b|\bno reason to live\b|\bself[- ]harm(?:ing)?\b/,
        /\b(?:mich|sich|mir) (?:\w+ ){0,3}(?:umbringen|toten|erhangen|das leben nehmen|etwas antun|ritzen)\b|\bselbstmord\w*\b|\bsuizid(?:gedanken|al)?\w*\b|\b(?:will|mochte|wollte) (?:\w+ ){0,2}(?:sterben|nicht mehr leben|tot sein)\b|\bleben (?:ein ende setzen|beenden)\b/,
        /\b(?:me|se) (?:suicider|tuer|pendre|faire du mal|mutiler|scarifie\w*)\b|\bsuicid\w+\b(?! (?:prevention|hotline|rates?|statistics|awareness))|\b(?:envie de|veux|voudrais) mourir\b|\bmettre fin a mes jours\b|\bne veux plus vivre\b|\b(?:veux|voudrais|envie d') ?en finir\b|\ben finir avec la vie\b/,
        /\b(?:matarme|matarse|suicidarme|suicidarse|hacerme dano|cortarme|quitarme la vida|ahorcarme)\b|\bsuicid\w+\b(?! (?:prevention|hotline|rates?|statistics|awareness))|\b(?:quiero|quisiera|deseo) morir(?:me)?\b|\bno quiero (?:seguir )?vivi(?:r|endo)\b|\bacabar con (?:mi vida|todo)\b/,
      ],
    ],
    source: {
      title: 'NHS: Help for suicidal thoughts',
      url: 'https://www.nhs.uk/mental-health/feelings-symptoms-behaviours/behaviours/help-for-suicidal-thoughts/',
    },
  },
  {
    id: 'overdose_or_poisoning',
    urgency: 'emergency',
    kind: 'poison',
    sign: {
      en: 'Overdose or poisoning',
      de: 'Überdosis oder Vergiftung',
      fr: 'Surdosage ou intoxication',
      es: 'Sobredosis o intoxicación',
    },
    all: [
      [
        /\boverdos\w+\b|\bpoison(?:ed|ing)\b(?! ivy| oak)|\b(?:took|taken|swallowed|ate|drank|ingested) (?:\w+ ){0,4}(?:too many|whole (?:pack|bottle|box)|all (?:my|the|his|her)|handful|bottle of|pack of) (?:\w+ ){0,3}(?:pills?|tablets?|capsules?|medication|medicine|paracetamol|tylenol|ibuprofen|aspirin)?\b/,
        /\b(?:took|taken|swallowed|ate) (?:\w+ ){0,3}(?:[89]|[1-9]\d{1,2}) (?:\w+ ){0,4}(?:pills|tablets|capsules)\b|\b(?:toddler|child|kid|son|daughter|baby|year old) (?:\w+ ){0,2}(?:ate|swallowed|got into|drank) (?:\w+ ){0,6}(?:pills?|tablets?|medicines?|medication)\b/,
        /\b(?:[89]|[1-9]\d{1,2}) (?:\w+ ){0,2}(?:tabletten|pillen) (?:\w+ ){0,3}(?:genommen|geschluckt)\b|\b(?:pris|avale) (?:[89]|[1-9]\d{1,2}) (?:\w+ ){0,2}(?:comprimes|cachets|gelules)\b|\b(?:tomado|tome|tragado|tomo) (?:[89]|[1-9]\d{1,2}) (?:\w+ ){0,2}(?:pastillas|comprimidos|capsulas)\b/,
        /\b(?:swallowed|drank|ate|ingested|drunk|eaten) (?:\w+ ){0,4}(?:bleach|cleaning fluid|cleaner|antifreeze|detergent|battery|batteries|magnets?|rat poison|drain cleaner|pesticide|mushrooms from|dishwasher)\b/,
        /\buberdosis\b|\bueberdosis\b|\bvergift(?:et|ung)\b|\b(?:tabletten|pillen) (?:\w+ ){0,4}(?:zu viele|geschluckt)\b|\bzu viele (?:\w+ )?(?:tabletten|pillen)\b|\b(?:verschluckt|getrunken|geschluckt|gegessen) (?:\w+ ){0,3}(?:reiniger|waschmittel|knopfbatterie|batterie)\b|\b(?:knopfbatterie|reiniger|rattengift|frostschutzmittel|spulmittel) (?:\w+ ){0,4}(?:verschluckt|getrunken|gegessen|geschluckt)\b/,
        /\bsurdos\w+\b|\boverdose\b|\bempoisonn\w+\b|\bintoxication\b|\b(?:avale|pris|bu) (?:\w+ ){0,4}(?:trop de|boite|plaquette|javel|detergent|pile)\b/,
        /\bsobredosis\b|\benvenena\w+\b|\bintoxica(?:do|da|cion)\b|\b(?:trague|trago|tomado|tomo|tome|bebio|bebido|ingirio) (?:\w+ ){0,4}(?:demasiadas|todas|muchas|lejia|detergente|pila|raticida|caja)\b/,
      ],
    ],
    source: { title: 'NHS: Poisoning', url: 'https://www.nhs.uk/conditions/poisoning/' },
  },
]);
