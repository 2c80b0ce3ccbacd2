import type { Database } from './database.ts';

/** Name of a folder's word table. */
export function wordTable(id: number): string {
  return `words_${id}`;
}

/**
 * Opens or creates the word table of a folder. Each folder of `access` has a separate one, so that results in one do
 * not depend on another.
 */
export function openWordTable(database: Database, folder: string): string {
  database.prepare('INSERT OR IGNORE INTO folders (name) VALUES (?)').run(folder);
  const table = wordTable(Number(database.prepare('SELECT id FROM folders WHERE name = ?').get(folder)?.['id']));
  database.exec(
    `CREATE VIRTUAL TABLE IF NOT EXISTS ${table} USING fts5(title, headings, text, parts, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2')`,
  );
  return table;
}
