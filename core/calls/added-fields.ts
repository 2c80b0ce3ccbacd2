/**
 * Request fields that the gateway adds, not the caller. If a vendor rejects one by name, the request is sent again
 * without it. Later requests to the same target do not contain it.
 */
import { LRUCache } from 'lru-cache';
import type { Target } from '../../contract/call.ts';
import { isObject, type JsonObject, readObject } from '../../contract/json.ts';
import type { HttpRequest, UpstreamFailure } from '../../contract/provider.ts';
import { maxEntries } from '../../contract/units.ts';

/** Maximum number of targets whose rejected fields are remembered. Callers may invent model names. */
const MAX_TARGETS = 1000;

const NO_FIELDS: readonly string[] = Object.freeze([]);

/** Statuses of vendors for a field that they do not accept. */
const REJECTS: ReadonlySet<number> = new Set([400, 422]);

/** Fields that a target rejected, and that the gateway had added. */
export interface Rejected {
  readonly target: Target;
  readonly fields: readonly string[];
}

/** Rejected fields by target. They are forgotten when the configuration is reloaded or the process ends. */
export class RejectedFields {
  readonly #known = new LRUCache<string, readonly string[]>(maxEntries(MAX_TARGETS));

  /** Returns the fields that a target rejects. */
  of(target: Target): readonly string[] {
    return this.#known.size === 0 ? NO_FIELDS : (this.#known.get(nameOf(target)) ?? NO_FIELDS);
  }

  /** Remembers fields of a target. Returns those that were unknown. */
  remember({ target, fields }: Rejected): readonly string[] {
    const known = this.of(target);
    const added = fields.filter((field) => !known.includes(field));
    if (added.length > 0) this.#known.set(nameOf(target), [...known, ...added]);
    return added;
  }
}

function nameOf({ provider, model }: Target): string {
  return `${provider}/${model}`;
}

/** Returns a request without those of its added fields that are listed. */
export function withoutAdded(request: HttpRequest, fields: readonly string[]): HttpRequest {
  const { added = NO_FIELDS, body } = request;
  const omitted = fields.length === 0 ? NO_FIELDS : added.filter((field) => fields.includes(field));
  if (omitted.length === 0) return request;
  return {
    ...request,
    body: omitted.reduce((rest, field) => without(rest, field.split('.')), readObject(body)),
    added: added.filter((field) => !omitted.includes(field)),
  };
}

/**
 * Returns the added fields that an error rejects by name: in its `param`, or in its message if it has no `param`. The
 * name of an object counts only if all of its fields were added.
 */
export function rejectedFields(
  { added = NO_FIELDS, body }: HttpRequest,
  status: number,
  { param, message }: UpstreamFailure,
): readonly string[] {
  if (added.length === 0 || !REJECTS.has(status)) return NO_FIELDS;
  const names = param === undefined ? namesIn(message) : [param];
  return names.flatMap((name) => {
    const parts = partsOf(name);
    const fields = added.filter((field) => isNamed(partsOf(field), parts));
    const rest = fields.reduce((shorter, field) => without(shorter, field.split('.')), readObject(body));
    const isOwn = fields.some((field) => isAbove(parts, partsOf(field)) && has(rest, field.split('.', parts.length)));
    return isOwn ? [] : fields.filter((field) => has(readObject(body), field.split('.')));
  });
}

/** Names of fields in a message: quoted words, and words with a dot or an underscore. */
function namesIn(message: string): readonly string[] {
  const quoted = message.matchAll(/[`'"]([\w.]+)[`'"]|\b(\w+(?:[._]\w+)+)/g);
  return [...new Set(Array.from(quoted, ([, inQuotes, plain = '']) => inQuotes ?? plain))];
}

/** Steps of a path in snake case, since vendors write names in either spelling. */
function partsOf(path: string): readonly string[] {
  return path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).split('.');
}

/**
 * Returns whether a vendor's name means a field: its path, the end of it, the path of an object above or of a value below, or
 * its path with the names of variants between its steps, such as `thinking.adaptive.display`.
 */
function isNamed(field: readonly string[], name: readonly string[]): boolean {
  if (isAbove(name, field) || isAbove(field, name)) return true;
  if (name.join('.') === field.slice(-name.length).join('.')) return true;
  const [first] = field;
  if (name[0] !== first || name.at(-1) !== field.at(-1)) return false;
  let at = 0;
  for (const part of name) if (part === field[at]) at += 1;
  return at === field.length;
}

/** Returns whether a path is that of an object with another path. */
function isAbove(path: readonly string[], other: readonly string[]): boolean {
  return path.length < other.length && path.every((part, at) => part === other[at]);
}

function has(body: JsonObject, [name = '', ...rest]: readonly string[]): boolean {
  const value = body[name];
  return rest.length === 0 ? value !== undefined : has(readObject(value), rest);
}

/** Returns a copy without the value at a path, and without an object that this leaves empty. */
function without(body: JsonObject, [name = '', ...rest]: readonly string[]): JsonObject {
  const { [name]: value, ...others } = body;
  if (rest.length === 0 || !isObject(value)) return others;
  const shorter = without(value, rest);
  return Object.keys(shorter).length > 0 ? { ...body, [name]: shorter } : others;
}
