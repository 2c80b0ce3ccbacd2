import { createHash } from 'node:crypto';
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
  readonly modifiedMs: number;
}

export interface Listing {
  readonly files: readonly FoundFile[];
  /** Files that are passed over, and why. */
  readonly skipped: readonly { readonly source: string; readonly reason: string }[];
}

/** The most files of a folder, and the deepest subfolder. */
const MAX_FILES = 20_000;
const MAX_DEPTH = 16;

/** The files of a folder that can be read, in the order of their names. Links are not followed: they could lead out of it. */
export async function listFiles(folder: string, maxBytes: number): Promise<Listing> {
  const root = await realpath(folder);
  const files: FoundFile[] = [];
  const skipped: { source: string; reason: string }[] = [];
  const walk = async (where: string, depth: number): Promise<void> => {
    const entries = (await readdir(where, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      const full = path.join(where, entry.name);
      const source = path.relative(root, full).split(path.sep).join('/');
      if (entry.name.startsWith('.')) continue;
      if (entry.isDirectory()) {
        if (depth < MAX_DEPTH) await walk(full, depth + 1);
        else skipped.push({ source, reason: `more than ${MAX_DEPTH} folders deep` });
        continue;
      }
      if (!ENDINGS.has(path.extname(entry.name).toLowerCase())) continue;
      if (!entry.isFile())
        skipped.push({ source, reason: entry.isSymbolicLink() ? 'a link, which is not followed' : 'no plain file' });
      else if (files.length >= MAX_FILES) skipped.push({ source, reason: `more than ${MAX_FILES} files` });
      else {
        const { size, mtimeMs } = await lstat(full);
        if (size > maxBytes) skipped.push({ source, reason: `${size} bytes; at most ${maxBytes} are read` });
        else files.push({ source, path: full, size, modifiedMs: Math.floor(mtimeMs) });
      }
    }
  };
  await walk(root, 0);
  return { files, skipped };
}

/** Reads at most `maxBytes` of a file, also when it grew since it was listed. */
export async function readBounded(file: FoundFile, maxBytes: number): Promise<Buffer> {
  const handle = await open(file.path, 'r');
  try {
    const bytes = Buffer.alloc(Math.min(file.size, maxBytes) + 1);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
    if (bytesRead > maxBytes) throw new BadFile(`more than ${maxBytes} bytes`);
    return bytes.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

export function hashOf(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}
