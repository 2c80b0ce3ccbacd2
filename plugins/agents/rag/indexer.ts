import { randomUUID } from 'node:crypto';
import type { Log } from '../../../core/index.ts';
import { type Chunk, chunkFile } from './chunk.ts';
import { type Database, leaseIndexing } from './database.ts';
import type { Embedder } from './embedder.ts';
import { type FoundFile, hashOf, listFiles, readBounded } from './files.ts';
import type { Library } from './library.ts';
import { parseFile } from './parse/index.ts';
import { createProgress } from './progress.ts';
import { BadFile } from './section.ts';

export interface IndexerOptions {
  readonly folder: string;
  readonly chunkWords: number;
  readonly maxFileBytes: number;
  readonly maxChunks: number;
}

export interface IndexerDeps {
  readonly database: Database;
  readonly library: Library;
  readonly embedder: Embedder | undefined;
  readonly log: Log;
}

export interface Indexer {
  /** Brings the index up to the folder; calls while one runs share it. Answers how many files changed. */
  run(): Promise<number>;
  /** Stops a run after the file it is at. */
  close(): Promise<void>;
}

/** Indexes a folder: what is new or changed is read again, what is gone is removed, what cannot be read is said and skipped. */
export function createIndexer(
  { folder, chunkWords, maxFileBytes, maxChunks }: IndexerOptions,
  { database, library, embedder, log }: IndexerDeps,
): Indexer {
  const holder = randomUUID();
  const stop = new AbortController();
  /** Why a file was skipped, by its state: said once, not at every look. */
  const said = new Map<string, string>();
  let running: Promise<number> | undefined;

  const skip = (source: string, reason: string, state: string): void => {
    if (said.get(source) === state) return;
    said.set(source, state);
    log.warn({ source, reason }, 'a file of the knowledge base is skipped');
  };

  async function work(): Promise<number> {
    if (!leaseIndexing(database, holder, Date.now())) return 0;
    const { files, skipped } = await listFiles(folder, maxFileBytes);
    for (const { source, reason } of skipped) skip(source, reason, reason);
    const present = new Set(files.map(({ source }) => source));
    const gone = library.sources().filter((source) => !present.has(source));
    for (const source of gone) library.remove(source);
    const stale = files.filter((file) => isStale(file));
    const progress = createProgress(stale.length, log);
    let changed = gone.length;
    for (const file of stale) {
      if (stop.signal.aborted || !leaseIndexing(database, holder, Date.now())) break;
      if (await indexFile(file)) changed += 1;
      progress.step(file.source);
      // Requests are served between two files.
      await new Promise((resolve) => setImmediate(resolve));
    }
    progress.end();
    if (changed > 0) {
      library.dropUnused();
      log.info({ files: files.length, changed, passages: library.count() }, 'the knowledge base is indexed');
    }
    return changed;
  }

  function isStale({ source, size, modifiedMs }: FoundFile): boolean {
    const known = library.known(source);
    return !known || known.size !== size || known.modifiedMs !== modifiedMs;
  }

  async function indexFile(file: FoundFile): Promise<boolean> {
    try {
      const bytes = await readBounded(file, maxFileBytes);
      const hash = hashOf(bytes);
      if (library.known(file.source)?.hash === hash) {
        library.touch(file);
        return false;
      }
      const chunks = chunkFile(await parseFile(file.source, bytes), file.source, chunkWords);
      if (library.count() + chunks.length > maxChunks)
        throw new BadFile(`the index would have more than ${maxChunks} passages`);
      const vectors = await embedder?.embedAll(chunks.map(embeddedText), stop.signal);
      library.put(file, hash, chunkWords, chunks, vectors);
      return true;
    } catch (error) {
      const reason =
        error instanceof BadFile
          ? error.message
          : `cannot be read: ${error instanceof Error ? error.message : 'unknown'}`;
      skip(file.source, reason, `${file.size} ${file.modifiedMs}`);
      // What it held before is not what it holds now.
      if (error instanceof BadFile && library.known(file.source)) library.remove(file.source);
      return false;
    }
  }

  return {
    run() {
      running ??= work().finally(() => {
        running = undefined;
      });
      return running;
    },
    async close() {
      stop.abort();
      await running?.catch(() => undefined);
    },
  };
}

/** What a passage's vector is made of: its title and headings, and its text. */
function embeddedText({ title, location, text }: Chunk): string {
  return [title, ...(location.headings ?? []).filter((heading) => heading !== title), text].join('\n');
}
