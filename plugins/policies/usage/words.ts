import { type CallFilter, GatewayError } from '../../../contract/index.ts';

/** Parameters of a query or a command line, by name. */
export type Words = Readonly<Record<string, string | undefined>>;

/** Parameters that filter calls, with their descriptions. */
export const FILTERS = Object.freeze({
  account: 'Calls charged to this account.',
  user: 'Calls of this user.',
  key: 'Calls by this API key: its id or its `tg_` prefix.',
  tag: 'Calls with this tag, such as `team=search`.',
  provider: 'Calls to this provider.',
  model: 'Calls to this model, by the provider’s name.',
  operation: 'Calls of this operation, such as `chat`.',
  session: 'Calls of this session with stored records.',
} as const);

export type FilterWord = keyof typeof FILTERS;

export const FILTER_WORDS = Object.freeze(Object.keys(FILTERS) as FilterWord[]);

/** Longest value of a parameter. */
export const MAX_WORD = 1000;

/** Reads a filter for calls. */
export function readFilter(words: Words): CallFilter {
  const { account, user, key, tag, provider, model, operation, session } = words;
  if (tag !== undefined && !tag.includes('=')) throw wrongWord('tag', 'must be name=value, such as team=search.');
  const filter = {
    account,
    userId: user,
    key: key === undefined ? undefined : keyId(key),
    tag,
    provider,
    model,
    operation,
    session,
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** Public id of a key given by its prefix, or in full. */
function keyId(text: string): string {
  return /^tg_([0-9A-Za-z]{12})(?:_|$)/.exec(text)?.[1] ?? text;
}

export const MAX_LIMIT = 1000;

export function readLimit(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : Number.NaN;
  if (limit <= MAX_LIMIT) return limit;
  throw wrongWord('limit', `must be a whole number from 1 to ${MAX_LIMIT}.`);
}

/** Reads one of several choices; default: the first. */
export function readChoice<const T extends string>(
  words: Words,
  param: string,
  choices: readonly [T, ...(readonly T[])],
): T {
  const text = words[param];
  if (text === undefined) return choices[0];
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw wrongWord(param, `must be one of ${choices.join(', ')}.`);
}

export function wrongWord(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', `"${param}" ${reason}`, { param });
}

/** Command line options with a value. */
export function wordsOfOptions(options: Readonly<Record<string, string | boolean | undefined>>): Words {
  const words = Object.entries(options).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as const] : [],
  );
  const long = words.find(([name, value]) => name !== 'after' && value.length > MAX_WORD);
  if (long) throw wrongWord(long[0], `is longer than ${MAX_WORD} characters.`);
  return Object.fromEntries(words);
}
