import type { Language } from './language.ts';
import { readNumber } from './numbers.ts';

/** One word or number of a text. */
export interface Token {
  readonly text: string;
  /** What a digit or number word stands for. */
  readonly value: number | undefined;
  /** Its place for distances between words: the end of a sentence counts as several words. */
  readonly at: number;
  readonly sentence: number;
  /** What stands before it: nothing, a comma, or the end of a clause. */
  readonly before: '' | ',' | '.';
}

/** One sentence of a text. */
export interface Sentence {
  readonly isQuestion: boolean;
}

export interface Tokens {
  readonly list: readonly Token[];
  readonly sentences: readonly Sentence[];
}

/** Words of distance that the end of a sentence counts for, unless set otherwise. */
const SENTENCE_GAP = 3;

/** Nothing that people say is longer. */
const MAX_WORD = 40;

/** No more words than this are read of one text: 20,000 characters have fewer. */
const MAX_TOKENS = 10_000;

const PIECE = /\n|\d+(?:[.,]\d+)*|[a-z]+|[^\sa-z\d]/g;
const ENDS = new Set(['.', '!', '?', '\n']);
const CLAUSE_ENDS = new Set([';', ':', '(', ')', '…', '–', '—', '"', '«', '»']);

/** English and German write clitics at the end ("can't", "geht's"): they stay one word; in the others they are words. */
const JOINED: ReadonlySet<Language> = new Set(['en', 'de']);

/** The words of a normalised text with their numbers, sentences and clauses. */
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
