import { isObject } from '../../../contract/index.ts';
import { tellDropped } from './field-rules.ts';

/** Known names of a client format's objects, by their type. Objects of other types are read as a whole. */
export type KnownNames = Readonly<Record<string, ReadonlySet<string>>>;

/** Compiles a table from names that are separated by spaces. */
export function knownNames(table: Readonly<Record<string, string>>): KnownNames {
  return Object.freeze(
    Object.fromEntries(Object.entries(table).map(([type, names]) => [type, new Set(names.split(/\s+/))])),
  );
}

/**
 * Adds the paths of names that an object's type does not have, such as `messages.content.x`. Other formats have no place for
 * them, so that they reach no vendor of another format.
 */
export function tellUnknown(object: unknown, type: string, table: KnownNames, at: string, dropped: string[]): void {
  const known = Object.hasOwn(table, type) ? table[type] : undefined;
  if (!known || !isObject(object)) return;
  for (const name in object)
    if (!known.has(name) && object[name] !== null && object[name] !== undefined) tellDropped(dropped, `${at}.${name}`);
}
