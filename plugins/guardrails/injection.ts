import { definePlugin, GatewayError, parseSize } from '../../contract/index.ts';
import { guardTexts, refusal, SIDES, textsOfRequest, textTransform } from './kit/index.ts';

/** Sign of a text that tries to give a model other instructions. */
interface Sign {
  /** Name of the sign in errors. */
  readonly what: string;
  /** Pattern for a text written by {@link plainText}. Each part is bounded, so that matching takes linear time. */
  readonly pattern: RegExp;
  /** Pattern that must match nearby. */
  readonly near?: RegExp;
  /** Words of which every text with the sign has at least one. Most texts have none, so further checks are skipped. */
  readonly needs: RegExp;
}

const ORDERS =
  '(?:instructions?|instuctions|prompts?|directions?|directives?|guidelines?|rules?|orders?|commands?|constraints?|restrictions?|programming|training|policies|protocols?)';
/** Up to this many words in between, in one sentence. */
const upTo = (words: number): string => `(?:[^\\s.!?;:]{1,40}\\s{1,9}){0,${words}}?`;
const EARLIER =
  '(?:previous|prior|preceding|earlier|above|former|foregoing|initial|original|past|existing|given|system|other|old)';
const YOURS = '(?:you|your|yours|ur|the|these|those|any|all|every|everything|each|my|such)';
const LEAVE =
  "(?:ignore|disregard|forget|override|overwrite|bypass|neglect|skip|drop|discard|erase|delete|cancel|revoke|violate|break|(?:do not|don'?t|never|stop|no longer|not) (?:follow|following|obey|obeying|listen to|comply with|adhere to))(?:ing)?";
const TELL =
  '(?:reveal|show|print|repeat|output|display|tell|give|write|leak|expose|dump|recite|return|say|list|quote|copy|paste|spell|translate|convert|summari[sz]e|paraphrase|explain|describe|state|provide|share|disclose|what (?:are|is|were|was))';

const LEAVES = 'an instruction to ignore its instructions';
const WANTS = 'a request for its instructions';
const PART = 'a role without rules for the model';
const VOICE = 'instructions in the name of the system';

