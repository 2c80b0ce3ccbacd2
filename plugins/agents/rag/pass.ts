import { type Chunk, chunkFile } from './chunk.ts';
import type { Database } from './database.ts';
import { type EmbedTexts, embedPending } from './embed-pending.ts';
import { type FoundFile, hashOf, listFiles, NotNow, readBounded } from './files.ts';
import { createLease, LEASE_MS, LeaseLost } from './lease.ts';
import { createLibrary, type KnownFile } from './library.ts';
import { parseFile } from './parse/index.ts';
import { BadFile } from './section.ts';
import { createShelf } from './shelf.ts';
import { FULL, surveyFolder } from './survey.ts';

/** What a pass over the folder is to do. Plain data: it crosses to another process. */
export interface Job {
  readonly folder: string;
  readonly indexFolder: string;
  /** Who holds the lease. */
  readonly holder: string;
  readonly chunkWords: number;
  readonly maxFileBytes: number;
  readonly maxChunks: number;
  /** The model of embeddings, when there are any. */
  readonly model?: string;
  /** Files that must not be read, for reading them ended an earlier pass, and why. */
  readonly refused: readonly { readonly source: string; readonly stamp: string; readonly reason: string }[];
}

export interface PassDeps {
  readonly database: Database;
  readonly embed: EmbedTexts;
  /** Told of every file before it is read, and waited for. */
  onFile(file: FoundFile, done: number, total: number): Promise<void>;
  /** Told of files that are to be tried again at the next look. */
  onFailed(source: string, reason: string): void;
}

export interface PassResult {
  readonly files: number;
  readonly changed: number;
  readonly passages: number;
  /** Whether another process indexes: nothing more is to be done here. */
  readonly lost: boolean;
}

/** Changes with the parsers and the cutting: an index made by older ones is made anew. */
const READER_VERSION = 1;

/** How the files are read: what of the options, when it changes, asks for all of them to be read again. */
export function recipeOf({ folder, chunkWords, model }: Pick<Job, 'folder' | 'chunkWords' | 'model'>): string {
  return JSON.stringify([READER_VERSION, folder, chunkWords, model ?? null]);
}

/**
 * Brings the index up to the folder: what is new or changed is read, what is gone is removed, what cannot be read is
 * noted with its fault. Words first, for all files; embeddings then. Every file is one transaction under the lease.
 */
export async function runPass(job: Job, deps: PassDeps): Promise<PassResult> {
  const { database } = deps;
  const library = createLibrary(database);
  const shelf = createShelf(database);
  const lease = createLease(database, job.holder);
  const recipe = recipeOf(job);
  let changed = 0;
  const result = (files: number, lost: boolean): PassResult => ({ files, changed, passages: library.count(), lost });
  if (!lease.take(Date.now())) return result(0, true);
  // Waiting for embeddings must not lose it.
  const renewal = setInterval(() => void lease.take(Date.now()), LEASE_MS / 4);

  const note = (file: FoundFile, hash: string, fault: string): void => {
    const had = library.count(file.source) > 0;
    lease.write(() => shelf.put(file.source, { stamp: file.stamp, hash, recipe, fault }, []));
    if (had) changed += 1;
  };

  const put = (file: FoundFile, hash: string, chunks: readonly Chunk[]): void => {
    const others = library.count() - library.count(file.source);
    if (others + chunks.length > job.maxChunks) {
      note(file, hash, `${FULL}: it would have more than ${job.maxChunks} passages`);
      return;
    }
    const { model } = job;
    const vectors = model === undefined ? undefined : chunks.map((chunk) => hashOf(`${model}\n${embeddedText(chunk)}`));
    lease.write(() => shelf.put(file.source, { stamp: file.stamp, hash, recipe }, chunks, vectors));
    changed += 1;
  };

  const read = async (file: FoundFile, known: KnownFile | undefined): Promise<void> => {
    const refused = job.refused.find(({ source, stamp }) => source === file.source && stamp === file.stamp);
    if (refused) return note(file, '', refused.reason);
    let hash = '';
    try {
      const bytes = await readBounded(file, job.maxFileBytes);
      hash = hashOf(bytes);
      if (known?.hash === hash && known.recipe === recipe && known.fault === undefined)
        return lease.write(() => shelf.touch(file.source, file.stamp));
      const chunks = chunkFile(await parseFile(file.source, bytes), file.source, job.chunkWords);
      if (chunks.length === 0) throw new BadFile('holds no text');
      put(file, hash, chunks);
    } catch (error) {
      if (error instanceof LeaseLost) throw error;
      if (error instanceof NotNow) deps.onFailed(file.source, error.message);
      else note(file, hash, error instanceof BadFile ? error.message : `its content cannot be read: ${nameOf(error)}`);
    }
  };

  try {
    const listing = await listFiles(job.folder, job.maxFileBytes);
    const known = library.files();
    const { stale, gone } = surveyFolder(listing, known, recipe);
    for (const source of gone) lease.write(() => shelf.remove(source));
    changed += gone.length;
    for (const [at, file] of stale.entries()) {
      await deps.onFile(file, at, stale.length);
      await read(file, known.get(file.source));
    }
    if (job.model !== undefined) {
      const isProven = library.vectors(job.model, 0, 1).length > 0;
      await embedPending(job.model, { shelf, lease, embed: deps.embed, text: embeddedText, isProven });
    }
    lease.write(() => shelf.finish());
    return result(listing.files.length, false);
  } catch (error) {
    if (error instanceof LeaseLost) return result(0, true);
    throw error;
  } finally {
    clearInterval(renewal);
    lease.release();
  }
}

/** What a passage's vector is made of: its title and headings, and its text. */
function embeddedText({ title, location, text }: Chunk): string {
  return [title, ...(location.headings ?? []).filter((heading) => heading !== title), text].join('\n');
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
