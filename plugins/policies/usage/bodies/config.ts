import { type PluginConfig, type Problem, parseDuration, parseSize } from '../../../../contract/index.ts';

/** Options under `calls:`. */
export const CALLS_CONFIG = {
  type: 'object',
  additionalProperties: false,
  description: 'Storage of request and response content of calls.',
  properties: {
    permission: {
      type: 'string',
      minLength: 1,
      default: 'keys:write',
      description: 'Permission that a token needs to read the usage and the calls of its account.',
    },
    bodies: {
      type: 'string',
      enum: ['off', 'keys', 'on'],
      default: 'off',
      description: 'Stores request and response content for operators: `off`, `keys` (keys in `bodyKeys`) or `all`.',
    },
    bodyKeys: {
      type: 'array',
      maxItems: 1000,
      items: { type: 'string', pattern: '^(?:tg_)?[0-9A-Za-z]{12}$' },
      description: 'Keys for `bodies: keys`, by id or `tg_` prefix.',
    },
    keepBodies: { type: 'string', format: 'duration', default: '7d', description: 'Storage time.' },
    maxBody: {
      type: ['string', 'integer'],
      format: 'size',
      default: '64kb',
      description: 'Maximum stored size of a request and of a response, at most 1mb.',
    },
    redact: {
      type: 'array',
      maxItems: 50,
      items: { type: 'string', minLength: 1, maxLength: 500 },
      default: [],
      description:
        'Text to redact in addition to credentials: `email`, or regular expressions such as `\\d{3}-\\d{2}-\\d{4}`.',
    },
  },
} as const;

export type CallsConfig = PluginConfig<typeof CALLS_CONFIG>;

/** Rules for storing bodies: the calls, the parts and the duration. */
export interface BodyRules {
  /** Ids of the keys whose calls are stored; undefined means all. */
  readonly keys: ReadonlySet<string> | undefined;
  readonly keepMs: number;
  readonly maxChars: number;
  readonly patterns: readonly RegExp[];
}

const EMAIL = /[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g;

/** Returns the rules; undefined if nothing is stored. */
export function bodyRules({ bodies, bodyKeys = [], keepBodies, maxBody, redact }: CallsConfig): BodyRules | undefined {
  if (bodies === 'off') return undefined;
  return {
    keys: bodies === 'keys' ? new Set(bodyKeys.map((key) => key.replace(/^tg_/, ''))) : undefined,
    keepMs: parseDuration(keepBodies),
    maxChars: parseSize(maxBody),
    patterns: redact.map((text) => (text === 'email' ? EMAIL : new RegExp(text, 'gu'))),
  };
}

const MAX_BODY = 1024 * 1024;

/** Checks rules beyond the schema. */
export function checkCalls({ bodies, bodyKeys, keepBodies, maxBody, redact }: CallsConfig): readonly Problem[] {
  const problems: Problem[] = [];
  if (bodies === 'keys' && (bodyKeys ?? []).length === 0)
    problems.push({
      path: '/bodies',
      message: 'is `keys`, but no keys are set',
      hint: 'Set `bodyKeys`, or use `off`.',
    });
  if (bodies !== 'keys' && bodyKeys !== undefined)
    problems.push({ path: '/bodyKeys', message: 'has no effect', hint: 'Set `bodies: keys`, or remove it.' });
  if (parseDuration(keepBodies) < 60_000)
    problems.push({ path: '/keepBodies', message: 'is too short', hint: 'Use at least one minute, such as 7d.' });
  if (parseSize(maxBody) > MAX_BODY || parseSize(maxBody) < 1)
    problems.push({ path: '/maxBody', message: 'must be a size of up to 1mb', hint: 'Use a size such as 64kb.' });
  for (const [at, text] of redact.entries()) {
    const reason = text === 'email' ? undefined : refusePattern(text);
    if (reason !== undefined)
      problems.push({ path: `/redact/${at}`, message: reason, hint: 'Use `email` or a regular expression.' });
  }
  return problems;
}

function refusePattern(text: string): string | undefined {
  try {
    return new RegExp(text, 'gu').test('') ? 'matches empty text, and therefore all text' : undefined;
  } catch {
    return 'is not a regular expression';
  }
}
