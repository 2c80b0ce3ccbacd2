import { GatewayError } from '../contract/errors.ts';
import { isObject, readObject, type Schema } from '../contract/json.ts';

/** Names that are written as they are known: nothing else folds to them. */
const PLAIN = /^[a-z0-9_]+$/;

/**
 * Refuses a field whose name is a known one in another case: `Model`, `MAX_TOKENS`, `me\u017f\u017fages`. Some vendors' parsers fold case
 * (Go's does, U+017F and U+212A included), so such a field would reach the vendor as one that was never checked or priced. Looks where
 * `schema` names fields; every operation's requests pass here.
 */
export function assertNoDisguisedFields(value: unknown, schema: Schema, path = ''): void {
  if (Array.isArray(value)) {
    const items = readObject(schema['items']);
    if (!items['properties']) return;
    for (const [index, item] of value.entries()) assertNoDisguisedFields(item, items, `${path}[${index}]`);
    return;
  }
  const known = schema['properties'];
  if (!isObject(value) || !isObject(known)) return;
  const placeOf = (field: string): string => (path === '' ? field : `${path}.${field}`);
  for (const field of Object.keys(value)) {
    const inner = value[field];
    if (Object.hasOwn(known, field)) {
      if (typeof inner === 'object' && inner !== null)
        assertNoDisguisedFields(inner, readObject(known[field]), placeOf(field));
    } else if (!PLAIN.test(field) && Object.hasOwn(known, foldCase(field)))
      throw refusal(placeOf(field), foldCase(field));
  }
}

/** Through upper case, because U+017F has no lower case but an upper one: S. */
function foldCase(field: string): string {
  return field.toUpperCase().toLowerCase();
}

function refusal(param: string, known: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` is \`${known}\` in another case, which some providers take for it. Write \`${known}\`, or leave it out.`,
    { param },
  );
}
