/** Match in a text: from `start` up to `end`. */
export interface TextMatch {
  readonly start: number;
  readonly end: number;
}

/** Search in a text, with the number of characters that it needs to decide. */
export interface TextSearch<M extends TextMatch = TextMatch> {
  /** Maximum length of a match with its lookahead; this many characters of a stream are buffered. */
  readonly hold: number;
  /** First match that begins at `from` or later. It may look at up to 64 characters before `from`. */
  readonly find: RegExp | ((text: string, from: number) => M | undefined);
  /**
   * Position in an unfinished text from which it must be buffered: earlier matches are final. It may buffer less than
   * `hold`, which remains the maximum. Default: the last `hold` characters.
   */
  heldFrom?(text: string, from: number): number;
}

/** Text that arrives in pieces, and is passed on with changes. */
export interface TextStream {
  /** Returns the text to pass on now; `isLast` flushes the buffer. */
  push(piece: string, isLast: boolean): string;
  readonly isHolding: boolean;
}

/** Replacement of a match. */
export type Replace<M> = (text: string, match: M) => string;

/** Number of earlier characters that are kept for lookbehind. */
const BEHIND = 64;

/** Finds matches of a regular expression. */
function finderOf(search: RegExp): (text: string, from: number) => TextMatch | undefined {
  const pattern = new RegExp(search.source, search.flags.replace('y', '').replace(/g|$/, 'g'));
  return (text, from) => {
    for (pattern.lastIndex = from; ; ) {
      const found = pattern.exec(text);
      if (!found) return undefined;
      if (found[0] !== '') return { start: found.index, end: found.index + found[0].length };
      pattern.lastIndex += 1;
    }
  };
}

/** Plain text. A complete text takes the same path as one in pieces, so that the results are equal. */
class PlainText<M extends TextMatch> implements TextStream {
  readonly #search: TextSearch<M>;
  readonly #find: (text: string, from: number) => TextMatch | undefined;
  readonly #replace: Replace<M>;
  /** Most recently passed text, unchanged, and buffered text. */
  #behind = '';
  #held = '';

  constructor(search: TextSearch<M>, replace: Replace<M>) {
    this.#search = search;
    this.#find = search.find instanceof RegExp ? finderOf(search.find) : search.find;
    this.#replace = replace;
  }

  get isHolding(): boolean {
    return this.#held !== '';
  }

  push(piece: string, isLast: boolean): string {
    const from = this.#behind.length;
    const text = this.#behind + this.#held + piece;
    const until = isLast ? text.length : this.#knownUntil(text, from);
    let match = this.#find(text, from);
    if (!match && until === text.length && this.#held === '') {
      this.#behind = text.slice(-BEHIND);
      return piece;
    }
    let out = '';
    let at = from;
    for (; match && match.start < until; match = this.#find(text, at)) {
      out += text.slice(at, match.start) + this.#replace(text.slice(match.start, match.end), match as M);
      at = match.end;
    }
    if (at < until) {
      out += text.slice(at, until);
      at = until;
    }
    this.#behind = text.slice(Math.max(0, at - BEHIND), at);
    this.#held = text.slice(at);
    return out;
  }

  #knownUntil(text: string, from: number): number {
    const { hold } = this.#search;
    const least = text.length - hold;
    const wanted = this.#search.heldFrom?.(text, from) ?? least;
    const until = Math.min(text.length, Math.max(from, least, wanted));
    // Surrogate pairs are not split.
    return until > from && /[\ud800-\udbff]/.test(text.charAt(until - 1)) ? until - 1 : until;
  }
}

/**
 * JSON text, such as the arguments of a tool. The search covers the values of its strings, whatever their escapes
 * (`\u0040` is `@`), and its numbers, which become strings if they are changed. The result is valid JSON.
 */
class JsonText<M extends TextMatch> implements TextStream {
  readonly #make: () => TextStream;
  /** Open string, and a number or word that may continue. */
  #string: TextStream | undefined;
  #rest = '';

  constructor(search: TextSearch<M>, replace: Replace<M>) {
    this.#make = () => new PlainText(search, replace);
  }

  get isHolding(): boolean {
    return this.#rest !== '' || this.#string?.isHolding === true;
  }

  push(piece: string, isLast: boolean): string {
    const text = this.#rest + piece;
    this.#rest = '';
    const out: string[] = [];
    let at = 0;
    while (at < text.length) {
      if (this.#string) {
        const [end, isClosed] = endOfString(text, at, isLast);
        out.push(this.#inString(this.#string, text.slice(at, end), isClosed));
        at = end;
        if (!isClosed) break;
        out.push('"');
        at += 1;
        this.#string = undefined;
        continue;
      }
      const quote = text.indexOf('"', at);
      const end = quote < 0 ? text.length : quote;
      const word = quote < 0 && !isLast ? (/[^\s,:{}[\]]*$/.exec(text.slice(at))?.[0].length ?? 0) : 0;
      out.push(text.slice(at, end - word).replace(/[^\s,:{}[\]]+/g, (literal) => this.#literal(literal)));
      at = end - word;
      if (quote < 0) break;
      out.push('"');
      at += 1;
      this.#string = this.#make();
    }
    this.#rest = text.slice(at);
    if (isLast && this.#string) {
      out.push(this.#inString(this.#string, '', true));
      this.#string = undefined;
    }
    return out.join('');
  }

  #literal(literal: string): string {
    const changed = this.#make().push(literal, true);
    return changed === literal ? literal : JSON.stringify(changed);
  }

  #inString(string: TextStream, raw: string, isLast: boolean): string {
    const wasHolding = string.isHolding;
    const said = readEscapes(raw);
    const out = string.push(said, isLast);
    // Unchanged text keeps its original form.
    return out === said && !wasHolding ? raw : JSON.stringify(out).slice(1, -1);
  }
}

/** End of the complete characters of a string: at its quote, or before an incomplete escape. */
function endOfString(text: string, from: number, isLast: boolean): readonly [end: number, isClosed: boolean] {
  for (let at = from; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '"') return [at, true];
    if (char !== '\\') continue;
    const length = text.charAt(at + 1) === 'u' ? 6 : 2;
    if (at + length > text.length) return [isLast ? text.length : at, false];
    at += length - 1;
  }
  return [text.length, false];
}

/** Value of a string's raw content; the raw content itself if it is invalid JSON. */
function readEscapes(raw: string): string {
  if (!raw.includes('\\')) return raw;
  try {
    return JSON.parse(`"${raw.replace(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1))}"`) as string;
  } catch {
    return raw;
  }
}

/** Transform for a text in pieces: plain, or JSON. */
export function streamOfText<M extends TextMatch>(
  kind: 'plain' | 'json',
  search: TextSearch<M>,
  replace: Replace<M>,
): TextStream {
  return kind === 'json' ? new JsonText(search, replace) : new PlainText(search, replace);
}
