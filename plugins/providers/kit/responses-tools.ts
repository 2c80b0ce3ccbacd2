import { createHash } from 'node:crypto';
import { isObject, parseJson } from '../../../core/index.ts';

const MAX_NAME = 64;
const HASH_LENGTH = 8;

/** The name of a tool of a Responses namespace among tools without namespaces: at most 64 characters, cut with a hash of the whole. */
export function namespacedName(namespace: string | undefined, name: string): string {
  if (namespace === undefined) return name;
  const whole = `${namespace}__${name}`;
  if (whole.length <= MAX_NAME) return whole;
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_LENGTH);
  return `${whole.slice(0, MAX_NAME - HASH_LENGTH - 1)}_${hash}`;
}

/** The arguments of the function that stands for a custom tool of Responses, whose input is plain text. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/** The plain text that such arguments hold; what a model wrote in another form is its input as it is. */
export function customInput(text: string): string {
  const parsed = parseJson(text);
  if (typeof parsed === 'string') return parsed;
  const input = isObject(parsed) ? parsed['input'] : undefined;
  return typeof input === 'string' ? input : text;
}
