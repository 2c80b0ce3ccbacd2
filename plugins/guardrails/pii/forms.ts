import { isIPv6 } from 'node:net';
import type { TextMatch, TextSearch } from '../kit/index.ts';
import { digitsOf, hasLuhnDigit, ibanLength, NATIONAL_IDS } from './check-digits.ts';

/** Supported kinds of personal data and secrets, with their names in messages. */
export const KINDS = Object.freeze({
  email: 'an e-mail address',
  phone: 'a telephone number',
  iban: 'an IBAN',
  card: 'a payment card number',
  ip: 'an IP address',
  national_id: 'a national identifier',
  secret: 'a key, token or password',
} as const);

export type Kind = keyof typeof KINDS;

export const KIND_NAMES = Object.freeze(Object.keys(KINDS) as Kind[]);

/** Match of a kind. */
export interface FoundKind extends TextMatch {
  readonly kind: Kind;
}

/** Form of a kind. */
interface Form {
  readonly kind: Kind;
  /** Finds the first match at or after a position. */
  find(text: string, from: number): TextMatch | undefined;
}

/** Form with a pattern; `lengthOf` returns the length of the valid part of a match, 0 for none. */
function formOf(kind: Kind, pattern: RegExp, lengthOf?: (text: string) => number): Form {
  return {
    kind,
    find(text, from) {
      for (pattern.lastIndex = from; ; ) {
        const found = pattern.exec(text);
        if (!found) return undefined;
        const length = lengthOf ? lengthOf(found[0]) : found[0].length;
        if (length > 0) return { start: found.index, end: found.index + length };
        pattern.lastIndex = found.index + 1;
      }
    },
  };
}

/** Maximum distance between an identifier and its name. */
const NAME_BEFORE = 50;

/** Form that matches only after its name. */
function formAfter(kind: Kind, name: RegExp, pattern: RegExp, check: (text: string) => boolean): Form {
  const own = new RegExp(pattern.source, 'y');
  return {
    kind,
    find(text, from) {
      for (name.lastIndex = Math.max(0, from - NAME_BEFORE); ; ) {
        const named = name.exec(text);
        if (!named) return undefined;
        const start = named.index + named[0].length;
        own.lastIndex = start;
        const found = start >= from ? own.exec(text) : undefined;
        if (found && check(found[0])) return { start, end: start + found[0].length };
      }
    },
  };
}

const LOCAL_PART = /[\p{L}\p{N}_%+'-][\p{L}\p{N}._%+'-]*$/u;
const DOMAIN = /^(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,6}\p{L}{2,24}(?![\p{L}\p{N}_-])/u;

/** Searches around each `@`, which is rare. */
const EMAIL: Form = {
  kind: 'email',
  find(text, from) {
    for (let at = text.indexOf('@', from); at >= 0; at = text.indexOf('@', at + 1)) {
      const local = LOCAL_PART.exec(text.slice(Math.max(from, at - 64), at))?.[0];
      const domain = local && DOMAIN.exec(text.slice(at + 1, at + 280))?.[0];
      if (local && domain) return { start: at - local.length, end: at + 1 + domain.length };
    }
    return undefined;
  },
};

const when =
  (check: (text: string) => boolean) =>
  (text: string): number =>
    check(text) ? text.length : 0;

const hasDigits = (least: number, most: number) =>
  when((text) => {
    const { length } = digitsOf(text);
    return length >= least && length <= most;
  });

/** Addresses that identify no particular host. */
const OWN_ADDRESS = /^(?:127\.|0\.0\.0\.0$|255\.255\.255\.255$|::1?$)/;

const secret = (pattern: RegExp): Form => formOf('secret', pattern);

