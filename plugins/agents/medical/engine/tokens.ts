import type { Language } from './language.ts';

/** Word or number of a text. */
export interface Token {
  readonly text: string;
  /** Value of a digit or number word. */
  readonly value: number | undefined;
  /** Position for distances between words: the end of a sentence counts as several words. */
  readonly at: number;
  readonly sentence: number;
  /** Separator before it: none, a comma, or the end of a clause. */
  readonly before: '' | ',' | '.';
}

/** Sentence of a text. */
interface Sentence {
  readonly isQuestion: boolean;
}

export interface Tokens {
  readonly list: readonly Token[];
  readonly sentences: readonly Sentence[];
}

/** Default distance in words that the end of a sentence counts for. */
const SENTENCE_GAP = 3;

/** Longest word in normal text. */
const MAX_WORD = 40;

/** Maximum words read from a text: 20,000 characters have fewer. */
const MAX_TOKENS = 10_000;

const PIECE = /\n|\d+(?:[.,]\d+)*|[a-z]+|[^\sa-z\d]/g;
const ENDS = new Set(['.', '!', '?', '\n']);
const CLAUSE_ENDS = new Set([';', ':', '(', ')', '…', '–', '—', '"', '«', '»']);

/**
 * English and German have clitics at the end ("can't", "geht's"), which stay part of the word; in other languages they
 * are separate words.
 */
const JOINED: ReadonlySet<Language> = new Set(['en', 'de']);

