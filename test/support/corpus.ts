import { readdirSync, readFileSync } from 'node:fs';

/** Texts and recordings of other projects; the README names the source of each folder. */
const CORPORA = new URL('../fixtures/corpora/', import.meta.url);

/** Names of the files in one folder with this ending. */
export function corpusFiles(folder: string, ending: string): readonly string[] {
  return readdirSync(new URL(folder, CORPORA)).filter((name) => name.endsWith(ending));
}

export function corpusText(path: string): string {
  return readFileSync(new URL(path, CORPORA), 'utf8');
}

export function corpusJson(path: string): unknown {
  return JSON.parse(corpusText(path));
}

/** One JSON value per line. */
export function corpusLines(path: string): readonly { readonly data: string }[] {
  return corpusText(path)
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((data) => ({ data }));
}

/** Cases of JSONTestSuite: a name with the prefix `y_` must parse, one with `n_` must not. */
export function jsonTestSuite(): readonly { readonly name: string; readonly bytes: Buffer }[] {
  const cases = Object.entries(corpusJson('JSONTestSuite/cases.json') as Readonly<Record<string, string>>);
  return [
    ...cases.map(([name, base64]) => ({ name, bytes: Buffer.from(base64, 'base64') })),
    { name: 'n_structure_100000_opening_arrays.json', bytes: Buffer.from('['.repeat(100_000)) },
    { name: 'n_structure_open_array_object.json', bytes: Buffer.from(`${'[{"":'.repeat(50_000)}\n`) },
  ];
}
