import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { ENDINGS } from './parse/index.ts';
import { BadFile } from './section.ts';

/** A file of the folder as it is now. */
export interface FoundFile {
  /** Relative to the folder, with `/`. */
  readonly source: string;
  readonly path: string;
  readonly size: number;
  /** Differs when the file does: size and times. */
  readonly stamp: string;
}

export interface Listing {
  readonly files: readonly FoundFile[];
  /** Files and folders that are passed over, and why. */
  readonly skipped: readonly { readonly source: string; readonly reason: string }[];
  /** Subfolders that could not be looked into now: what is known of them is kept. */
  readonly unreadable: readonly string[];
}

/** The most files of a folder, and the deepest subfolder. */
const MAX_FILES = 20_000;
const MAX_DEPTH = 16;

/**
 * The files of a folder that can be read, in the order of their names. Links are not followed: they could lead out of it.
 * Throws when the folder itself cannot be read.
 */
export async function listFiles(folder: string, maxBytes: number): Promise<Listing> {
  const root = await realpath(folder);
  const files: FoundFile[] = [];
  const skipped: { source: string; reason: string }[] = [];
  const unreadable: string[] = [];
  const add = async (full: string, source: string): Promise<void> => {
    const stats = await lstat(full);
    const reason = refusal(stats, maxBytes);
    if (reason !== undefined) skipped.push({ source, reason });
    else if (files.length >= MAX_FILES) skipped.push({ source, reason: `more than ${MAX_FILES} files` });
    else files.push({ source, path: full, size: stats.size, stamp: stampOf(stats) });
  };
  const walk = async (where: string, depth: number): Promise<void> => {
    const entries = (await readdir(where, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue;
      const full = path.join(where, entry.name);
      const source = path.relative(root, full).split(path.sep).join('/');
      try {
        if (entry.isDirectory() && depth < MAX_DEPTH) await walk(full, depth + 1);
        else if (entry.isDirectory()) skipped.push({ source, reason: `more than ${MAX_DEPTH} folders deep` });
        else if (ENDINGS.has(path.extname(entry.name).toLowerCase())) await add(full, source);
      } catch (error) {
        const code = codeOf(error);
        // Gone since its folder was read, or a name that is no text.
        if (code === 'ENOENT') continue;
        skipped.push({ source, reason: `cannot be looked at: ${code}` });
        if (entry.isDirectory()) unreadable.push(`${source}/`);
      }
    }
  };
  await walk(root, 0);
  return { files, skipped, unreadable };
}

function refusal(stats: Stats, maxBytes: number): string | undefined {
  if (stats.isSymbolicLink()) return 'a link, which is not followed';
  if (!stats.isFile()) return 'no plain file';
  return stats.size > maxBytes ? `${stats.size} bytes; at most ${maxBytes} are read` : undefined;
}

function stampOf({ size, mtimeMs, ctimeMs, ino }: Stats): string {
  return `${size} ${mtimeMs} ${ctimeMs} ${ino}`;
}

/** The file is being written, or its disk fails now: to be read at the next check. */
export class NotNow extends Error {
  override readonly name = 'NotNow';
}

/**
 * Reads at most `maxBytes` of a file: of the one that was listed, also when something else has its name by now. Throws
 * {@link NotNow} when it changes meanwhile.
 */
export async function readBounded(file: FoundFile, maxBytes: number): Promise<Buffer> {
  // Without O_NONBLOCK, a pipe put in the file's place would be waited for without end.
  const handle = await open(file.path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW).catch(
    (error: unknown) => fail(error),
  );
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > maxBytes || stampOf(stats) !== file.stamp) throw new NotNow('it changed');
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length < bytes.length || stampOf(await handle.stat()) !== file.stamp)
      throw new NotNow('it changed while it was read');
    return bytes;
  } catch (error) {
    return fail(error);
  } finally {
    await handle.close();
  }
}

function fail(error: unknown): never {
  if (error instanceof NotNow) throw error;
  const code = codeOf(error);
  if (code === 'EACCES' || code === 'EPERM') throw new BadFile(`may not be read: ${code}`);
  throw new NotNow(`cannot be read now: ${code}`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

export function hashOf(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}
