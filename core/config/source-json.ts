import { childPointer, createLocator, type Place, type Position, type Source, SourceError } from './positions.ts';

const MAX_DEPTH = 100;
const LITERAL = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
const STRING = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/uy;

/**
 * Reads strict JSON; throws a {@link SourceError} with the place of the first syntax fault. `JSON.parse` makes the value;
 * the scan beside it is what tells places, which `JSON.parse` does only sometimes, and repeated keys, which it never does.
 */
export function parseJson(text: string): Source {
  const source = text.replace(/^\uFEFF/, '');
  const positions = scan(source);
  return { value: JSON.parse(source), positions };
}

function scan(text: string): Map<string, Place> {
  const places = new Map<string, Place>();
  const locate = createLocator(text);
  let offset = 0;

  const fail = (message: string, at = offset): never => {
    throw new SourceError([{ ...locate(at), message: `is not valid JSON: ${message}` }]);
  };
  const found = (): string => (offset < text.length ? `found ${JSON.stringify(text[offset])}` : 'the file ends');
  const skipSpace = (): void => {
    while (/[ \t\r\n]/.test(text[offset] ?? '')) offset++;
  };
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = offset;
    const matched = pattern.exec(text)?.[0];
    if (matched !== undefined) offset += matched.length;
    return matched;
  };
  const take = (mark: string): boolean => {
    skipSpace();
    if (text[offset] !== mark) return false;
    offset++;
    return true;
  };
  const list = (close: string, readItem: (index: number) => void): void => {
    if (take(close)) return;
    for (let index = 0; ; index++) {
      skipSpace();
      readItem(index);
      if (take(close)) return;
      if (!take(',')) fail(`expected "," or "${close}", ${found()}`);
    }
  };
  const readValue = (pointer: string, depth: number, key?: Position): void => {
    skipSpace();
    places.set(pointer, { ...(key && { key }), value: locate(offset) });
    if (depth > MAX_DEPTH) fail('it is nested too deeply');
    if (take('{')) list('}', () => readMember(pointer, depth));
    else if (take('[')) list(']', (index) => readValue(childPointer(pointer, index), depth + 1));
    else if (match(STRING) === undefined && match(LITERAL) === undefined) fail(`expected a value, ${found()}`);
  };
  const readMember = (pointer: string, depth: number): void => {
    const start = offset;
    const name = match(STRING) ?? fail(`expected a name in double quotes, ${found()}`);
    const child = childPointer(pointer, JSON.parse(name));
    if (places.has(child)) fail(`the name ${name} stands here a second time`, start);
    if (!take(':')) fail(`expected ":", ${found()}`);
    readValue(child, depth + 1, locate(start));
  };

  readValue('', 0);
  skipSpace();
  if (offset < text.length) fail(`expected the end, ${found()}`);
  return places;
}
