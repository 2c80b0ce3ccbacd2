import { isObject, type Schema } from '../contract/json.ts';

/** Shorter options are repeated: a reference would not be shorter. */
const LEAST_LENGTH = 100;

/** Keywords whose members are schemas by key. */
const KEYS: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs']);

/** Keywords whose values may look like schemas but are not. */
const VALUES: ReadonlySet<string> = new Set(['default', 'examples', 'enum', 'const', 'required']);

/**
 * Moves options that occur in several places to `$defs`: most options of a provider are shared by all providers.
 * Editors and validators resolve the references.
 */
export function shareOptions(schema: Schema): Schema {
  const texts = new Map<object, string>();
  const textOf = (node: object): string => {
    const known = texts.get(node) ?? JSON.stringify(node);
    texts.set(node, known);
    return known;
  };
  const counts = new Map<string, number>();
  const shared = new Map<string, { readonly name: string; readonly schema: Schema }>();
  const taken = new Set(Object.keys(isObject(schema['$defs']) ? schema['$defs'] : {}));

  /** Options below a repeated option are counted once. */
  const count = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) count(each);
    if (!isObject(node)) return;
    for (const [keyword, value] of Object.entries(node)) {
      if (VALUES.has(keyword)) continue;
      if (!KEYS.has(keyword) || !isObject(value)) count(value);
      else
        for (const option of Object.values(value)) {
          if (!isObject(option)) continue;
          const text = textOf(option);
          counts.set(text, (counts.get(text) ?? 0) + 1);
          if (counts.get(text) === 1) count(option);
        }
    }
  };

  const nameOf = (key: string): string => {
    let name = `option.${key}`;
    for (let number = 2; taken.has(name); number += 1) name = `option.${key}-${number}`;
    taken.add(name);
    return name;
  };

  const write = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(write);
    if (!isObject(node)) return node;
    return Object.fromEntries(
      Object.entries(node).map(([keyword, value]) => {
        if (VALUES.has(keyword)) return [keyword, value];
        if (!KEYS.has(keyword) || !isObject(value)) return [keyword, write(value)];
        return [keyword, Object.fromEntries(Object.entries(value).map(([key, option]) => [key, refer(key, option)]))];
      }),
    );
  };

  const refer = (key: string, option: unknown): unknown => {
    if (!isObject(option)) return option;
    const text = textOf(option);
    if (text.length < LEAST_LENGTH || (counts.get(text) ?? 0) < 2) return write(option);
    let known = shared.get(text);
    if (!known) {
      known = { name: nameOf(key), schema: write(option) as Schema };
      shared.set(text, known);
    }
    return { $ref: `#/$defs/${known.name}` };
  };

  count(schema);
  const whole = write(schema) as Schema;
  const definitions = [...shared.values()].map(({ name, schema: option }) => [name, option] as const);
  return { ...whole, $defs: { ...(isObject(whole['$defs']) && whole['$defs']), ...Object.fromEntries(definitions) } };
}
