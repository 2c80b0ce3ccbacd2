import type { Database } from './database.ts';

/** The name of a folder's table of words. */
export function wordTable(id: number): string {
  return `words_${id}`;
}

/**
 * The table of a folder's words, made when it is not there: each folder of `access` has one of its own, so that nothing that is
 * found in one depends on another.
 */
export function openWordTable(database: Database, folder: string): string {
  database.prepare('INSERT OR IGNORE INTO folders (name) VALUES (?)').run(folder);
  const table = wordTable(Number(database.prepare('SELECT id FROM folders WHERE name = ?').get(folder)?.['id']));
  database.exec(
    `CREATE VIRTUAL TABLE IF NOT EXISTS ${table} USING fts5(title, headings, text, parts, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2')`,
  );
  return table;
}
