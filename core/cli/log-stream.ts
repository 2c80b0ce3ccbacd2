import { fstatSync } from 'node:fs';
import { type DestinationStream, pino } from 'pino';

export interface StdoutOptions {
  /** Whether every line is written at once, for somebody who watches. */
  readonly isWatched: boolean;
  /** Whether other processes, the workers of the same gateway, write to it too. */
  readonly isShared: boolean;
  /** Called when stdout takes no more (a full disk, a reader that left), once until it does again. */
  readonly onFault?: ((error: NodeJS.ErrnoException) => void) | undefined;
}

/** A write is a thread's work and two switches to it, which cost more than making the thirty lines that fit in here. */
const BLOCK_BYTES = 16 * 1024;

/** What a pipe takes whole (`PIPE_BUF`): other workers' blocks do not get in between. */
const PIPE_BYTES = 4096;

/** The longest that a line waits for its block to fill. */
const LONGEST_WAIT_MS = 100;

/** Lines are kept up to this size while stdout takes none; those beyond it are lost. Requests never wait for the log. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** From here on somebody should look at it: such a line does not wait for its block to fill. */
const WARN = 40;

/** Stdout as pino's destination: lines leave in blocks, written by a thread; what is left is written at exit. */
export function openStdout({ isWatched, isShared, onFault }: StdoutOptions): DestinationStream {
  const blockBytes = isShared && !fstatSync(1).isFile() ? PIPE_BYTES : BLOCK_BYTES;
  const stream = pino.destination({
    dest: 1,
    sync: false,
    minLength: 1,
    maxWrite: blockBytes,
    maxLength: MAX_KEPT_BYTES,
  });
  let broken = false;
  // Pino would throw it, and so end the process, for anything but a closed pipe.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!broken) onFault?.(error);
    broken = true;
  });
  stream.on('write', () => {
    broken = false;
  });

  // The stream would gather lines itself, and copy its whole block for each: it asks for the block's length in bytes.
  let block = '';
  let bytes = 0;
  let isDue = false;
  const handOver = (): void => {
    if (bytes === 0) return;
    stream.write(block);
    block = '';
    bytes = 0;
  };
  const flush = stream.flush.bind(stream);
  stream.flush = (done) => {
    handOver();
    flush(done);
  };
  // At exit what is left is written synchronously, and sonic-boom 4 tries for ever where the disk is full.
  const flushSync = stream.flushSync.bind(stream);
  stream.flushSync = () => {
    if (broken) return;
    handOver();
    flushSync();
  };

  // Not the stream's own interval: that writes nothing, by a thread, ten times a second while nobody logs.
  const handOverSoon = (): void => {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      handOver();
    }, LONGEST_WAIT_MS).unref();
  };

  const destination = {
    // Asks pino to tell the level of each line.
    [pino.symbols.needsMetadataGsym]: true,
    lastLevel: 0,
    write(line: string): void {
      const length = Buffer.byteLength(line);
      if (bytes + length > blockBytes) handOver();
      block += line;
      bytes += length;
      if (isWatched || destination.lastLevel >= WARN) handOver();
      else handOverSoon();
    },
    flush: (done?: () => void) => stream.flush(done),
  };
  return destination;
}
