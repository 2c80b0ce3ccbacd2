import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** Makes a folder under the system's temporary one, which is gone after the tests of the file. Call it inside `describe`. */
export function useTempFolder(word: string): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), `tollgate-${word}-`));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
