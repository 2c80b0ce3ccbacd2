import { parentPointer } from './pointer.ts';

/** Counted from 1, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
  /** Another file than the configuration's own, for what it imports. */
  readonly file?: string;
}

/** Where each place of a configuration stands in its file, by JSON pointer: its key, and its value. */
export type Positions = ReadonlyMap<string, { readonly key?: Position; readonly value: Position }>;

/** Thrown by a parser: the text is not what its extension says. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly faults: readonly (Partial<Position> & { readonly message: string; readonly hint?: string })[];

  constructor(faults: SourceError['faults']) {
    super(faults.map(({ message }) => message).join('; '));
    this.faults = faults;
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
  for (let above = parentPointer(pointer); above !== undefined; above = parentPointer(above)) {
    const place = positions.get(above);
    if (place) return place.key ?? place.value;
  }
  return undefined;
}

/** Finds line and column of offsets in a text. */
export function createLocator(text: string): (offset: number) => Position {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}
