import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** Makes a folder under the system's temporary one, which is gone after the tests of the file. Call it inside `describe`. */
export function useTempFolder(word: string): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), `tollgate-${word}-`));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const folders: string[] = [];

/** A new folder that holds these files (by relative path); removed by {@link removeFolders}. */
export function makeFolder(files: Readonly<Record<string, string>> = {}): string {
  const folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'tollgate-config-')));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

/** For `afterEach`. */
export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}
