import { isGatewayError, type Log } from '../../../core/index.ts';
import type { Database } from './database.ts';
import type { Embedder } from './embedder.ts';
import { type Listing, listFiles } from './files.ts';
import { createLease } from './lease.ts';
import type { Library } from './library.ts';
import { createNotices, type Notice } from './notices.ts';
import { type Job, recipeOf } from './pass.ts';
import { createProgress } from './progress.ts';
import { type PassOutcome, type RunningPass, startPass } from './start-pass.ts';
import { surveyFolder } from './survey.ts';

export interface IndexerOptions extends Omit<Job, 'refused'> {
  /** How often the folder is looked at; 0 once. */
  readonly watchMs: number;
}

export interface IndexerDeps {
  readonly database: Database;
  readonly library: Library;
  readonly embedder: Embedder | undefined;
  readonly log: Log;
}

export interface Indexer {
  /** Looks at the folder now, and from then on as often as it is to. */
  start(): void;
  close(): Promise<void>;
}

/** How long to wait before what did not work is tried again: doubled every time, to the most. */
const RETRY_MS = Object.freeze({ first: 2000, most: 300_000 });

/**
 * Looks at a folder and, where it differs from the index, runs a pass over it in a process of its own, one at a time over
 * all gateways on this index.
 */
export function createIndexer(
  { watchMs, ...options }: IndexerOptions,
  { database, library, embedder, log }: IndexerDeps,
): Indexer {
  const lease = createLease(database, options.holder);
  const stop = new AbortController();
  const say = createNotices(log);
  const sayTrouble = createOnce((reason) => log.warn({ reason }, 'the knowledge base could not be brought up to date'));
  const sayEmbedding = createOnce((reason) =>
    log.warn({ reason }, 'passages of the knowledge base wait for their embeddings; they are found by words meanwhile'),
  );
  const trouble = createRetry();
  const embedding = createRetry();
  const refused: { source: string; stamp: string; reason: string }[] = [];
  let pass: RunningPass | undefined;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;

  /** Whether it is to be looked at again although nothing may have changed. */
  async function look(): Promise<boolean> {
    const listing = await listFiles(options.folder, options.maxFileBytes);
    const failed: Notice[] = [];
    for (;;) {
      if (stop.signal.aborted || !isBehind(listing)) break;
      const outcome = await run(failed);
      if (!('fault' in outcome)) {
        settle(outcome);
        break;
      }
      refused.push({ source: outcome.source, stamp: outcome.stamp, reason: outcome.fault });
    }
    if (stop.signal.aborted) return false;
    const faults = [...library.files()].flatMap(([source, { fault }]) => (fault ? [{ source, reason: fault }] : []));
    say([...listing.skipped, ...faults, ...failed]);
    return failed.length > 0 || trouble.isOn() || library.isUnembedded();
  }

  function isBehind(listing: Listing): boolean {
    const now = Date.now();
    if (!trouble.isDue(now) || lease.isTaken(now)) return false;
    const { stale, gone } = surveyFolder(listing, library.files(), recipeOf(options));
    return stale.length + gone.length > 0 || (embedder !== undefined && library.isUnembedded() && embedding.isDue(now));
  }

  async function run(failed: Notice[]): Promise<PassOutcome> {
    const progress = createProgress(log);
    pass = startPass(
      { ...options, refused },
      {
        embed: embedTexts,
        onFile: progress.show,
        onFailed: (source, reason) => void failed.push({ source, reason }),
      },
    );
    try {
      return await pass.outcome;
    } finally {
      pass = undefined;
      progress.end();
    }
  }

  async function embedTexts(texts: readonly string[]) {
    if (!embedder) throw new TypeError('no model of embeddings is configured');
    try {
      const vectors = await embedder.embedTexts(texts, stop.signal);
      embedding.succeed();
      sayEmbedding(undefined);
      return vectors;
    } catch (error) {
      embedding.fail(Date.now());
      sayEmbedding(isGatewayError(error) ? `${error.code}: ${error.message}` : 'the model cannot be asked');
      throw error;
    }
  }

  function settle(outcome: Exclude<PassOutcome, { readonly fault: string }>): void {
    if ('result' in outcome) {
      const { files, changed, passages, lost } = outcome.result;
      trouble.succeed();
      sayTrouble(undefined);
      if (changed > 0 && !lost) log.info({ files, changed, passages }, 'the knowledge base is indexed');
    } else if (!embedding.isOn()) fail(outcome.stopped);
  }

  function fail(reason: string): void {
    if (stop.signal.aborted) return;
    trouble.fail(Date.now());
    sayTrouble(reason);
  }

  function lookAndGoOn(): void {
    looking = look()
      .catch((error: unknown) => {
        fail(error instanceof Error ? error.message : 'unknown');
        return true;
      })
      .then((isUnfinished) => {
        if (stop.signal.aborted || (watchMs === 0 && !isUnfinished)) return;
        timer = setTimeout(lookAndGoOn, watchMs || RETRY_MS.first);
        timer.unref();
      });
  }

  return {
    start: lookAndGoOn,
    async close() {
      stop.abort();
      clearTimeout(timer);
      pass?.kill();
      await looking;
      lease.release();
    },
  };
}

/** Says a reason when it is another than the last one; undefined says that all is well again. */
function createOnce(say: (reason: string) => void): (reason: string | undefined) => void {
  let last: string | undefined;
  return (reason) => {
    if (reason !== undefined && reason !== last) say(reason);
    last = reason;
  };
}

function createRetry() {
  let waitMs = 0;
  let dueAt = 0;
  return {
    isOn: () => waitMs > 0,
    isDue: (now: number) => now >= dueAt,
    succeed() {
      waitMs = 0;
      dueAt = 0;
    },
    fail(now: number) {
      waitMs = waitMs === 0 ? RETRY_MS.first : Math.min(waitMs * 2, RETRY_MS.most);
      dueAt = now + waitMs;
    },
  };
}
