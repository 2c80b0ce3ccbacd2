import { GatewayError } from '../contract/errors.ts';
import { isObject } from '../contract/json.ts';
import { type JsonBounds, measureJson } from '../contract/json-bounds.ts';

/**
 * Parses a body from outside, UTF-8 already, to a frozen value. Throws `request_too_large` for too many values and `invalid_json` for
 * what is not strict JSON or is nested too deeply, before anything is made of it; and `invalid_json` for what would surprise later:
 * numbers beyond a double, half surrogate pairs, names that reach an object's prototype. Of a name that stands twice in one object the
 * last one counts, and is what is sent on. `reserve` is called with the bytes of heap that the value will take, before it is made.
 */
export function parseBody(bytes: Buffer, bounds: JsonBounds, reserve: (heapBytes: number) => void = () => {}): unknown {
  const { exceeded, heapBytes } = measureJson(bytes, bounds);
  if (exceeded === 'values')
    throw new GatewayError(
      'request_too_large',
      `The body holds more than ${bounds.maxValues} values and names of fields.`,
    );
  if (exceeded === 'depth')
    throw new GatewayError('invalid_json', `The body is nested deeper than ${bounds.maxDepth} levels.`);
  reserve(heapBytes);
  const value = parse(bytes.toString('utf8'));
  // Bytes that are UTF-8 hold no half of a surrogate pair but by an escape.
  assertPlain(value, bytes.includes('\\u'));
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new GatewayError('invalid_json', `The body is not valid JSON: ${describe(error, text)}.`);
  }
}

/** What `JSON.parse` says and where, without the piece of the text that it quotes. */
function describe(error: unknown, text: string): string {
  const message = error instanceof Error ? error.message : '';
  const position = /at position (\d+)/.exec(message)?.[1];
  const said = message
    .replace(/ in JSON.*| at position.*/s, '')
    .replace(/(?:, (?:\.\.\.)?".*)? is not valid JSON.*/s, '')
    .replace(/^[A-Z]/, (letter) => letter.toLowerCase());
  if (position === undefined) return said;
  const before = text.slice(0, Number(position));
  const column = before.length - before.lastIndexOf('\n');
  return `${said} (line ${before.split('\n').length}, column ${column})`;
}

/** An object or array that is looked through, and where it stands. */
interface Place {
  readonly node: object;
  readonly within: Place | undefined;
  /** The name or index of it in `within`. */
  readonly at: string | number;
}

/** Refuses what JSON can say and we do not take, and freezes the rest. Does not recurse. */
function assertPlain(body: unknown, mayHoldSurrogates: boolean): void {
  const waiting: Place[] = [];
  const look = (value: unknown, within: Place | undefined, at: string | number): void => {
    if (typeof value === 'object' && value !== null) waiting.push({ node: value, within, at });
    else if (typeof value === 'number') {
      if (!Number.isFinite(value)) throw refusal('is a number too large to hold', within, at);
    } else if (mayHoldSurrogates && typeof value === 'string' && isHalved(value))
      throw refusal('holds half a surrogate pair', within, at);
  };
  look(body, undefined, '');
  for (let place = waiting.pop(); place; place = waiting.pop()) {
    const { node } = place;
    Object.freeze(node);
    if (Array.isArray(node)) for (const [index, member] of node.entries()) look(member, place, index);
    else if (isObject(node))
      for (const name of Object.keys(node)) {
        if (name === '__proto__') throw refusal('is a name that is not allowed', place, name);
        if (name === 'prototype' && place.at === 'constructor')
          throw refusal('is a name that is not allowed', place.within, place.at);
        if (mayHoldSurrogates && isHalved(name)) throw refusal('holds half a surrogate pair', place.within, place.at);
        look(node[name], place, name);
      }
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;

function isHalved(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

function refusal(why: string, within: Place | undefined, at: string | number): GatewayError {
  const param = toParam(within, at);
  const where = param === '' ? 'The body' : `"${param.length > 100 ? `${param.slice(0, 100)}…` : param}"`;
  return new GatewayError('invalid_json', `${where} ${why}.`, param === '' ? {} : { param });
}

/** A place as a caller would write it: `messages[0].role`. */
function toParam(within: Place | undefined, at: string | number): string {
  const parts = [at];
  for (let place = within; place; place = place.within) parts.unshift(place.at);
  let param = '';
  // The first is the body itself, which has no name.
  for (const part of within ? parts.slice(1) : parts) {
    if (typeof part === 'number') param += `[${part}]`;
    else param += `${param === '' ? '' : '.'}${part.slice(0, 200)}`;
  }
  return param.length > 200 ? `${param.slice(0, 199)}…` : param;
}
