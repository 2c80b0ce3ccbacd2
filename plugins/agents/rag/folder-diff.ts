import type { FoundFile, Listing } from './files.ts';
import type { KnownFile } from './index-reader.ts';

/** In what a folder differs from the index: files to read, and files that are gone. */
export interface FolderDiff {
  readonly stale: readonly FoundFile[];
  readonly gone: readonly string[];
}

/** How the error of files begins for which the index had no room: they are tried again when anything changed. */
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
