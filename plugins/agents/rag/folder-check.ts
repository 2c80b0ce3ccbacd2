import { type ChildProcess, fork } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isGatewayError, type Log } from '../../../contract/index.ts';
import type { EmbedTexts } from './embed-pending.ts';
import type { Embedder } from './embedder.ts';
import { type Listing, listFiles } from './files.ts';
import { diffFolder } from './folder-diff.ts';
import type { IndexLock } from './index-lock.ts';
import type { IndexReader } from './index-reader.ts';
import { createRetry, type Retry } from './retry.ts';
import type { UpdateResult } from './update-index.ts';
import { recipeOf, type UpdateJob } from './update-job.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

export interface FolderCheckDeps {
  readonly lock: Pick<IndexLock, 'isHeldElsewhere'>;
  readonly reader: IndexReader;
  readonly embedder: Embedder | undefined;
  readonly log: Log;
}

/** Compares the folder with the index and, if they differ, runs a worker that updates the index. */
interface FolderCheck {
  /** Resolves with true if it must run again even without changes. Never rejects. */
  run(): Promise<boolean>;
  /** Kills the running worker. */
  kill(): void;
}

export function createFolderCheck(
  options: Omit<UpdateJob, 'refused'>,
  { lock, reader, embedder, log }: FolderCheckDeps,
  abortSignal: AbortSignal,
): FolderCheck {
  const update = createRetry((reason) => log.warn({ reason }, 'the knowledge base could not be updated'));
  const embedding = createRetry((reason) =>
    log.warn({ reason }, 'embeddings of passages are pending; until then search uses words only'),
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
      // Skip the file that crashed the worker; another worker does the rest.
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

/** Records the end of a worker. An end because of embeddings is no failure of the worker. */
function settle(
  outcome: Exclude<WorkerOutcome, { readonly error: string }>,
  update: Retry,
  embedding: Retry,
  log: Log,
): void {
  if ('result' in outcome) {
    const { files, changed, passages, lost } = outcome.result;
    update.succeed();
    if (changed > 0 && !lost) log.info({ files, changed, passages }, 'knowledge base indexed');
  } else if (!embedding.isFailing()) update.fail(outcome.stopped);
}

/** Unreadable files of the index. */
function unreadFiles(reader: IndexReader): readonly SkippedFile[] {
  return [...reader.files()].flatMap(([source, { error }]) => (error ? [{ source, reason: error }] : []));
}

function createEmbed(embedder: Embedder | undefined, embedding: Retry, abortSignal: AbortSignal): EmbedTexts {
  return async (texts) => {
    if (!embedder) throw new TypeError('no embedding model is configured');
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

/** Skipped file with the reason. */
interface SkippedFile {
  readonly source: string;
  readonly reason: string;
}

/** Maximum files named per check. */
const MAX_NAMED = 50;

/** Logs skipped files: each once, and again if the reason changed. */
function createSkippedReporter(log: Log): (files: readonly SkippedFile[]) => void {
  let reported = new Map<string, string>();
  return (files) => {
    const fresh = files.filter(({ source, reason }) => reported.get(source) !== reason);
    reported = new Map(files.map(({ source, reason }) => [source, reason]));
    for (const file of fresh.slice(0, MAX_NAMED)) log.warn({ ...file }, 'file of the knowledge base skipped');
    if (fresh.length > MAX_NAMED)
      log.warn({ files: fresh.length - MAX_NAMED }, 'more files of the knowledge base skipped');
  };
}

interface Progress {
  /** Shows that `done` of `total` are done, and `what` is next. */
  show(what: string, done: number, total: number): void;
  end(): void;
}

const WIDTH = 30;

/** No progress is shown for fewer steps: they finish too fast. */
const MIN_STEPS = 20;

/** Progress bar on a terminal; elsewhere one log line per tenth. */
function createProgress(log: Log, terminal: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr): Progress {
  let shown = 0;
  let isDrawn = false;
  return {
    show(what, done, total) {
      if (total < MIN_STEPS) return;
      const tenth = Math.floor((done * 10) / total);
      if (terminal.isTTY) {
        const filled = '#'.repeat(Math.round((done * WIDTH) / total)).padEnd(WIDTH);
        terminal.write(`\r\u001b[Kindexing [${filled}] ${done}/${total} ${printable(what).slice(0, 40)}`);
        isDrawn = true;
      } else if (tenth > shown) log.info({ done, total }, `${tenth * 10} % of the knowledge base is indexed`);
      shown = Math.max(shown, tenth);
    },
    end() {
      if (isDrawn) terminal.write('\r\u001b[K');
    },
  };
}

/** Removes control characters from a file's name. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}

/** Index update in a separate process. */
interface IndexWorker {
  readonly outcome: Promise<WorkerOutcome>;
  /** Kills the process at once; the index is consistent at any time. */
  kill(): void;
}

/** End of a worker: a result, a reason, or the file that crashed it. */
type WorkerOutcome =
  | { readonly result: UpdateResult }
  | { readonly stopped: string }
  | { readonly source: string; readonly stamp: string; readonly error: string };

interface WorkerEvents {
  readonly embed: EmbedTexts;
  onFile(source: string, done: number, total: number): void;
  onFailed(source: string, reason: string): void;
}

/** Limits of time and memory for one file. */
const FILE_MS = 45_000;
const MEMORY_MB = 1024;

/** Lower priority than the gateway, so that requests come first. */
const PRIORITY = 10;

/** Starts a worker; `fileMs` is the time limit of one file. */
export function startWorker(job: UpdateJob, events: WorkerEvents, fileMs = FILE_MS): IndexWorker {
  const child = forkWorker();
  const send = (message: ToWorker): void => void (child.connected && child.send(message));
  let reading: { readonly source: string; readonly stamp: string } | undefined;
  let isLate = false;
  let isKilled = false;
  let end: WorkerOutcome | undefined;
  let clock: NodeJS.Timeout | undefined;
  const startClock = (): void => {
    clearTimeout(clock);
    clock = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, fileMs);
  };
  const stopReading = (): void => {
    clearTimeout(clock);
    reading = undefined;
  };
  const embed = (id: number, texts: readonly string[]): Promise<void> =>
    events.embed(texts).then(
      (vectors) => send({ type: 'vectors', id, vectors }),
      () => send({ type: 'no-vectors', id }),
    );
  child.on('message', (message: FromWorker) => {
    if (message.type === 'file') {
      reading = { source: message.source, stamp: message.stamp };
      startClock();
      events.onFile(message.source, message.done, message.total);
    } else if (message.type === 'failed') events.onFailed(message.source, message.reason);
    else {
      stopReading();
      if (message.type === 'embed') void embed(message.id, message.texts);
      else end = message.type === 'end' ? { result: message.result } : { stopped: message.reason };
    }
  });
  const outcome = new Promise<WorkerOutcome>((resolve) => {
    child.on('error', (error) => resolve({ stopped: error.message }));
    child.on('exit', (code, signal) => {
      clearTimeout(clock);
      const error = isLate ? `reading it took more than ${fileMs / 1000} s` : 'reading it took too much memory';
      resolve(
        end ?? (reading && !isKilled ? { ...reading, error } : { stopped: `the process ended with ${signal ?? code}` }),
      );
    });
  });
  send({ type: 'start', job });
  return {
    outcome,
    kill() {
      isKilled = true;
      child.kill('SIGKILL');
    },
  };
}

function forkWorker(): ChildProcess {
  const ending = path.extname(fileURLToPath(import.meta.url));
  const child = fork(fileURLToPath(new URL(`./index-worker${ending}`, import.meta.url)), {
    // When running from source, the worker needs the TypeScript loader too.
    execArgv: [`--max-old-space-size=${MEMORY_MB}`, ...(ending === '.ts' ? process.execArgv : [])],
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  });
  try {
    if (child.pid !== undefined) os.setPriority(child.pid, PRIORITY);
  } catch {
    // Not permitted, or already ended.
  }
  return child;
}