/** In order of precedence for matches at the same position. Each pattern is bounded, so that it takes linear time. */
const FORMS: readonly Form[] = Object.freeze([
  // Secrets, by the forms of their issuers.
  secret(/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,8000}?-----END [A-Z ]{0,40}PRIVATE KEY-----/g),
  secret(/(?<![\w-])eyJ[\w-]{10,4000}\.eyJ[\w-]{10,4000}\.[\w-]{10,1000}/g),
  secret(
    /(?<![A-Za-z0-9])(?:sk|pk|rk|tg|gsk|xai|hf|r8|nvapi|pplx|fw|npm|dop_v1|glpat|shpat)[-_](?=[\w-]{0,200}\d)[\w-]{20,250}/g,
  ),
  secret(/(?<![A-Za-z0-9])(?:gh[opsur]_[A-Za-z0-9]{30,255}|github_pat_\w{50,255}|xox[abeprs]-[\w-]{10,250})/g),
  secret(/(?<![A-Za-z0-9])(?:A3T[A-Z0-9]|AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])/g),
  secret(/(?<![A-Za-z0-9])(?:AIza[\w-]{35}|ya29\.[\w-]{20,1000}|SG\.[\w-]{16,32}\.[\w-]{16,64})/g),
  secret(/(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/]{0,40}:)[^\s:@/]{1,200}(?=@[\w.-])/g),
  EMAIL,
  formOf('iban', /(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){11,40}/g, ibanLength),
  ...NATIONAL_IDS.map(({ pattern, name, check }) =>
    name ? formAfter('national_id', name, pattern, check) : formOf('national_id', pattern, when(check)),
  ),
  // First digits of issuers: Visa, Mastercard, American Express, Discover, JCB, UnionPay, Diners Club, Maestro.
  formOf(
    'card',
    /(?<![\w.-]|\d )(?:[2-6]|3[0-9])(?:[ -]?\d){12,18}(?![\w-]|[. ]\d)/g,
    when((text) => hasLuhnDigit(digitsOf(text))),
  ),
  // Telephone numbers: E.164 with country code; of North America; of countries with a 0 before the area, in groups.
  formOf(
    'phone',
    /(?<![\w+])(?:\+|00)[1-9]\d{0,2}(?:[ .\u00a0/-]{0,3}\(?\d{1,5}\)?){1,7}(?![\w@]|[.,]\d)/g,
    hasDigits(8, 17),
  ),
  formOf(
    'phone',
    /(?<![\w.+-]|\d )(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}(?![\w-]|[.,]\d)/g,
  ),
  formOf(
    'phone',
    /(?<![\w.,+-]|\d )(?:\(0[1-9]\d{1,4}\)|0[1-9]\d{0,4})[ ./-]{1,3}\d{2,8}(?:[ .-]\d{2,5}){0,4}(?![\w-]|[.,/]\d)/g,
    hasDigits(9, 12),
  ),
  formOf(
    'ip',
    /(?<![\w.-])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w-]|\.\d)/g,
    when((text) => !OWN_ADDRESS.test(text)),
  ),
  formOf(
    'ip',
    /(?<![\w:.])(?=[0-9a-fA-F]{0,4}:)[0-9a-fA-F:]{3,39}(?:(?:\.\d{1,3}){3})?(?![\w:])/g,
    when((text) => isIPv6(text) && !OWN_ADDRESS.test(text)),
  ),
]);

/** Characters of which every form has at least one; a text without any is not searched further. */
const ANY = /[0-9@]|-----BEGIN|:\/\//;

/** First match of a form at or after a position. */
function findForm({ kind, find }: Form, text: string, from: number): FoundKind | undefined {
  const found = find(text, from);
  return found && { ...found, kind };
}

/** Maximum length of a match: a private key. */
const HOLD = 8192;

/**
 * Character of an address, a number or a secret: no white space, quotes, brackets, commas or scripts without spaces.
 */
const WORD = /[^\s"<>{}[\],;|\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]/;
/** Word that may precede others in a grouped number. */
const GROUP =
  /(?:^|[^\w+(])(?:[A-Za-z]{2}|[-/]|[A-Za-z0-9()+./-]{0,40}\d[A-Za-z0-9()./-]{0,40}|\([^()\s]{0,6}\)) {1,2}$/;

/** Start of the last word of a text, and of the groups of a number that it may belong to. */
function heldFrom(text: string, from: number): number {
  let at = text.length;
  while (at > from && WORD.test(text.charAt(at - 1))) at -= 1;
  for (;;) {
    const group = GROUP.exec(text.slice(Math.max(from, at - 90), at));
    if (!group) break;
    const [found] = group;
    const start = at - found.length + (/^[\w+(/-]/.test(found) ? 0 : 1);
    if (start <= from || start === at) {
      at = Math.max(from, start);
      break;
    }
    at = start;
  }
  const key = text.lastIndexOf('-----BEGIN');
  return key >= from && text.indexOf('-----END', key) < 0 ? Math.min(at, key) : at;
}

/** Search for these kinds. It must not be used for two texts at the same time. */
export function searchFor(kinds: readonly Kind[], isAllowed: (text: string) => boolean): TextSearch<FoundKind> {
  const forms = FORMS.filter(({ kind }) => kinds.includes(kind));
  let known: string | undefined;
  let last = 0;
  let next: (FoundKind | undefined)[] = [];
  return {
    hold: HOLD,
    heldFrom,
    find(text, from) {
      if (text !== known || from < last) {
        known = text;
        next = ANY.test(text) ? forms.map((form) => findForm(form, text, from)) : [];
      }
      last = from;
      for (let at = from; ; ) {
        let first: FoundKind | undefined;
        for (const [row, form] of forms.entries()) {
          let found = next[row];
          if (found && found.start < at) {
            found = findForm(form, text, at);
            next[row] = found;
          }
          if (found && (!first || found.start < first.start)) first = found;
        }
        if (!first || !isAllowed(text.slice(first.start, first.end))) return first;
        at = first.end;
      }
    },
  };
}
