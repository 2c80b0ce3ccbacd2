import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { storeUnavailable } from '../kit/failure.ts';
import { fromRow, type LedgerRecord, type LedgerRow, toRow } from './ledger-record.ts';

/** A line of the journal: records that were decided together, and the number of the first. */
export interface JournalLine {
  readonly first: number;
  readonly records: readonly LedgerRecord[];
}

/**
 * Records that are durable before they are in the tables: in the page cache after one `write`, which is cheap and
 * survives the death of the process. Only the process that is alone with the store may change it.
 */
export interface Journal {
  /** The lines that were written whole, for whoever finds the journal. */
  read(): readonly JournalLine[];
  /** Writes a line behind those since the last {@link Journal.clear}; throws, and leaves nothing, when it does not fit. */
  append(line: JournalLine): void;
  /** Forgets all lines. Never throws: what cannot be cut off now is cut off before the next line. */
  clear(): void;
  /** Whether the file was removed or replaced while it is open. */
  isLost(): boolean;
  close(): void;
}

export const JOURNAL_FILE = 'tollgate.journal';

const HEADER = 'tollgate journal 1\n';

const NO_ROOM = 'The journal of the sqlite store cannot be written: check the disk and the rights of its folder.';
const NEWER = 'The journal of the sqlite store was written by a newer version of this gateway: start that version.';

/** A file of lines `<crc32 of the rest> <number of the first record> <records as JSON>` under a line with the version. `writeTo` may be a worse disk. */
export function createJournal(file: string, writeTo: typeof writeSync = writeSync): Journal {
  let fd: number | undefined;
  /** Up to where the file is what this process wrote and acknowledged. */
  let length = 0;
  /** Whether something may be behind that. */
  let hasTail = true;

  const open = (): number => {
    fd ??= openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
    return fd;
  };

  const cut = (): void => {
    ftruncateSync(open(), length);
    hasTail = false;
  };

  const tryToCut = (): void => {
    hasTail = true;
    try {
      cut();
    } catch {
      // Before the next line it is tried again.
    }
  };

  const write = (text: string): void => {
    if (hasTail) cut();
    const bytes = Buffer.from(text);
    let written = 0;
    while (written < bytes.length) {
      written += writeTo(open(), bytes, written, bytes.length - written, length + written);
    }
    length += written;
  };

  return {
    read: () => {
      const text = refuseWith(NO_ROOM, () => readWhole(open()));
      // A shorter one: the process died while it wrote its first line.
      if (!text.startsWith(HEADER) && !HEADER.startsWith(text)) throw storeUnavailable(NEWER);
      const lines: JournalLine[] = [];
      for (const row of text.slice(HEADER.length).split('\n')) {
        const line = readLine(row);
        if (!line) break;
        lines.push(line);
      }
      return lines;
    },
    append: ({ first, records }) => {
      const row = `${first} ${JSON.stringify(records.map(toRow))}`;
      try {
        write(`${length === 0 ? HEADER : ''}${crc32(row)} ${row}\n`);
      } catch (cause) {
        tryToCut();
        throw storeUnavailable(NO_ROOM, cause);
      }
    },
    clear: () => {
      length = 0;
      tryToCut();
    },
    isLost: () => fd !== undefined && statSync(file, { throwIfNoEntry: false })?.ino !== fstatSync(fd).ino,
    close: () => {
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
    },
  };
}

function refuseWith<T>(why: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw storeUnavailable(why, cause);
  }
}

function readWhole(fd: number): string {
  const bytes = Buffer.alloc(fstatSync(fd).size);
  let read = 0;
  for (let more = -1; more !== 0; read += more) more = readSync(fd, bytes, read, bytes.length - read, read);
  return bytes.toString('utf8', 0, read);
}

/** Undefined for a line that was not written whole. */
function readLine(row: string): JournalLine | undefined {
  const [, sum, rest = '', first, json = ''] = /^(\d+) ((\d+) (.*))$/s.exec(row) ?? [];
  if (sum === undefined || Number(sum) !== crc32(rest)) return undefined;
  return { first: Number(first), records: (JSON.parse(json) as LedgerRow[]).map(fromRow) };
}
