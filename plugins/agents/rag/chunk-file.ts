import type { Location, Parsed } from './section.ts';

/** Passage as indexed, found and cited. */
export interface Chunk {
  readonly text: string;
  readonly title: string;
  readonly location: Location;
}

/** Words of the previous passage repeated at the start of the next, to keep the context of sentences. */
const OVERLAP_WORDS = 40;

/**
 * A word; in scripts without spaces between words, a character. Runs longer than 40 characters (a key, a blob) count as
 * several, so that a passage is bounded in characters too.
 */
const WORD =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]|[^\s\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]{1,40}/gu;

/** Long runs of blanks are shortened to twenty, so that a passage is bounded in characters too. */
const BLANKS = /[^\S\n]{21,}|\n{21,}/g;

const twentyOf = (blanks: string): string => blanks.slice(0, 20);

const PARAGRAPH_END = /\n[^\S\n]*\n/;

/**
 * Cuts a parsed file into passages of at most `words` words: at its own sections first, then at paragraphs, then at
 * words.
 */
export function chunkFile(parsed: Parsed, name: string, words: number): readonly Chunk[] {
  const fileTitle = (parsed.title ?? name).slice(0, 300);
  return parsed.sections.flatMap(({ text, location, title }) => {
    let line = location.line ?? 0;
    let counted = 0;
    return cutText(text, words).map(({ start, end }) => {
      line += countLines(text, counted, start);
      counted = start;
      return {
        text: text.slice(start, end).replace(BLANKS, twentyOf).trim(),
        title: title?.slice(0, 300) ?? fileTitle,
        location: location.line === undefined ? location : { ...location, line },
      };
    });
  });
}

/** Spans of a text with at most `words` words each and a small overlap. */
function cutText(text: string, words: number): readonly { readonly start: number; readonly end: number }[] {
  const starts: number[] = [];
  const ends: number[] = [];
  for (const { index, 0: word } of text.matchAll(WORD)) {
    starts.push(index);
    ends.push(index + word.length);
  }
  const spans: { start: number; end: number }[] = [];
  for (let first = 0; first < starts.length; ) {
    const last = first + words >= starts.length ? starts.length : lastOfPassage(text, starts, ends, first, words);
    spans.push({ start: starts[first] ?? 0, end: ends[last - 1] ?? text.length });
    if (last >= starts.length) break;
    first = Math.max(first + 1, last - Math.min(OVERLAP_WORDS, Math.floor(words / 5)));
  }
  return spans;
}

/** End of a passage: before the last paragraph that does not fit, if at least half a passage remains. */
function lastOfPassage(
  text: string,
  starts: readonly number[],
  ends: readonly number[],
  first: number,
  words: number,
): number {
  const full = first + words;
  for (let at = full; at > first + words / 2; at -= 1)
    if (PARAGRAPH_END.test(text.slice(ends[at - 1], starts[at]))) return at;
  return full;
}

function countLines(text: string, from: number, to: number): number {
  let lines = 0;
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
