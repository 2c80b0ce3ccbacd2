import { folderOf } from './access.ts';

/** Indexing job as plain data, because it is sent to another process. */
export interface UpdateJob {
  readonly folder: string;
  readonly indexFolder: string;
  /** Holder of the lock. */
  readonly holder: string;
  readonly chunkWords: number;
  readonly maxFileBytes: number;
  readonly maxChunks: number;
  /** Folders with an access rule of their own. */
  readonly folders: readonly string[];
  /** Embedding model, if any. */
  readonly model?: string;
  /** Files to skip because they crashed an earlier worker, with the reason. */
  readonly refused: readonly { readonly source: string; readonly stamp: string; readonly reason: string }[];
}

/** Changes with the parsers and the chunking: an older index is rebuilt. */
const READER_VERSION = 3;

type Recipe = Pick<UpdateJob, 'folder' | 'folders' | 'chunkWords' | 'model'>;

/** Options for reading a file; it is read again if they change. */
export function recipeOf({ folder, folders, chunkWords, model }: Recipe, source: string): string {
  return JSON.stringify([READER_VERSION, folder, chunkWords, model ?? null, folderOf(source, folders)]);
}
