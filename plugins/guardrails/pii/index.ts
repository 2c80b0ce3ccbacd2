import { type Call, definePlugin, OptionError, problemsOf } from '../../../contract/index.ts';
import { guardTexts, refusal, SIDES, type TextTransform, textTransform } from '../kit/index.ts';
import { KIND_NAMES, KINDS, type Kind, searchFor } from './forms.ts';

/** Texts of a request that were replaced by tokens. */
interface Tokens {
  /** Texts with the form of a token that the request has itself. No text gets one of them. */
  readonly taken: ReadonlySet<string>;
  readonly byText: Map<string, string>;
  readonly byToken: Map<string, string>;
  readonly counts: Map<Kind, number>;
}

const TOKEN = new RegExp(`\\[(?:${KIND_NAMES.join('|').toUpperCase()})_\\d{1,6}\\]`, 'g');

/** Maximum length of a token. */
const TOKEN_LENGTH = 24;

/** Token of a text: equal texts get equal tokens within a call, so that a model can distinguish them. */
function tokenOf({ taken, byText, byToken, counts }: Tokens, text: string, kind: Kind): string {
  const known = byText.get(text);
  if (known !== undefined) return known;
  const write = (count: number): string => `[${kind.toUpperCase()}_${count}]`;
  let count = (counts.get(kind) ?? 0) + 1;
  while (taken.has(write(count))) count += 1;
  const token = write(count);
  counts.set(kind, count);
  byText.set(text, token);
  byToken.set(token, text);
  return token;
}

/** Replaces tokens in a response by the original texts. */
function restore({ byToken }: Tokens): TextTransform {
  return textTransform({
    hold: TOKEN_LENGTH,
    find: TOKEN,
    replace: (token) => byToken.get(token) ?? token,
    heldFrom(text) {
      const open = text.lastIndexOf('[');
      return open < 0 || text.includes(']', open) ? text.length : open;
    },
  });
}

const refuseSides = (action: string, sides: readonly string[]): void => {
  if (action !== 'token' || sides.includes('request')) return;
  throw new OptionError(
    '/sides',
    'needs "request" for `action: token`',
    'Add "request", or use `action: mask` or `block`.',
  );
};

/** Personal data and secrets: masked, rejected, or replaced by tokens that are reversed in the response. */
export default definePlugin({
  name: 'pii',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    required: ['action'],
    additionalProperties: false,
    properties: {
      action: {
        enum: ['mask', 'block', 'token'],
        description:
          'Action on a match: `mask` replaces it with its kind (`[EMAIL]`), `block` rejects the call, `token` sends `[EMAIL_1]` to the model and restores the text in the response.',
      },
      kinds: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: { enum: [...KIND_NAMES] },
        default: [...KIND_NAMES],
        description: 'Kinds of data to find.',
      },
      allow: {
        type: 'array',
        maxItems: 1000,
        items: { type: 'string', minLength: 1 },
        default: [],
        description: 'Allowed texts. An entry that begins with `@` allows all e-mail addresses of a domain.',
      },
      sides: SIDES,
    },
  },
  check: ({ action, sides }) => problemsOf(() => refuseSides(action, sides)),
  setup(api, { action, kinds, allow, sides }) {
    refuseSides(action, sides);
    const allowed = new Set(allow.map((text) => text.toLowerCase()));
    const isAllowed = (text: string): boolean =>
      allowed.size > 0 && (allowed.has(text.toLowerCase()) || allowed.has(text.slice(text.indexOf('@')).toLowerCase()));
    const TOKENS = Symbol('pii tokens');
    const tokensOf = (call: Call): Tokens => {
      const known = call.state.get(TOKENS) as Tokens | undefined;
      if (known) return known;
      const taken = new Set(JSON.stringify(call.request).match(TOKEN));
      const tokens = { taken, byText: new Map(), byToken: new Map(), counts: new Map() };
      call.state.set(TOKENS, tokens);
      return tokens;
    };
    guardTexts(api, (call, side) => {
      const isToken = action === 'token';
      if (isToken && side === 'response') {
        const tokens = call.state.get(TOKENS) as Tokens | undefined;
        return tokens && restore(tokens);
      }
      if (!sides.includes(side)) return undefined;
      return textTransform({
        ...searchFor(kinds, isAllowed),
        replace(text, place, { kind }) {
          if (action === 'block') throw refusal(api.instance, KINDS[kind], place);
          return isToken ? tokenOf(tokensOf(call), text, kind) : `[${kind.toUpperCase()}]`;
        },
      });
    });
  },
});
