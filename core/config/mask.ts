import type { Schema } from '../contract/json.ts';
import { pointerKeys } from './positions.ts';
import { mapLeaves } from './schema-at.ts';

const MASK = '****';
/** Names that hold secrets whatever their schema says, such as a header `authorization` or an adapter's `password`. */
const SECRET_NAME = /authorization|password|passwd|secret|token$|api-?_?key|credential|cookie|pepper|private-?_?key/i;
const SECRET_PARAMETER = /([?&][^=&#]*(?:password|secret|token|key|auth)[^=&#]*=)[^&#\s]*/gi;

/**
 * A copy in which secrets read `****`: what the schema calls secret, texts that are named like one, values of headers,
 * passwords in URLs, and every pointer that `isHidden` names. `pointer` is where the value stands.
 */
export function maskSecrets(
  value: unknown,
  schema: Schema,
  pointer = '',
  isHidden: (pointer: string) => boolean = () => false,
): unknown {
  return mapLeaves(value, schema, pointer, (leaf, at) => {
    if (leaf === null) return leaf;
    if (at.isInSecret || isHidden(at.pointer)) return MASK;
    if (typeof leaf !== 'string') return leaf;
    const keys = pointerKeys(at.pointer);
    // Headers carry keys under any name.
    return SECRET_NAME.test(keys.at(-1) ?? '') || keys.slice(0, -1).includes('headers') ? MASK : maskUrl(leaf);
  });
}

/** Hides user and password in a URL, and parameters named like secrets. */
export function maskUrl(text: string): string {
  const match = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)(.*)$/is.exec(text);
  if (!match) return text;
  const [, scheme = '', authority = '', rest = ''] = match;
  const parameters = rest.replace(SECRET_PARAMETER, `$1${MASK}`);
  const at = authority.lastIndexOf('@');
  if (at !== -1) return `${scheme}${MASK}${authority.slice(at)}${parameters}`;
  // A password with an unescaped slash: what stands before it looks like a port that is none.
  const isBroken = /:(?!\d*$)/.test(authority.replace(/^\[.*\]/, '')) && rest.includes('@');
  return isBroken
    ? `${scheme}${MASK}${parameters.slice(parameters.lastIndexOf('@'))}`
    : scheme + authority + parameters;
}
