import { customInput } from '../../formats/openai-responses/index.ts';

/** Reads the plain input of a custom tool out of the arguments of the function that stands for it, while they arrive. */
export interface CustomInput {
  /** The input that a piece of arguments brings. */
  push(text: string): string;
  /** What is still missing at the end. */
  end(): string;
}

const OPENING = /^\s*\{\s*"input"\s*:\s*"/;
const ESCAPES: Readonly<Record<string, string>> = Object.freeze({
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
});
const UNICODE_LENGTH = 4;

export function createCustomInput(): CustomInput {
  let text = '';
  /** Where the value of `input` is read on; undefined while its beginning was not seen. */
  let at: number | undefined;
  let isOver = false;

  /** The characters of the value that are whole by now. */
  function read(): string {
    if (at === undefined) {
      const opening = OPENING.exec(text);
      if (!opening) return '';
      at = opening[0].length;
    }
    let value = '';
    while (!isOver && at < text.length) {
      const character = text.charAt(at);
      if (character === '"') isOver = true;
      else if (character !== '\\') {
        value += character;
        at += 1;
      } else {
        const found = readEscape(text, at);
        if (!found) break;
        value += found.value;
        at += found.length;
      }
    }
    return value;
  }

  return {
    push(piece) {
      text += piece;
      return isOver ? '' : read();
    },
    // Arguments in another form are known only as a whole.
    end: () => (at === undefined ? customInput(text) : ''),
  };
}

/** The character of an escape; undefined while it is not whole. */
function readEscape(text: string, at: number): { readonly value: string; readonly length: number } | undefined {
  const name = text.charAt(at + 1);
  if (name === '') return undefined;
  if (name !== 'u') return { value: ESCAPES[name] ?? name, length: 2 };
  const digits = text.slice(at + 2, at + 2 + UNICODE_LENGTH);
  if (digits.length < UNICODE_LENGTH) return undefined;
  const code = Number.parseInt(digits, 16);
  return { value: Number.isNaN(code) ? '' : String.fromCharCode(code), length: 2 + UNICODE_LENGTH };
}
