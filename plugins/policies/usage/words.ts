import { isIP } from 'node:net';
import { type CallFilter, type CallSearch, GatewayError, parseDuration, parseUsd } from '../../../contract/index.ts';

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
  end_user: 'Calls for this end user of the caller’s application.',
} as const);

export type FilterWord = keyof typeof FILTERS;

export const FILTER_WORDS = Object.freeze(Object.keys(FILTERS) as FilterWord[]);

/** Parameters that search records of calls, with their descriptions. Reports have no records. */
export const SEARCHES = Object.freeze({
  search:
    'Part of a name: user, key, account, end user, session, tag, model, alias, provider, address, call or request id. In any case.',
  address: 'Calls from this address, or from a network such as 10.1.0.0/16.',
  error_code: 'Calls with this error code, such as rate_limited.',
  status: 'Calls with an attempt with this HTTP status of the provider.',
  alias: 'Calls of requests with this alias or model name.',
  min_cost: 'Calls that cost at least this many US dollars.',
  min_duration: 'Calls that took at least this long, such as 5s.',
} as const);

/** Reads the conditions on records. */
export function readSearch(words: Words): CallSearch {
  const { search, address, error_code: errorCode, status, alias, min_cost: cost, min_duration: duration } = words;
  if (status !== undefined && !/^[1-5]\d\d$/.test(status))
    throw wrongWord('status', 'must be an HTTP status, such as 429.');
  return {
    ...(search !== undefined && { search }),
    ...(words['end_user'] !== undefined && { endUser: words['end_user'] }),
    ...(address !== undefined && { address: readNetwork(address) }),
    ...(errorCode !== undefined && { errorCode }),
    ...(status !== undefined && { status: Number(status) }),
    ...(alias !== undefined && { requested: alias }),
    ...(cost !== undefined && { minCost: readAmount(cost) }),
    ...(duration !== undefined && { minDurationMs: readDuration(duration) }),
  };
}

function readNetwork(text: string): string {
  const [address = '', bits] = text.split('/');
  const longest = isIP(address) === 6 ? 128 : 32;
  if (isIP(address) === 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= longest)))
    throw wrongWord('address', 'must be an IP address or a network, such as 203.0.113.7 or 10.1.0.0/16.');
  return text;
}

function readAmount(text: string): number {
  try {
    return parseUsd(text);
  } catch {
    throw wrongWord('min_cost', 'must be US dollars, such as 0.05.');
  }
}

function readDuration(text: string): number {
  try {
    return parseDuration(text);
  } catch {
    throw wrongWord('min_duration', 'must be a duration, such as 5s.');
  }
}

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

/** Parameters of lists that have no meaning for a list of new calls. */
const NOT_FOLLOWED = Object.freeze(['from', 'to', 'last', 'period', 'tz', 'after', 'request', 'sort', 'count']);

/** Rejects parameters that a list of new calls does not support. */
export function assertFollowed(words: Words, reason: string): void {
  const wrong = NOT_FOLLOWED.find((word) => words[word] !== undefined);
  if (wrong !== undefined) throw wrongWord(wrong, reason);
}

/** Command line options with a value. */
export function wordsOfOptions(options: Readonly<Record<string, string | boolean | undefined>>): Words {
  const words = Object.entries(options).flatMap(([name, value]) =>
    // `endUser`, of the option `--end-user`, is the parameter `end_user`.
    typeof value === 'string' ? [[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value] as const] : [],
  );
  const long = words.find(([name, value]) => name !== 'after' && value.length > MAX_WORD);
  if (long) throw wrongWord(long[0], `is longer than ${MAX_WORD} characters.`);
  return Object.fromEntries(words);
}
