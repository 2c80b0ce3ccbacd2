import type { Schema } from '../contract/json.ts';
import { childPointer } from './pointer.ts';
import { childSchemas, expandSchema, isSecret } from './schema-at.ts';

const MASK = '****';
/** Names that hold secrets whatever their schema says, such as a header `authorization` or an adapter's `password`. */
const SECRET_NAME = /authorization|password|passwd|secret|token$|api-?_?key|credential|cookie|pepper|private-?_?key/i;
const SECRET_PARAMETER = /([?&][^=&#]*(?:password|secret|token|key|auth)[^=&#]*=)[^&#\s]*/gi;

/**
 * A copy in which secrets read `****`: what the schema calls secret, what is named like one, passwords in URLs, and
 * every pointer that `isHidden` names. `pointer` is where the value stands.
 */
export function maskSecrets(
  value: unknown,
  schema: Schema,
  pointer = '',
  isHidden: (pointer: string) => boolean = () => false,
): unknown {
  const visit = (node: unknown, nodes: readonly Schema[], at: string, secret: boolean): unknown => {
    const hidden = secret || isSecret(nodes) || isHidden(at);
    if (Array.isArray(node)) {
      return node.map((item, index) =>
        visit(item, childSchemas(schema, nodes, index), childPointer(at, index), hidden),
      );
    }
    if (typeof node === 'object' && node !== null) {
      return Object.fromEntries(
        Object.entries(node).map(([key, item]) => [
          key,
          visit(item, childSchemas(schema, nodes, key), childPointer(at, key), hidden || isNamedSecret(key, item)),
        ]),
      );
    }
    if (hidden && node !== undefined && node !== null) return MASK;
    return typeof node === 'string' ? maskUrl(node) : node;
  };
  return visit(value, expandSchema(schema, schema), pointer, false);
}

/** Texts with a telling name; `tokens: 12` and `maxTokens` are no secrets. */
function isNamedSecret(key: string, value: unknown): boolean {
  return typeof value === 'string' && SECRET_NAME.test(key);
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
