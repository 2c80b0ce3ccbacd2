import { folderOf } from './access.ts';
import { type Chunk, chunkFile } from './chunk-file.ts';
import { type FoundFile, hashOf, NotNow, readBounded } from './files.ts';
import { FULL } from './folder-diff.ts';
import { type IndexLock, LockLost } from './index-lock.ts';
import type { IndexReader, KnownFile } from './index-reader.ts';
import type { IndexWriter } from './index-writer.ts';
import { parseFile } from './parse/index.ts';
import { BadFile } from './section.ts';
import { recipeOf, type UpdateJob } from './update-job.ts';

/** What files are indexed with. */
export interface IndexFileDeps {
  readonly reader: IndexReader;
  readonly writer: IndexWriter;
  readonly lock: IndexLock;
  /** Called with files that are to be tried again at the next check. */
  onFailed(source: string, reason: string): void;
}

/** Brings the index up to date with one file; resolves with whether its passages changed. */
export async function indexFile(
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
    if (chunks.length === 0) throw new BadFile('holds no text');
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
    const reason = `${FULL}: it would have more than ${maxChunks} passages`;
    return putError(file, hash, reason, job, deps);
  }
  const vectors = model === undefined ? undefined : chunks.map((chunk) => hashOf(`${model}\n${embeddedText(chunk)}`));
  const passages = { chunks, folder: folderOf(source, job.folders), ...(vectors && { vectors }) };
  lock.write(() => writer.put(source, { stamp, hash, recipe: recipeOf(job, source) }, passages));
  return true;
}

/** Notes a file without passages, and why it has none. */
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

/** What a passage's vector is made of: its title and headings, and its text. */
export function embeddedText({ title, location, text }: Chunk): string {
  return [title, ...(location.headings ?? []).filter((heading) => heading !== title), text].join('\n');
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
