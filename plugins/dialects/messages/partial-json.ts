import { isObject, type JsonObject, parseJson } from '../../../core/index.ts';

/** How often the end is moved forward before nothing is kept. */
const MAX_TRIES = 64;

/**
 * The arguments of a call as an object. Of arguments that were cut off, what was complete is kept; of anything else that is no
 * object, the text under `arguments`.
 */
export function readArguments(text: string): JsonObject {
  if (text.trim() === '') return {};
  const value = parseJson(text);
  if (isObject(value)) return value;
  const kept = value === undefined && text.trimStart().startsWith('{') ? closeJson(text) : undefined;
  return kept ?? { arguments: value ?? text };
}

/** An object whose text breaks off: closed where it ends, or where the last value before was complete. */
function closeJson(text: string): JsonObject | undefined {
  const { closers, commas, inString } = scan(text);
  const ends = [`${text}${inString ? '"' : ''}${closers}`, ...commas.map(({ at, rest }) => text.slice(0, at) + rest)];
  for (const end of ends.slice(0, MAX_TRIES)) {
    const value = parseJson(end);
    if (isObject(value)) return value;
  }
  return undefined;
}

interface Scan {
  readonly closers: string;
  readonly inString: boolean;
  /** Where a value ended, the last one first, and what closes the text there. */
  readonly commas: readonly { readonly at: number; readonly rest: string }[];
}

function scan(text: string): Scan {
  const open: string[] = [];
  const commas: { readonly at: number; readonly rest: string }[] = [];
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (inString) {
      if (char === '\\') at++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') {
      open.push(char === '{' ? '}' : ']');
      commas.push({ at: at + 1, rest: open.toReversed().join('') });
    } else if (char === '}' || char === ']') open.pop();
    else if (char === ',') commas.push({ at, rest: open.toReversed().join('') });
    if (commas.length > 2 * MAX_TRIES) commas.splice(0, MAX_TRIES);
  }
  return { closers: open.toReversed().join(''), inString, commas: commas.toReversed() };
}

/** Watches arguments as they come: whether what has come is a whole JSON object. */
export interface ObjectWatch {
  push(text: string): void;
  readonly isWhole: boolean;
}

export function watchObject(): ObjectWatch {
  let depth = 0;
  let begun = false;
  let inString = false;
  let escaped = false;
  return {
    push(text) {
      for (const char of text) {
        if (escaped) escaped = false;
        else if (inString) {
          if (char === '\\') escaped = true;
          else if (char === '"') inString = false;
        } else if (char === '"') inString = true;
        else if (char === '{' || char === '[') {
          depth += 1;
          begun = true;
        } else if (char === '}' || char === ']') depth -= 1;
      }
    },
    get isWhole() {
      return begun && depth === 0 && !inString;
    },
  };
}
