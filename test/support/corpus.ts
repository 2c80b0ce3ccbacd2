import { existsSync, readdirSync, readFileSync } from 'node:fs';

const ROOT = new URL('../../../shared/corpora/provider-fixtures/', import.meta.url);

/** Whether recorded vendor answers lie beside the project; tests that need them are skipped by name when not. */
export const hasProviderFixtures = existsSync(ROOT);

/** Names of the files of one folder that end so; none when the corpus is absent. */
export function corpusFiles(folder: string, ending: string): readonly string[] {
  if (!hasProviderFixtures) return [];
  return readdirSync(new URL(folder, ROOT)).filter((name) => name.endsWith(ending));
}

export function corpusText(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

export function corpusJson(path: string): unknown {
  return JSON.parse(corpusText(path));
}

/** One JSON value in every line. */
export function corpusLines(path: string): readonly { readonly data: string }[] {
  return corpusText(path)
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((data) => ({ data }));
}
