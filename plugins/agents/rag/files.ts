import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { ENDINGS } from './parse/index.ts';
import { BadFile } from './section.ts';

/** Current file of the folder. */
export interface FoundFile {
  /** Relative to the folder, with `/`. */
  readonly source: string;
  readonly path: string;
  readonly size: number;
  /** Size and times; it differs if the file does. */
  readonly stamp: string;
}

export interface Listing {
  readonly files: readonly FoundFile[];
  /** Skipped files and folders, with the reason. */
  readonly skipped: readonly { readonly source: string; readonly reason: string }[];
  /** Subfolders that are unreadable at present: their index entries are kept. */
  readonly unreadable: readonly string[];
}

/** Maximum files of a folder, and maximum depth. */
const MAX_FILES = 20_000;
const MAX_DEPTH = 16;

/**
 * Lists the readable files of a folder by name. Links are not followed: they could lead out of it. Throws if the folder
 * itself is unreadable.
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
        // Deleted since its folder was read, or its name is not valid text.
        if (code === 'ENOENT') continue;
        skipped.push({ source, reason: `cannot be read: ${code}` });
        if (entry.isDirectory()) unreadable.push(`${source}/`);
      }
    }
  };
  await walk(root, 0);
  return { files, skipped, unreadable };
}

function refusal(stats: Stats, maxBytes: number): string | undefined {
  if (stats.isSymbolicLink()) return 'a link, which is not followed';
  if (!stats.isFile()) return 'not a regular file';
  return stats.size > maxBytes ? `${stats.size} bytes; the limit is ${maxBytes}` : undefined;
}

function stampOf({ size, mtimeMs, ctimeMs, ino }: Stats): string {
  return `${size} ${mtimeMs} ${ctimeMs} ${ino}`;
}

/** Thrown if the file is being written or its disk fails; the next check reads it. */
export class NotNow extends Error {
  override readonly name = 'NotNow';
}

/**
 * Reads at most `maxBytes` of the listed file, even if its name now belongs to another one. Throws {@link NotNow} if it
 * changes meanwhile.
 */
export async function readBounded(file: FoundFile, maxBytes: number): Promise<Buffer> {
  // Without O_NONBLOCK, opening a pipe in the file's place would block forever.
  const handle = await open(file.path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW).catch(
    (error: unknown) => fail(error),
  );
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > maxBytes || stampOf(stats) !== file.stamp) throw new NotNow('the file changed');
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length < bytes.length || stampOf(await handle.stat()) !== file.stamp)
      throw new NotNow('the file changed during reading');
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
  if (code === 'EACCES' || code === 'EPERM') throw new BadFile(`no permission to read: ${code}`);
  throw new NotNow(`temporarily unreadable: ${code}`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

export function hashOf(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}
