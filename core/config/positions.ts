/** JSON pointers (RFC 6901) name places in the configuration; people see them as `providers.openai.models[0]`. */

/** The pointer of a child: `/server` and `port` give `/server/port`. */
export function childPointer(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The keys of a pointer: `/a~1b/0` gives `a/b` and `0`. */
export function pointerKeys(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** A pointer as people write paths: `plans.free.providers.openai`, `models.smart[0]`, `providers["a b"]`. */
export function formatPath(pointer: string): string {
  let path = '';
  for (const key of pointerKeys(pointer)) {
    if (/^(0|[1-9]\d*)$/.test(key)) path += `[${key}]`;
    else if (/^[\w$-]+$/.test(key)) path += path === '' ? key : `.${key}`;
    else path += `[${JSON.stringify(key.slice(0, 60))}]`;
  }
  return path;
}

/** Counted from 1, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
  /** Another file than the configuration's own, for what it imports. */
  readonly file?: string;
}

/** Where a key of a configuration and its value stand; items of a list have no key. */
export interface Place {
  readonly key?: Position;
  readonly value: Position;
}

/** The places of a file, by JSON pointer. */
export type Positions = ReadonlyMap<string, Place>;

/** Thrown by a parser: the text is not what its extension says. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly problems: readonly (Partial<Position> & { readonly message: string; readonly hint?: string })[];

  constructor(problems: SourceError['problems']) {
    super(problems.map(({ message }) => message).join('; '));
    this.problems = problems;
  }
}

/** A parsed file. */
export interface Source {
  readonly value: unknown;
  readonly positions: Positions;
}

/** The place of a pointer, or of the nearest place above it that the file has (what is missing has no place). */
export function positionOf(positions: Positions, pointer: string, atKey: boolean): Position | undefined {
  const found = positions.get(pointer);
  if (found) return atKey ? (found.key ?? found.value) : found.value;
  return pointer === '' ? undefined : positionOf(positions, pointer.slice(0, pointer.lastIndexOf('/')), true);
}

/** Finds line and column of offsets in a text; fast for offsets in about the order of the text. */
export function createLocator(text: string): (offset: number) => Position {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  const startOf = (line: number): number => starts[line] ?? Number.POSITIVE_INFINITY;
  let line = 0;
  return (offset) => {
    while (startOf(line) > offset) line--;
    while (startOf(line + 1) <= offset) line++;
    return { line: line + 1, column: offset - startOf(line) + 1 };
  };
}
