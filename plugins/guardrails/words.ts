import { definePlugin, OptionError, problemsOf } from '../../contract/index.ts';
import { guardTexts, refusal, SIDES, type TextSearch, textTransform } from './kit/index.ts';

/** Trie of words: searching five thousand words takes the time of one. */
interface Letters {
  readonly next: Map<string, Letters>;
  /** Set if a word ends here, or one with a `*`. */
  end?: 'word' | 'prefix';
}

/** Normalizes a letter for comparison: case, width and weight are ignored; any white space is a space. */
function plainLetter(char: string): string {
  if (/\s/.test(char)) return ' ';
  const plain = char < '\u0080' ? char : char.normalize('NFKC');
  return plain.toLowerCase();
}

/** Invisible characters between letters: soft hyphens, zero-width characters. */
const UNSEEN = /[\u00ad\u200b-\u200f\u2060\ufeff]/;
const WORD = /[\p{L}\p{N}_]/u;

const charAt = (text: string, at: number): string => String.fromCodePoint(text.codePointAt(at) ?? 0);

/** Adds a word to the trie; returns its number of letters. */
function addWord(root: Letters, word: string, path: string): number {
  const text = word.trim().replace(/\s+/g, ' ');
  const isPrefix = text.endsWith('*');
  const plain = [...(isPrefix ? text.slice(0, -1) : text)];
  if (plain.length === 0 || plain.includes('*'))
    throw new OptionError(
      path,
      'is not a word or phrase',
      'Use a word or phrase; a `*` at the end matches any letters.',
    );
  let at = root;
  for (const letter of plain.map(plainLetter)) {
    const next = at.next.get(letter) ?? { next: new Map() };
    at.next.set(letter, next);
    at = next;
  }
  at.end = isPrefix || at.end === 'prefix' ? 'prefix' : 'word';
  return plain.length;
}

/** Longest word in a text at a position, up to `end`. `isOpen` is true if more text may continue the match. */
function readWord(root: Letters, text: string, start: number): { readonly end: number; readonly isOpen: boolean } {
  let node = root;
  let end = 0;
  let at = start;
  for (; at < text.length; ) {
    const char = charAt(text, at);
    if (at > start && UNSEEN.test(char)) {
      at += char.length;
      continue;
    }
    const isSpace = at > start && plainLetter(char) === ' ' && plainLetter(text.charAt(at - 1)) === ' ';
    const next = isSpace ? node : node.next.get(plainLetter(char));
    if (!next) break;
    node = next;
    at += char.length;
    if (node.end === 'prefix') while (at < text.length && WORD.test(charAt(text, at))) at += charAt(text, at).length;
    if (node.end && (at === text.length || !WORD.test(charAt(text, at)))) end = at;
    if (node.end === 'prefix') break;
  }
  return { end, isOpen: at >= text.length };
}

/**
 * Matches possible starts of words: the first letters of the words, and letters beyond ASCII, which may normalize to
 * them.
 */
function startsOf({ next }: Letters): RegExp {
  const letters = [...next.keys()].filter((letter) => letter.length === 1 && letter < '\u0080');
  const codes = letters.flatMap((letter) => [letter, letter.toUpperCase()]).map((letter) => letter.charCodeAt(0));
  const ascii = codes.map((code) => `\\u{${code.toString(16)}}`).join('');
  return new RegExp(`[${ascii}\\u{80}-\\u{10ffff}](?<=(?<![\\p{L}\\p{N}_]).)`, 'gsu');
}

/**
 * Maximum number of buffered characters per letter of a word: it may contain invisible characters and much white
 * space.
 */
const PER_LETTER = 8;

/** Search for these words, as whole words in any case. */
function searchWords(words: readonly string[]): TextSearch {
  const root: Letters = { next: new Map() };
  const lengths = words.map((word, at) => addWord(root, word, `/words/${at}`));
  const hold = Math.max(...lengths) * PER_LETTER + 64;
  const starts = startsOf(root);
  return {
    hold,
    find(text, from) {
      for (starts.lastIndex = from; ; ) {
        const found = starts.exec(text);
        if (!found) return undefined;
        const { end } = readWord(root, text, found.index);
        if (end > 0) return { start: found.index, end };
      }
    },
    heldFrom(text, from) {
      const near = Math.max(from, text.length - hold);
      for (starts.lastIndex = near; ; ) {
        const found = starts.exec(text);
        if (!found) return text.length;
        if (readWord(root, text, found.index).isOpen) return found.index;
      }
    },
  };
}

/** Denied words: they are masked, or the call is rejected. */
export default definePlugin({
  name: 'words',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    required: ['words'],
    additionalProperties: false,
    properties: {
      words: {
        type: 'array',
        minItems: 1,
        maxItems: 5000,
        items: { type: 'string', minLength: 1, maxLength: 200 },
        description: 'Words or phrases, case-insensitive; a `*` at the end matches any letters.',
      },
      action: {
        enum: ['mask', 'block'],
        default: 'block',
        description: 'Action on a match: `mask` replaces it with the text of `with`, `block` rejects the call.',
      },
      with: { type: 'string', maxLength: 100, default: '***', description: 'Replacement text.' },
      sides: SIDES,
    },
  },
  check: ({ words }) => problemsOf(() => searchWords(words)),
  setup(api, { words, action, with: mask, sides }) {
    const transform = textTransform({
      ...searchWords(words),
      replace(_text, place) {
        if (action === 'block') throw refusal(api.instance, 'a word that is not allowed', place);
        return mask;
      },
    });
    guardTexts(api, (_call, side) => (sides.includes(side) ? transform : undefined));
  },
});
