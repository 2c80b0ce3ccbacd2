import { isGatewayError, type Log } from '../../../core/index.ts';
import type { EmbedTexts } from './embed-pending.ts';
import type { Embedder } from './embedder.ts';
import { type Listing, listFiles } from './files.ts';
import { diffFolder } from './folder-diff.ts';
import type { IndexLock } from './index-lock.ts';
import type { IndexReader } from './index-reader.ts';
import { createProgress } from './progress.ts';
import { createRetry, type Retry } from './retry.ts';
import { createSkippedReporter, type SkippedFile } from './skipped-files.ts';
import { type IndexWorker, startWorker, type WorkerOutcome } from './start-worker.ts';
import { recipeOf, type UpdateJob } from './update-job.ts';

export interface FolderCheckDeps {
  readonly lock: Pick<IndexLock, 'isHeldElsewhere'>;
  readonly reader: IndexReader;
  readonly embedder: Embedder | undefined;
  readonly log: Log;
}

/** Compares the folder with the index and, where they differ, runs a worker that updates the index. */
export interface FolderCheck {
  /** Resolves with whether it is to be run again although nothing may have changed. Never rejects. */
  run(): Promise<boolean>;
  /** Ends the worker that runs. */
  kill(): void;
}

export function createFolderCheck(
  options: Omit<UpdateJob, 'refused'>,
  { lock, reader, embedder, log }: FolderCheckDeps,
  abortSignal: AbortSignal,
): FolderCheck {
  const update = createRetry((reason) => log.warn({ reason }, 'the knowledge base could not be brought up to date'));
  const embedding = createRetry((reason) =>
    log.warn({ reason }, 'passages of the knowledge base wait for their embeddings; they are found by words meanwhile'),
  );
  const embed = createEmbed(embedder, embedding, abortSignal);
  const reportSkipped = createSkippedReporter(log);
  const refused: { source: string; stamp: string; reason: string }[] = [];
  let worker: IndexWorker | undefined;

  const isBehind = (listing: Listing): boolean => {
    const now = Date.now();
    if (abortSignal.aborted || !update.isDue(now) || lock.isHeldElsewhere(now)) return false;
    const { stale, gone } = diffFolder(listing, reader.files(), (source) => recipeOf(options, source));
    return stale.length + gone.length > 0 || (embedder !== undefined && reader.isUnembedded() && embedding.isDue(now));
  };

  const runWorker = async (failed: SkippedFile[]): Promise<WorkerOutcome> => {
    const progress = createProgress(log);
    const onFailed = (source: string, reason: string) => void failed.push({ source, reason });
    worker = startWorker({ ...options, refused }, { embed, onFile: progress.show, onFailed });
    try {
      return await worker.outcome;
    } finally {
      worker = undefined;
      progress.end();
    }
  };

  const check = async (): Promise<boolean> => {
    const listing = await listFiles(options.folder, options.maxFileBytes);
    const failed: SkippedFile[] = [];
    while (isBehind(listing)) {
      const outcome = await runWorker(failed);
      if (abortSignal.aborted) return false;
      if (!('error' in outcome)) {
        settle(outcome, update, embedding, log);
        break;
      }
      // The file that ended the worker is left out, and the rest is done by another one.
      refused.push({ source: outcome.source, stamp: outcome.stamp, reason: outcome.error });
    }
    if (abortSignal.aborted) return false;
    reportSkipped([...listing.skipped, ...unreadFiles(reader), ...failed]);
    return failed.length > 0 || update.isFailing() || reader.isUnembedded();
  };

  return {
    run: () =>
      check().catch((error: unknown) => {
        if (!abortSignal.aborted) update.fail(error instanceof Error ? error.message : 'unknown');
        return true;
      }),
    kill: () => worker?.kill(),
  };
}

/** Notes how a worker ended. One that stopped because of the embeddings is no failure of its own. */
function settle(
  outcome: Exclude<WorkerOutcome, { readonly error: string }>,
  update: Retry,
  embedding: Retry,
  log: Log,
): void {
  if ('result' in outcome) {
    const { files, changed, passages, lost } = outcome.result;
    update.succeed();
    if (changed > 0 && !lost) log.info({ files, changed, passages }, 'the knowledge base is indexed');
  } else if (!embedding.isFailing()) update.fail(outcome.stopped);
}

/** Files of the index that could not be read. */
function unreadFiles(reader: IndexReader): readonly SkippedFile[] {
  return [...reader.files()].flatMap(([source, { error }]) => (error ? [{ source, reason: error }] : []));
}

function createEmbed(embedder: Embedder | undefined, embedding: Retry, abortSignal: AbortSignal): EmbedTexts {
  return async (texts) => {
    if (!embedder) throw new TypeError('no model of embeddings is configured');
    try {
      const vectors = await embedder.embedTexts(texts, abortSignal);
      embedding.succeed();
      return vectors;
    } catch (error) {
      embedding.fail(isGatewayError(error) ? `${error.code}: ${error.message}` : 'the model cannot be reached');
      throw error;
    }
  };
}
