import { GatewayError } from '../contract/errors.ts';
import { findJsonFault } from './json-fault.ts';

/**
 * Strict JSON for bodies from outside. Beside what is not JSON it refuses, as `invalid_json`, what would surprise later:
 * nesting below `maxDepth`, numbers beyond a double, lone surrogates, and names that reach an object's prototype.
 */
export function parseJson(text: string, maxDepth: number): unknown {
  const scan = scanJson(text, maxDepth);
  if (scan.tooDeepAt !== undefined) {
    throw invalid(`is nested deeper than ${maxDepth} levels`, text, scan.tooDeepAt);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const { offset, expected } = findJsonFault(text);
    throw invalid(`is not valid JSON: ${expected}`, text, offset);
  }
  if (scan.isSuspect || isSuspect(text)) checkValue(value, '');
  return value;
}

/**
 * Whether there are names that could mean a prototype, spelt out or escaped, or escapes that could be half a surrogate
 * pair. Three searches of the engine's, which skip: a pattern of all three looks at every character.
 */
function isSuspect(text: string): boolean {
  return text.includes('__proto__') || text.includes('constructor') || text.includes('\\u');
}

const LONE_SURROGATE = /\p{Surrogate}/u;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

interface Scan {
  readonly tooDeepAt?: number;
  /** Whether a number may be beyond a double: it has an exponent or very many digits. */
  readonly isSuspect: boolean;
}

/** One look at what is outside of strings, which are skipped natively; runs before the text is parsed. */
function scanJson(text: string, maxDepth: number): Scan {
  let depth = 0;
  let digits = 0;
  let isSuspect = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x30 && code <= 0x39) {
      digits += 1;
      if (digits > 300) isSuspect = true;
      continue;
    }
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > maxDepth) return { tooDeepAt: at, isSuspect };
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (digits > 0 && (code === 0x65 || code === 0x45)) isSuspect = true;
    digits = 0;
  }
  return { isSuspect };
}

/** The offset of the closing quote, or the end of the text. */
function endOfString(text: string, open: number): number {
  for (let at = text.indexOf('"', open + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at;
  }
  return text.length;
}

function checkValue(value: unknown, path: string): void {
  if (typeof value === 'string') checkText(value, path);
  else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw refuse('is a number too large to hold', path);
  } else if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) checkValue(value[at], `${path}[${at}]`);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, field] of Object.entries(value)) {
      checkText(name, path);
      const fieldPath = path === '' ? name : `${path}.${name}`;
      if (name === '__proto__' || (name === 'constructor' && isPrototypeHolder(field))) {
        throw refuse('is a name that is not allowed', fieldPath);
      }
      checkValue(field, fieldPath);
    }
  }
}

function isPrototypeHolder(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype');
}

function checkText(text: string, path: string): void {
  if (LONE_SURROGATE.test(text)) throw refuse('holds half a surrogate pair', path);
}

function refuse(why: string, path: string): GatewayError {
  const where = path === '' ? 'The body' : `"${path.length > 100 ? `${path.slice(0, 100)}…` : path}"`;
  return new GatewayError('invalid_json', `${where} ${why}.`, path === '' ? {} : { param: path.slice(0, 200) });
}

function invalid(why: string, text: string, offset: number): GatewayError {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  const column = offset - before.lastIndexOf('\n');
  return new GatewayError('invalid_json', `The body ${why} (line ${line}, column ${column}).`);
}