/** Splits a normalised text into words with numbers, sentences and clauses. */
export function readTokens(
  normalised: string,
  language: Language,
  aliases: ReadonlyMap<string, string>,
  sentenceGap: number = SENTENCE_GAP,
): Tokens {
  const text = JOINED.has(language) ? normalised.replace(/(?<=[a-z])'(?=[a-z])/g, '') : normalised;
  const raw = readPieces(text, aliases, sentenceGap);
  const wordAt = (index: number) => raw.list[index]?.text;
  const list: Token[] = [];
  for (let index = 0; index < raw.list.length; index += 1) {
    const piece = raw.list[index];
    if (piece === undefined) break;
    const number = readNumber(wordAt, index, language);
    list.push({ ...piece, value: number?.value });
    index += (number?.length ?? 1) - 1;
  }
  return { list, sentences: raw.sentences };
}

function readPieces(text: string, aliases: ReadonlyMap<string, string>, sentenceGap: number) {
  const list: Omit<Token, 'value'>[] = [];
  const sentences: Sentence[] = [];
  let before: Token['before'] = '.';
  let inSentence = 0;
  let hasOpeningMark = false;
  const end = (isQuestion: boolean) => {
    if (inSentence > 0) sentences.push({ isQuestion: isQuestion || hasOpeningMark });
    inSentence = 0;
    hasOpeningMark = false;
    before = '.';
  };
  for (const { 0: piece } of text.matchAll(PIECE)) {
    if (list.length >= MAX_TOKENS) break;
    if (/[a-z\d]/.test(piece)) {
      const text = piece.slice(0, MAX_WORD);
      for (const word of (aliases.get(text) ?? text).split(' ').filter(Boolean)) {
        list.push({ text: word, at: list.length + sentences.length * sentenceGap, sentence: sentences.length, before });
        before = '';
      }
      inSentence += 1;
    } else if (piece === '¿') hasOpeningMark = true;
    else if (piece === '.' && /^\d{1,2}$/.test(list.at(-1)?.text ?? '') && before === '') continue;
    else if (ENDS.has(piece)) end(piece === '?');
    else if (CLAUSE_ENDS.has(piece)) before = '.';
    else if (piece === ',' && before === '') before = ',';
  }
  end(false);
  return { list, sentences };
}

type Atoms = Readonly<Record<string, number>>;

/** Parses "a=1 b=2" into a table. */
function atoms(text: string): Atoms {
  return Object.fromEntries(text.split(' ').map((entry) => [entry.split('=')[0], Number(entry.split('=')[1])]));
}

/** Number words and parts of compounds, after `normalise`. */
const ATOMS: Readonly<Record<Language, Atoms>> = Object.freeze({
  en: atoms(
    'a=1 an=1 one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 thirteen=13 fourteen=14 fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 twenty=20 thirty=30 forty=40 fourty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90 hundred=100 thousand=1000 half=0.5 quarter=0.25 dozen=12 couple=2 twice=2 once=1 thrice=3 double=2 single=1',
  ),
  de: atoms(
    'ein=1 eins=1 eine=1 einen=1 einem=1 einer=1 zwei=2 zwo=2 drei=3 vier=4 funf=5 sechs=6 sieben=7 acht=8 neun=9 zehn=10 elf=11 zwolf=12 sechzehn=16 siebzehn=17 zwanzig=20 dreissig=30 vierzig=40 funfzig=50 sechzig=60 siebzig=70 achtzig=80 neunzig=90 hundert=100 tausend=1000 halb=0.5 halbe=0.5 halben=0.5 halber=0.5 viertel=0.25 anderthalb=1.5 eineinhalb=1.5 zweieinhalb=2.5 dutzend=12',
  ),
  fr: atoms(
    'un=1 une=1 deux=2 trois=3 quatre=4 cinq=5 six=6 sept=7 huit=8 neuf=9 dix=10 onze=11 douze=12 treize=13 quatorze=14 quinze=15 seize=16 vingt=20 vingts=20 trente=30 quarante=40 cinquante=50 soixante=60 septante=70 huitante=80 octante=80 nonante=90 cent=100 cents=100 mille=1000 demi=0.5 demie=0.5 quart=0.25 dizaine=10 quinzaine=15 vingtaine=20 trentaine=30 douzaine=12',
  ),
  es: atoms(
    'un=1 uno=1 una=1 dos=2 tres=3 cuatro=4 cinco=5 seis=6 siete=7 ocho=8 nueve=9 diez=10 once=11 doce=12 trece=13 catorce=14 quince=15 dieciseis=16 diecisiete=17 dieciocho=18 diecinueve=19 veinte=20 veintiun=21 veintiuno=21 veintiuna=21 veintidos=22 veintitres=23 veinticuatro=24 veinticinco=25 veintiseis=26 veintisiete=27 veintiocho=28 veintinueve=29 treinta=30 cuarenta=40 cincuenta=50 sesenta=60 setenta=70 ochenta=80 noventa=90 cien=100 ciento=100 doscientos=200 doscientas=200 trescientos=300 trescientas=300 cuatrocientos=400 cuatrocientas=400 quinientos=500 quinientas=500 seiscientos=600 seiscientas=600 setecientos=700 ochocientos=800 novecientos=900 mil=1000 medio=0.5 media=0.5 cuarto=0.25 docena=12',
  ),
  it: atoms(
    'un=1 uno=1 una=1 due=2 tre=3 quattro=4 cinque=5 sei=6 sette=7 otto=8 nove=9 dieci=10 undici=11 dodici=12 tredici=13 quattordici=14 quindici=15 sedici=16 diciassette=17 diciotto=18 diciannove=19 venti=20 vent=20 trenta=30 trent=30 quaranta=40 quarant=40 cinquanta=50 cinquant=50 sessanta=60 sessant=60 settanta=70 settant=70 ottanta=80 ottant=80 novanta=90 novant=90 cento=100 mille=1000 mila=1000 mezzo=0.5 mezza=0.5 quarto=0.25 dozzina=12 decina=10 ventina=20 trentina=30',
  ),
});

/** Words between the parts of one number: "vingt et un", "treinta y ocho", "a hundred and ten". */
const JOINERS: Readonly<Record<Language, string>> = { en: 'and', de: 'und', fr: 'et', es: 'y', it: 'e' };

/** Articles count as one before a unit, but are not part of a longer number. */
const ARTICLES = new Set('a an ein eine einen einem einer un une una uno'.split(' '));

/** Parts of a compound such as "sechshundertzwanzig" or "seicentodieci"; undefined if it is not a number. */
function split(word: string, table: Atoms, joiner: string): readonly number[] | undefined {
  const parts: number[] = [];
  let rest = word;
  while (rest !== '') {
    let length = Math.min(rest.length, 12);
    while (length > 1 && table[rest.slice(0, length)] === undefined) length -= 1;
    const value = length > 1 ? table[rest.slice(0, length)] : undefined;
    if (value !== undefined) parts.push(value);
    else if (parts.length > 0 && rest.startsWith(joiner) && joiner.length > 2) length = joiner.length;
    else return undefined;
    rest = rest.slice(length);
  }
  return parts;
}

/** Adds a part to a number read so far; undefined if the part begins another number. */
function extend(value: number, part: number): number | undefined {
  if (part === 0.5) return Number.isInteger(value) ? value + part : undefined;
  if (part < 1) return undefined;
  if (part === 100 || part === 1000) return value < part ? value * part : undefined;
  if (part === 20 && value % 100 === 4) return value - 4 + 80;
  const low = value % 100;
  if (low === 0 && value > 0) return value + part;
  if (low === 10 && part > 6 && part < 10) return value + part;
  if (low >= 20 && low % 10 === 0 && part < 10) return value + part;
  return (low === 60 || low === 80) && part > 9 && part < 20 ? value + part : undefined;
}

/** Value of one word; German puts units before tens ("achtundzwanzig"). */
function wordValue(word: string, language: Language): number | undefined {
  const table = ATOMS[language];
  if (Object.hasOwn(table, word)) return table[word];
  if (word.length < 5 || (language !== 'de' && language !== 'it')) return undefined;
  const parts = split(word, table, JOINERS[language]);
  const [first, ...rest] = parts ?? [];
  if (first === undefined || rest.length === 0) return undefined;
  let value = first;
  for (const part of rest) {
    const below = value % 100;
    const isUnitsFirst = language === 'de' && part >= 20 && part < 100 && below > 0 && below < 10;
    const isTeen = language === 'de' && part === 10 && below > 2 && below < 10;
    const sum = isUnitsFirst || isTeen ? value + part : extend(value, part);
    if (sum === undefined) return undefined;
    value = sum;
  }
  return value;
}

/** Number that begins at a word, with its length in words. */
function readNumber(
  wordAt: (index: number) => string | undefined,
  start: number,
  language: Language,
): { readonly value: number; readonly length: number } | undefined {
  const word = wordAt(start);
  if (word === undefined) return undefined;
  const isDigit = /^\d/.test(word);
  const first = isDigit ? Number(word.replace(',', '.').replace(/[^\d.].*$/, '')) : wordValue(word, language);
  if (first === undefined || Number.isNaN(first)) return undefined;
  let value = first;
  let length = 1;
  while (length < 6) {
    const next = wordAt(start + length);
    const isJoiner = next === JOINERS[language];
    const skipped = isJoiner ? (wordAt(start + length + 1) === 'a' ? 2 : 1) : 0;
    const part = wordAt(start + length + skipped);
    const added = part === undefined || /^\d/.test(part) || ARTICLES.has(part) ? undefined : wordValue(part, language);
    // Digits and articles combine only with a half: "38 y medio"; "un mes" stays one.
    const isHalfOnly = isDigit || ARTICLES.has(word);
    const isScale = added === 100 || added === 1000 || added === 12;
    if (added === undefined || (isHalfOnly && added !== 0.5 && !isScale)) break;
    if (isJoiner && added !== 0.5 && !(value >= 20)) break;
    const sum = ARTICLES.has(word) && isScale ? added : extend(value, added);
    if (sum === undefined) break;
    value = sum;
    length += 1 + skipped;
  }
  return { value, length };
}
