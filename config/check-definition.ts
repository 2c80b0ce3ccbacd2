import type { Members, Shape } from '../contract/definitions.ts';
import { didYouMean } from '../contract/nearest.ts';

/** Member or value of a definition that does not match its table. */
export interface Mistake {
  /** Problem, without a full stop: `has "roles", which it does not know`. */
  readonly message: string;
  /** Remedy, as whole sentences. */
  readonly hint: string;
  /** True for an unknown member without a similar known name; a newer contract may have it. */
  readonly isForeign: boolean;
}

const MAX_TEXT = 60;

/** Finds members and values of a definition that do not match its table; `undefined` counts as absent. */
export function findMistakes(value: unknown, shape: Shape, at = ''): readonly Mistake[] {
  if (value === undefined || shape === 'any') return [];
  if (shape === 'text') return isOf(value, 'string', at, 'a text');
  if (typeof shape === 'string') return isOf(value, shape, at, `a ${shape}`);
  if ('oneOf' in shape) return findValue(value, Object.keys(shape.oneOf), at);
  if ('either' in shape) return findEither(value, shape.either, at);
  if ('list' in shape) {
    if (!Array.isArray(value)) return [wrong(at, value, 'It must be a list.')];
    return value.flatMap((each, index) => findMistakes(each, shape.list, `${at}[${index}]`));
  }
  if (typeof value !== 'object' || value === null) return [wrong(at, value, 'It must be an object.')];
  if ('byName' in shape)
    return Object.entries(value).flatMap(([name, each]) => findMistakes(each, shape.byName, join(at, name)));
  return findInMembers(value, shape, at);
}

function findInMembers(value: object, { members, isClass = false }: Members, at: string): readonly Mistake[] {
  const mistakes: Mistake[] = [];
  const isInstance = isClass && ![Object.prototype, null].includes(Object.getPrototypeOf(value) as object | null);
  for (const name of Object.keys(value)) {
    if (isInstance || Object.hasOwn(members, name)) continue;
    const known = Object.keys(members);
    const near = didYouMean(name, known, 1);
    const place = at === '' ? '' : ` in "${at}"`;
    mistakes.push({
      message: `has the unknown member "${name.slice(0, MAX_TEXT)}"${place}`,
      hint: [near, `Members are: ${known.join(', ')}.`].filter(Boolean).join(' '),
      isForeign: near === undefined,
    });
  }
  // Members in the order of the table; an absent one costs nothing.
  for (const name of Object.keys(members)) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    const shape = members[name];
    if (member !== undefined && shape !== undefined) mistakes.push(...findMistakes(member, shape, join(at, name)));
  }
  return mistakes;
}

/** Returns the mistakes of the closest alternative: the one with the value's type. */
function findEither(value: unknown, shapes: readonly Shape[], at: string): readonly Mistake[] {
  const type = Array.isArray(value) ? 'list' : typeof value;
  const own = shapes.find((shape) => typeOf(shape) === type) ?? shapes[0];
  const mistakes = own === undefined ? [] : findMistakes(value, own, at);
  if (mistakes.length === 0) return mistakes;
  const fitsOther = shapes.some((shape) => shape !== own && findMistakes(value, shape, at).length === 0);
  return fitsOther ? [] : mistakes;
}

function typeOf(shape: Shape): string {
  if (typeof shape === 'string') return shape === 'text' ? 'string' : shape;
  return 'oneOf' in shape ? 'string' : 'list' in shape ? 'list' : 'object';
}

function findValue(value: unknown, allowed: readonly string[], at: string): readonly Mistake[] {
  if (typeof value === 'string' && allowed.includes(value)) return [];
  const near = typeof value === 'string' ? didYouMean(value, allowed, 1) : undefined;
  const values = `Allowed ${allowed.length === 1 ? 'is' : 'are'}: ${allowed.map((each) => `"${each}"`).join(', ')}.`;
  return [wrong(at, value, [near, values].filter(Boolean).join(' '))];
}

function isOf(value: unknown, type: string, at: string, what: string): readonly Mistake[] {
  return typeof value === type ? [] : [wrong(at, value, `It must be ${what}.`)];
}

function wrong(at: string, value: unknown, hint: string): Mistake {
  const shown = typeof value === 'function' || typeof value === 'symbol' ? `a ${typeof value}` : JSON.stringify(value);
  return { message: `has the invalid value ${shown.slice(0, MAX_TEXT)} for "${at}"`, hint, isForeign: false };
}

function join(at: string, name: string): string {
  return at === '' ? name : `${at}.${name}`;
}
