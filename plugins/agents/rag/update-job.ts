import { folderOf } from './access.ts';

/** What is to be indexed, and how. Plain data: it is sent to another process. */
export interface UpdateJob {
  readonly folder: string;
  readonly indexFolder: string;
  /** Who holds the lock. */
  readonly holder: string;
  readonly chunkWords: number;
  readonly maxFileBytes: number;
  readonly maxChunks: number;
  /** The folders that have a rule of their own on who may find them. */
  readonly folders: readonly string[];
  /** The model of embeddings, when there are any. */
  readonly model?: string;
  /** Files that must not be read, because reading them ended an earlier worker, and why. */
  readonly refused: readonly { readonly source: string; readonly stamp: string; readonly reason: string }[];
}

/** Changes with the parsers and the cutting: an index made by older ones is made anew. */
const READER_VERSION = 3;

type Recipe = Pick<UpdateJob, 'folder' | 'folders' | 'chunkWords' | 'model'>;

/** How a file is read: the options that, when they change, make it be read again. */
export function recipeOf({ folder, folders, chunkWords, model }: Recipe, source: string): string {
  return JSON.stringify([READER_VERSION, folder, chunkWords, model ?? null, folderOf(source, folders)]);
}
