import { JsonError, type JsonPath, type JsonToken, scanJson } from '../config/scan-json.ts';
import { GatewayError } from '../contract/errors.ts';

export interface JsonLimits {
  /** How deep arrays and objects may nest. */
  readonly maxDepth: number;
  /** How many values (texts, numbers, lists, objects) and names of fields a text may hold in all. */
  readonly maxValues: number;
}

/** Bytes of heap that one of these takes when parsed, beside its text: measured in Node 20, rounded up. */
const HEAP_BYTES: Readonly<Record<JsonToken, number>> = Object.freeze({ name: 80, open: 100, string: 40, literal: 16 });

/**
 * Checks a body from outside before it is parsed, so that nothing large is made of what is refused. Throws `invalid_json` for
 * what is not strict JSON and for what would surprise later: a name twice in one object, nesting below `maxDepth`, numbers
 * beyond a double, half surrogate pairs, names that reach an object's prototype; and `request_too_large` for too many values.
 * Answers how many bytes of heap it will take when it is parsed, beside its text.
 */
export function checkJson(text: string, { maxDepth, maxValues }: JsonLimits): number {
  const mayHoldSurrogates = text.includes('\\u');
  let values = 0;
  let heapBytes = 0;
  const visit = (token: JsonToken, from: number, to: number, path: JsonPath): void => {
    values += 1;
    heapBytes += HEAP_BYTES[token];
    if (values > maxValues)
      throw new GatewayError('request_too_large', `The body holds more than ${maxValues} values and names of fields.`);
    if (token === 'name') checkName(path);
    if (token === 'open' && path.length >= maxDepth)
      throw invalid(`is nested deeper than ${maxDepth} levels`, text, from);
    if (token === 'literal') checkNumber(text.slice(from, to), path);
    else if (token !== 'open' && mayHoldSurrogates)
      checkText(text.slice(from, to), token === 'name' ? path.slice(0, -1) : path);
  };
  try {
    scanJson(text, visit);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const { offset, repeated } = error;
    if (repeated) throw invalid(`is ambiguous: ${error.message}`, text, offset, repeated);
    throw invalid(`is not valid JSON: ${error.message}`, text, offset);
  }
  return heapBytes;
}

function checkName(path: JsonPath): void {
  const name = path.at(-1);
  if (name === '__proto__') throw refuse('is a name that is not allowed', path);
  if (name === 'prototype' && path.at(-2) === 'constructor')
    throw refuse('is a name that is not allowed', path.slice(0, -1));
}

function checkNumber(literal: string, path: JsonPath): void {
  // `true` and its like are NaN here.
  if (Math.abs(Number(literal)) === Number.POSITIVE_INFINITY) throw refuse('is a number too large to hold', path);
}

const LONE_SURROGATE = /\p{Surrogate}/u;

function checkText(quoted: string, path: JsonPath): void {
  if (quoted.includes('\\u') && LONE_SURROGATE.test(JSON.parse(quoted)))
    throw refuse('holds half a surrogate pair', path);
}

/** A path as a caller would write it: `messages[0].role`. */
function toParam(path: JsonPath): string {
  let param = '';
  for (const part of path.slice(0, 64)) {
    if (typeof part === 'number') param += `[${part}]`;
    else param += `${param === '' ? '' : '.'}${part.slice(0, 200)}`;
  }
  return param.length > 200 ? `${param.slice(0, 199)}…` : param;
}

function refuse(why: string, path: JsonPath): GatewayError {
  const param = toParam(path);
  const where = param === '' ? 'The body' : `"${param.length > 100 ? `${param.slice(0, 100)}…` : param}"`;
  return new GatewayError('invalid_json', `${where} ${why}.`, param === '' ? {} : { param });
}

function invalid(why: string, text: string, offset: number, path: JsonPath = []): GatewayError {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  const column = offset - before.lastIndexOf('\n');
  const param = toParam(path);
  return new GatewayError(
    'invalid_json',
    `The body ${why} (line ${line}, column ${column}).`,
    param === '' ? {} : { param },
  );
}
