import type { FoundFile, Listing } from './files.ts';
import type { KnownFile } from './index-reader.ts';

/** Differences of a folder from the index: files to read, and deleted files. */
export interface FolderDiff {
  readonly stale: readonly FoundFile[];
  readonly gone: readonly string[];
}

/** Prefix of the error for files without space in the index: they are retried after any change. */
export const FULL = 'the index is full';

/** Compares a folder with the index. */
export function diffFolder(
  { files, unreadable }: Listing,
  known: ReadonlyMap<string, KnownFile>,
  recipe: (source: string) => string,
): FolderDiff {
  const present = new Set(files.map(({ source }) => source));
  const gone = [...known.keys()].filter(
    (source) => !present.has(source) && !unreadable.some((folder) => source.startsWith(folder)),
  );
  const isStale = ({ source, stamp }: FoundFile): boolean => {
    const file = known.get(source);
    return file?.stamp !== stamp || file.recipe !== recipe(source);
  };
  const stale = files.filter(isStale);
  if (gone.length + stale.length === 0) return { stale, gone };
  return { stale: files.filter((file) => isStale(file) || known.get(file.source)?.error?.startsWith(FULL)), gone };
}
