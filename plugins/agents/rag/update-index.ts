import type { Database } from './database.ts';
import { type EmbedTexts, embedPending } from './embed-pending.ts';
import { type FoundFile, listFiles } from './files.ts';
import { diffFolder } from './folder-diff.ts';
import { embeddedText, indexFile } from './index-file.ts';
import { createIndexLock, LOCK_MS, LockLost } from './index-lock.ts';
import { createIndexReader } from './index-reader.ts';
import { createIndexWriter } from './index-writer.ts';
import { recipeOf, type UpdateJob } from './update-job.ts';

export interface UpdateDeps {
  readonly database: Database;
  readonly embed: EmbedTexts;
  /** Called with every file before it is read, and waited for. */
  onFile(file: FoundFile, done: number, total: number): Promise<void>;
  /** Called with files that are to be tried again at the next check. */
  onFailed(source: string, reason: string): void;
}

export interface UpdateResult {
  readonly files: number;
  readonly changed: number;
  readonly passages: number;
  /** Whether another process has the lock: nothing more is to be done here. */
  readonly lost: boolean;
}

/**
 * Brings the index up to date with the folder: what is new or changed is read, what is gone is removed, what cannot be
 * read is noted with its error. Words first, for all files; embeddings then. Every file is one transaction under the lock.
 */
export async function updateIndex(job: UpdateJob, { database, embed, ...events }: UpdateDeps): Promise<UpdateResult> {
  const reader = createIndexReader(database);
  const writer = createIndexWriter(database);
  const lock = createIndexLock(database, job.holder);
  let changed = 0;
  const result = (files: number, lost: boolean): UpdateResult => ({ files, changed, passages: reader.count(), lost });
  if (!lock.acquire(Date.now())) return result(0, true);
  // Waiting for embeddings must not lose it.
  const renewal = setInterval(() => void lock.acquire(Date.now()), LOCK_MS / 4);
  try {
    const listing = await listFiles(job.folder, job.maxFileBytes);
    const known = reader.files();
    const { stale, gone } = diffFolder(listing, known, (source) => recipeOf(job, source));
    for (const source of gone) lock.write(() => writer.remove(source));
    changed += gone.length;
    const deps = { reader, writer, lock, onFailed: events.onFailed };
    for (const [at, file] of stale.entries()) {
      await events.onFile(file, at, stale.length);
      if (await indexFile(file, known.get(file.source), job, deps)) changed += 1;
    }
    if (job.model !== undefined) {
      const isProven = reader.vectors(job.model, 0, 1).length > 0;
      await embedPending(job.model, { writer, lock, embed, text: embeddedText, isProven });
    }
    lock.write(() => writer.finish());
    return result(listing.files.length, false);
  } catch (error) {
    if (error instanceof LockLost) return result(0, true);
    throw error;
  } finally {
    clearInterval(renewal);
    lock.release();
  }
}
