import { childPointer, createLocator, type Position, type Source, SourceError } from './positions.ts';
import { JsonError, type JsonPath, scanJson } from './scan-json.ts';

const MAX_DEPTH = 100;

/**
 * Reads strict JSON; throws a {@link SourceError} with the place of the first error. `JSON.parse` makes the value; the scan
 * before it tells places, which `JSON.parse` does only sometimes, and repeated names, which it never does.
 */
export function parseJson(text: string): Source {
  const source = text.replace(/^\uFEFF/, '');
  const locate = createLocator(source);
  const positions = new Map<string, { key?: Position; value: Position }>();
  let key: Position | undefined;
  const fail = (message: string, offset: number): SourceError =>
    new SourceError([{ ...locate(offset), message: `is not valid JSON: ${message}` }]);
  try {
    scanJson(source, (token, from, _to, path) => {
      if (token === 'name') key = locate(from);
      else {
        positions.set(toPointer(path), { ...(key && { key }), value: locate(from) });
        if (path.length > MAX_DEPTH) throw fail('it is nested too deeply', from);
        key = undefined;
      }
    });
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw fail(describe(error, source), error.offset);
  }
  return { value: JSON.parse(source), positions };
}

function toPointer(path: JsonPath): string {
  return path.reduce<string>(childPointer, '');
}

function describe({ expected, offset, message }: JsonError, text: string): string {
  if (expected === undefined) return message;
  return `expected ${expected}, ${offset < text.length ? `found ${JSON.stringify(text[offset])}` : 'the file ends'}`;
}