/** Signs in texts that drop an instruction, request one, or give one in another's name. */
const SIGNS: readonly Sign[] = Object.freeze([
  {
    what: LEAVES,
    needs:
      /instruc|instuc|prompt|direct|guideline|rule|order|command|constraint|restriction|programming|training|polic|protocol/,
    pattern: new RegExp(
      `\\b${LEAVE}\\s${upTo(2)}(?:${YOURS}\\s${upTo(2)}${EARLIER}|${EARLIER}|(?:all|any) (?:of )?(?:the|your|these|those|my)|your|all|these)\\s${upTo(3)}${ORDERS}\\b`,
    ),
  },
  {
    what: LEAVES,
    needs: /ignore|disregard|forget/,
    pattern:
      /\b(?:ignore|disregard|forget)\s(?:about\s)?(?:all|everything|anything|what(?:ever)?)\s(?:(?:of\s)?(?:the\s)?(?:above|before|previous|prior)|(?:that\s)?(?:you\s(?:were|have|had|was|are|know|learned)|i\s(?:said|told|wrote)|(?:was|is|has been|came|comes)\s(?:said|written|told|above|before)|before this|you'?ve))/,
  },
  {
    what: LEAVES,
    needs:
      /anweisung|instruktion|befehl|vorgabe|regel|anordnung|aufgabe|auftrag|instruc|consigne|directive|regle|ordre|indicacion|orden|regla|istruzion|regole|regras/,
    pattern:
      /\b(?:vergiss|vergesse|ignoriere?|missachte|ubergehe?|uberspringe?)\s(?:\S{1,40}\s){0,4}(?:anweisung|instruktion|befehl|vorgabe|regel|anordnung|aufgabe|auftrag)|\b(?:oubliez?|ignorez?|ne\s(?:tiens|tenez)\spas\scompte)\s(?:\S{1,40}\s){0,4}(?:instruction|consigne|directive|regle|ordre)|\b(?:olvida|ignora|omite|descarta|dimentica|esqueca|ignore|desconsidere)\s(?:\S{1,40}\s){0,4}(?:instruccion|indicacion|orden(?:es)?\b|regla|istruzion|regole|instrucoes|ordens\b|regras)/,
  },
  {
    what: WANTS,
    needs:
      /prompt|instruction|directive|guideline|rule|config|programming|order|command|message|above|previous|prior|preceding|earlier|foregoing|so far|before this|verbatim/,
    pattern: new RegExp(
      `\\b${TELL}\\s${upTo(6)}(?:(?<!\\ban? )(?:system|initial|original|hidden|secret|pre|starting|developer)[ -]?(?:prompt|instructions?|message)|(?:your|ur|yours?) (?:(?:own|full|exact|entire|complete|current|initial|original|system|secret|previous|internal|hidden|above|first|given|base) ){0,3}(?:prompt|instructions?|directives?|guidelines|rules|configuration|programming|orders|commands)|(?:above|previous|prior|preceding|earlier|foregoing) ${upTo(2)}(?:prompts?|instructions?|text|words|sentences?|conversation|messages?|code|rules)|(?:prompt|instructions?|text|words|everything|all|code|conversation|rules|sentences?) ${upTo(1)}(?:above|so far|before this|you were given|given to you|verbatim))`,
    ),
  },
  {
    what: WANTS,
    needs: /secret|access[ -]?code|pass ?word|pass ?code|pass ?phrase/,
    pattern:
      /\b(?:what (?:is|was|are)|tell me|reveal|show|give me|print|say|spell|repeat|output|write)\s(?:\S{1,40}\s){0,4}(?:the|your)\s(?:(?:exact|real|full|correct|actual|secret|first|hidden)\s){0,2}(?:secret (?:word|key|code|phrase|password)|access[ -]?code|pass ?(?:word|code|phrase) (?:is|you|that)|correct pass ?(?:word|code|phrase))/,
  },
  {
    what: PART,
    needs: /do anything now|\bmode\b|jail ?br|\bdan\b|\bstan\b|apophis|\baim\b/,
    pattern:
      /\b(?:do anything now|dan mode|developer mode (?:enabled|on|activated|output)|(?:enable|enter|activate|switch (?:in)?to) (?:\S{1,40} ){0,3}(?:developer|debug|god|jailbreak|unrestricted|admin(?:istrator)?|sudo|dan) mode|jail ?broken|jailbreak(?:ed)? (?:mode|prompt)|(?:you are|act as|acting as|called|be) (?:\S{1,40} ){0,3}(?:\bdan\b|stan\b|apophis|aim\b)|jailbreak\]?\s?[:=])/,
  },
  {
    what: PART,
    needs: /restrictions|limitations|filters|censorship|guidelines|ethical|moral|polic|safety/,
    pattern:
      /\b(?:has|have|with|without|no|free (?:of|from)|not (?:bound|limited|restricted|constrained) by|unbound by|ignor(?:es|ing)|bypass(?:es|ing)?|regardless of|disregard(?:s|ing)?)\s(?:\S{1,40}\s){0,3}(?:restrictions|limitations|filters|censorship|guidelines|ethical (?:guidelines|constraints|considerations|concerns|principles|boundaries|rules)|moral(?:s|ity| constraints| principles)|content polic(?:y|ies)|safety (?:guidelines|filters|rules|measures|protocols))/g,
    near: /\b(?:you (?:are|will|must|can|have|may|should|shall|act)|you'?re|ai|openai|chatgpt|gpt|chatbot|language model|illegal|immoral|unethical|whatsoever|uncensored|unfiltered)\b/,
  },
  {
    what: VOICE,
    needs: /<\||<<\/?sys>>|\[\/?inst|system|admin|developer|new |end|begin|start/,
    pattern:
      /<\|(?:im_start|im_end|system|endoftext|assistant|start_header_id|eot_id)\|>|<<\/?sys>>|\[\/?(?:inst|system)\](?!\()|(?:^|\n)[ \t]{0,9}(?:#{1,6}[ ]?|\[|\{|\*\*|-{3,9}[ ]?)?(?:system|admin(?:istrator)?|developer|new) (?:message|prompt|instructions?|override|notice|update|command|note)\b[ \])}*]{0,3}[:=\n]|(?:^|\n)[ \t]{0,9}(?:#{1,6}[ ]?|\[|\{|\*\*|"|-{3,9}[ ]?)?system[\])}*]{0,2}[ ]?:|\b(?:end|begin(?:ning)?|start) (?:of )?(?:the )?(?:system|user|new|your|previous|assistant)[ -]?(?:prompt|instructions?|input|message|rules|orders)\b/,
  },
  {
    what: VOICE,
    needs: /new|updated|real|actual|true|revised/,
    pattern:
      /\b(?:your|the|here are|follow|these are|i have|with|following) (?:my |the |your )?(?:new|updated|real|actual|true|revised) (?:and \S{1,40} )?(?:instructions?|directives?|rules?|orders?|objective|prompt|goal|role)\b(?:\s(?:is|are|below|now|for you)\b|[ ]?:)|\bnew (?:instructions?|directives?|orders?)[ ]?[:=-]/,
  },
  {
    what: 'a new role for the model',
    needs: /from (?:now|here) on|for the rest|starting now|henceforth|pretend|imagine|act as if|suppose|assume/,
    pattern:
      /\b(?:from (?:now|here) on|for the rest of (?:this|our) (?:conversation|chat)|starting now|henceforth)\b[^.!?]{0,30}\b(?:you(?:'re| are| will| must| shall| have to)?|act|ignore|respond|answer|reply|pretend)\b|\b(?:pretend|imagine|act as if|suppose|assume)\s(?:that\s)?(?:you\s)?(?:(?:have|had)\s|to have\s)?(?:no|never|forgot(?:ten)?|are not bound|are free|were not)\b[^.!?]{0,40}\b(?:rules?|instructions?|guidelines|restrictions|limits|limitations|ethics|filters|programming|training)/,
  },
]);

/** Maximum distance between a match and its {@link Sign.near}. */
const NEAR = 120;

/** Letters of other alphabets that look like Latin ones. */
const LOOKS_LIKE: Readonly<Record<string, string>> = Object.freeze({
  а: 'a',
  е: 'e',
  о: 'o',
  р: 'p',
  с: 'c',
  х: 'x',
  у: 'y',
  і: 'i',
  ј: 'j',
  ѕ: 's',
  ԁ: 'd',
  һ: 'h',
  ո: 'n',
  ο: 'o',
  α: 'a',
  ε: 'e',
  ρ: 'p',
  ι: 'i',
  ν: 'v',
  κ: 'k',
  τ: 't',
  υ: 'u',
  ı: 'i',
});

/**
 * Normalizes a text for the search: lower case, no diacritics, Latin letters for lookalikes, no invisible characters,
 * single spaces.
 */
function plainText(text: string): string {
  // Removes two ligatures, which expand to eighteen and eight letters.
  const small = /[^\0-\x7f]/.test(text) ? plainLetters(text.replace(/[\ufdfa\ufdfb]/g, ' ').normalize('NFKD')) : text;
  return small
    .toLowerCase()
    .replace(/[^\S\n]{2,}|[^\S\n ]/g, ' ')
    .replace(/\n[ \n]+/g, '\n');
}

function plainLetters(text: string): string {
  return (
    text
      .replace(/[\p{M}\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u{e0000}-\u{e007f}]+/gu, '')
      .replace(/[’‘`´]/g, "'")
      // Only in words with Latin letters: Russian text stays unchanged.
      .replace(/[a-z]\p{L}*[^\p{ASCII}\P{L}]\p{L}*|[^\p{ASCII}\P{L}]\p{L}*[a-z]\p{L}*/giu, (word) =>
        word.replace(/[^\0-\x7f]/g, (char) => LOOKS_LIKE[char] ?? char),
      )
  );
}

function hasSign(plain: string, { needs, pattern, near }: Sign): boolean {
  if (!needs.test(plain)) return false;
  if (!near) return pattern.test(plain);
  for (const { index, 0: found } of plain.matchAll(pattern))
    if (near.test(plain.slice(Math.max(0, index - NEAR), index + found.length + NEAR))) return true;
  return false;
}

/** Sign found in a text; undefined without one. */
export function findInjection(text: string): string | undefined {
  const plain = plainText(text);
  return SIGNS.find((sign) => hasSign(plain, sign))?.what;
}

/** Maximum number of buffered characters of a stream: most signs are shorter. */
const HOLD = 300;

/** Detects texts that try to override the instructions of the operator or the caller. */
export default definePlugin({
  name: 'injection',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      roles: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: { enum: ['system', 'developer', 'user', 'assistant', 'tool'] },
        default: ['user', 'tool'],
        description:
          'Roles whose messages are checked. Text outside messages, such as descriptions of tools, is always checked.',
      },
      maxSize: {
        type: ['string', 'integer'],
        format: 'size',
        default: '2mb',
        description: 'Maximum text of a request; longer requests are rejected.',
      },
      sides: { ...SIDES, default: ['request'] },
    },
  },
  setup(api, { roles, maxSize, sides }) {
    const most = parseSize(maxSize);
    const transform = textTransform({
      hold: HOLD,
      find(text, from) {
        const what = findInjection(text.slice(from));
        return what === undefined ? undefined : { start: from, end: text.length, what };
      },
      replace(_text, place, { what }) {
        throw refusal(api.instance, what, place);
      },
    });
    const request = (given: object): undefined => {
      // Texts of one message are joined: an instruction may be spread over several parts.
      const said = new Map<string, string>();
      let size = 0;
      for (const { path, role, text } of textsOfRequest(given)) {
        if (role !== undefined && !roles.some((each) => each === role)) continue;
        size += text.length;
        const place = /^messages\[\d+\]/.exec(path)?.[0] ?? path;
        const before = said.get(place);
        said.set(place, before === undefined ? text : `${before}\n${text}`);
      }
      if (size > most)
        throw new GatewayError(
          'request_too_large',
          `The request exceeds the limit of ${most} characters of the policy "${api.instance}" of this gateway. Send less text.`,
          { refusedBy: api.instance },
        );
      for (const [path, text] of said) {
        const what = findInjection(text);
        if (what !== undefined) throw refusal(api.instance, what, { side: 'request', path });
      }
    };
    guardTexts(api, (_call, side) => (sides.includes(side) ? { ...transform, request } : undefined));
  },
});
