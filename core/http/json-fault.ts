/** Where a text stops being JSON, and what should have stood there. */
export interface JsonFault {
  /** In UTF-16 units from the start. */
  readonly offset: number;
  readonly expected: string;
}

const SPACE = /[ \t\n\r]*/y;
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

/**
 * Finds the first fault of a text that `JSON.parse` refused, because the engine's own messages name no place in half of
 * the cases and quote the text in the others. Keeps a list instead of recursing, so depth does not matter.
 */
export function findJsonFault(text: string): JsonFault {
  const closers: string[] = [];
  let at = 0;
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const found = pattern.test(text);
    if (found) at = pattern.lastIndex;
    return found;
  };
  const fault = (expected: string): JsonFault => ({
    offset: at,
    expected: at >= text.length ? `it ends where ${expected} should follow` : `${expected} is missing`,
  });

  for (;;) {
    // A value, or for an object the name before it.
    skip(SPACE);
    const open = text[at];
    if (open === '[' || open === '{') {
      at += 1;
      skip(SPACE);
      const closer = open === '[' ? ']' : '}';
      closers.push(closer);
      if (text[at] !== closer) {
        if (closer === ']') continue;
        const broken = readName();
        if (broken) return broken;
        continue;
      }
    } else if (open === '"') {
      const broken = readString();
      if (broken) return broken;
    } else if (!skip(LITERAL)) return fault('a value');

    // What may follow a value: ends, then a comma, then the next name.
    for (;;) {
      skip(SPACE);
      if (closers.length > 0 && text[at] === closers.at(-1)) {
        at += 1;
        closers.pop();
      } else break;
    }
    if (closers.length === 0) return { offset: at, expected: 'nothing may follow the value' };
    if (text[at] !== ',') return fault(`"," or "${closers.at(-1)}"`);
    at += 1;
    if (closers.at(-1) === '}') {
      const broken = readName();
      if (broken) return broken;
    }
  }

  function readName(): JsonFault | undefined {
    skip(SPACE);
    if (text[at] !== '"') return fault('a name in double quotes');
    const broken = readString();
    if (broken) return broken;
    skip(SPACE);
    if (text[at] !== ':') return fault('":"');
    at += 1;
    return undefined;
  }

  function readString(): JsonFault | undefined {
    for (at += 1; at < text.length; ) {
      const code = text.charCodeAt(at);
      if (code === 0x22) {
        at += 1;
        return undefined;
      }
      if (code < 0x20) return fault('an escape for a control character');
      if (code !== 0x5c) at += 1;
      else if (!skip(ESCAPE)) return fault('a valid escape');
    }
    return fault('the closing quote');
  }
}
