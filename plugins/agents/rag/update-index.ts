import { folderOf } from './access.ts';
import { type Chunk, chunkFile } from './chunk-file.ts';
import type { Database } from './database.ts';
import { type EmbedTexts, embedPending } from './embed-pending.ts';
import { type FoundFile, hashOf, listFiles, NotNow, readBounded } from './files.ts';
import { diffFolder, FULL } from './folder-diff.ts';
import { createIndexLock, type IndexLock, LOCK_MS, LockLost } from './index-lock.ts';
import { createIndexReader, type IndexReader, type KnownFile } from './index-reader.ts';
import { createIndexWriter, type IndexWriter } from './index-writer.ts';
import { parseFile } from './parse/index.ts';
import { BadFile } from './section.ts';
import { recipeOf, type UpdateJob } from './update-job.ts';

export interface UpdateDeps {
  readonly database: Database;
  readonly embed: EmbedTexts;
  /** Called and awaited before each file is read. */
  onFile(file: FoundFile, done: number, total: number): Promise<void>;
  /** Called for files to retry at the next check. */
  onFailed(source: string, reason: string): void;
}

export interface UpdateResult {
  readonly files: number;
  readonly changed: number;
  readonly passages: number;
  /** True if another process holds the lock, so that this one stops. */
  readonly lost: boolean;
}

/**
 * Updates the index from the folder: reads new and changed files, removes deleted ones, and records unreadable ones
 * with their error. Words come first for all files, then embeddings. Every file is one transaction under the lock.
 */
export async function updateIndex(job: UpdateJob, { database, embed, ...events }: UpdateDeps): Promise<UpdateResult> {
  const reader = createIndexReader(database);
  const writer = createIndexWriter(database);
  const lock = createIndexLock(database, job.holder);
  let changed = 0;
  const result = (files: number, lost: boolean): UpdateResult => ({ files, changed, passages: reader.count(), lost });
  if (!lock.acquire(Date.now())) return result(0, true);
  // Renew the lock while waiting for embeddings.
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

/** Dependencies for indexing a file. */
interface IndexFileDeps {
  readonly reader: IndexReader;
  readonly writer: IndexWriter;
  readonly lock: IndexLock;
  /** Called for files to retry at the next check. */
  onFailed(source: string, reason: string): void;
}

/** Updates the index for one file; resolves with true if its passages changed. */
async function indexFile(
  file: FoundFile,
  known: KnownFile | undefined,
  job: UpdateJob,
  deps: IndexFileDeps,
): Promise<boolean> {
  const { source, stamp } = file;
  const refused = job.refused.find((one) => one.source === source && one.stamp === stamp);
  if (refused) return putError(file, '', refused.reason, job, deps);
  let hash = '';
  try {
    const bytes = await readBounded(file, job.maxFileBytes);
    hash = hashOf(bytes);
    if (known?.hash === hash && known.recipe === recipeOf(job, source) && known.error === undefined) {
      deps.lock.write(() => deps.writer.touch(source, stamp));
      return false;
    }
    const chunks = chunkFile(await parseFile(source, bytes), source, job.chunkWords);
    if (chunks.length === 0) throw new BadFile('contains no text');
    return putChunks(file, hash, chunks, job, deps);
  } catch (error) {
    if (error instanceof LockLost) throw error;
    if (error instanceof NotNow) {
      deps.onFailed(source, error.message);
      return false;
    }
    const reason = error instanceof BadFile ? error.message : `its content cannot be read: ${nameOf(error)}`;
    return putError(file, hash, reason, job, deps);
  }
}

function putChunks(
  file: FoundFile,
  hash: string,
  chunks: readonly Chunk[],
  job: UpdateJob,
  deps: IndexFileDeps,
): boolean {
  const { reader, writer, lock } = deps;
  const { source, stamp } = file;
  const { maxChunks, model } = job;
  const others = reader.count() - reader.count(source);
  if (others + chunks.length > maxChunks) {
    const reason = `${FULL}: limit of ${maxChunks} passages`;
    return putError(file, hash, reason, job, deps);
  }
  const vectors = model === undefined ? undefined : chunks.map((chunk) => hashOf(`${model}\n${embeddedText(chunk)}`));
  const passages = { chunks, folder: folderOf(source, job.folders), ...(vectors && { vectors }) };
  lock.write(() => writer.put(source, { stamp, hash, recipe: recipeOf(job, source) }, passages));
  return true;
}

/** Records a file without passages, with the reason. */
function putError(
  { source, stamp }: FoundFile,
  hash: string,
  error: string,
  job: UpdateJob,
  { reader, writer, lock }: IndexFileDeps,
): boolean {
  const hadPassages = reader.count(source) > 0;
  lock.write(() =>
    writer.put(source, { stamp, hash, recipe: recipeOf(job, source), error }, { chunks: [], folder: '' }),
  );
  return hadPassages;
}

/** Text for a passage's vector: title, headings and text. */
function embeddedText({ title, location, text }: Chunk): string {
  return [title, ...(location.headings ?? []).filter((heading) => heading !== title), text].join('\n');
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
