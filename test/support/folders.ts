import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/**
 * Creates a folder in the system's temporary folder and removes it after the tests of the file. Call it inside
 * `describe`.
 */
export function useTempFolder(word: string): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), `tollgate-${word}-`));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const folders: string[] = [];

/** Creates a folder with these files (by relative path); {@link removeFolders} removes it. */
export function makeFolder(files: Readonly<Record<string, string>> = {}): string {
  const folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'tollgate-config-')));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

/** Call it in `afterEach`. */
export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}
