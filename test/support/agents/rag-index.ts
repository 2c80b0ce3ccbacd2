import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Scope } from '../../../plugins/agents/rag/access.ts';
import { type Database, openIndex } from '../../../plugins/agents/rag/database.ts';
import type { EmbedTexts } from '../../../plugins/agents/rag/embed-pending.ts';
import { normalise } from '../../../plugins/agents/rag/embedder.ts';
import { createIndexReader, type IndexReader, type Passage } from '../../../plugins/agents/rag/index-reader.ts';
import { type Hit, loadVectorTable, searchPassages } from '../../../plugins/agents/rag/retrieve.ts';
import { toQueryWords } from '../../../plugins/agents/rag/terms.ts';
import { type UpdateDeps, type UpdateResult, updateIndex } from '../../../plugins/agents/rag/update-index.ts';
import type { UpdateJob } from '../../../plugins/agents/rag/update-job.ts';
import { embedWords } from '../../../plugins/providers/echo/index.ts';

/** Vectors in the format of the echo provider. */
export const embedHashes = (text: string): Float32Array => normalise(embedWords(text, 384));

/** Scope of all users without rules on folders. */
export const EVERYTHING: Scope = Object.freeze({ folders: new Set(['']), includes: () => true });

/** Folder of documents and its index, without a gateway. */
export interface TestIndex {
  readonly documents: string;
  readonly job: UpdateJob;
  readonly database: Database;
  readonly reader: IndexReader;
  write(files: Readonly<Record<string, string | Uint8Array>>): void;
  /** Updates the index in this process. */
  update(job?: Partial<UpdateJob>, deps?: Partial<UpdateDeps>): Promise<UpdateResult>;
  /** Reasons why files have no passages. */
  errors(): Readonly<Record<string, string>>;
  sources(query: string, scope?: Scope): readonly string[];
  /** Best passage for a query by words. */
  first(query: string): Passage | undefined;
  searchBoth(query: string, model: string, scope?: Scope): Promise<readonly Hit[]>;
  close(): void;
}

export async function openTestIndex(folder: string): Promise<TestIndex> {
  const documents = path.join(folder, 'documents');
  const indexFolder = path.join(folder, 'data');
  mkdirSync(documents, { recursive: true });
  const database = await openIndex(indexFolder, 1000);
  const reader = createIndexReader(database);
  const job: UpdateJob = {
    folder: documents,
    indexFolder,
    holder: 'test',
    chunkWords: 300,
    maxFileBytes: 2_000_000,
    maxChunks: 50_000,
    folders: [],
    refused: [],
  };
  const embed: EmbedTexts = async (texts) => texts.map(embedHashes);
  return {
    documents,
    job,
    database,
    reader,
    write(files) {
      for (const [name, content] of Object.entries(files)) {
        const file = path.join(documents, name);
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileSync(file, content);
      }
    },
    update: (changes = {}, deps = {}) =>
      updateIndex({ ...job, ...changes }, { database, embed, onFile: async () => {}, onFailed: () => {}, ...deps }),
    errors: () =>
      Object.fromEntries([...reader.files()].flatMap(([source, { error }]) => (error ? [[source, error]] : []))),
    sources: (query, scope = EVERYTHING) =>
      searchPassages(reader, query, 50, scope, undefined).map(({ source }) => source),
    first: (query) => reader.passage(reader.searchWords(toQueryWords(query), EVERYTHING.folders, 1).hits[0]?.id ?? 0),
    async searchBoth(query, model, scope = EVERYTHING) {
      const table = await loadVectorTable(reader, model);
      return searchPassages(reader, query, 10, scope, (depth) =>
        table.nearest(embedHashes(query), depth, scope.folders),
      );
    },
    close: () => database.close(),
  };
}

/** PDF with a page per text, and an information dictionary with a title. */
export function makePdf(title: string, pages: readonly string[]): Buffer {
  const kids = pages.map((_, at) => `${5 + at * 2} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    `<< /Title (${title}) >>`,
    ...pages.flatMap((text, at) => {
      const content = `BT /F1 12 Tf 72 720 Td (${text}) Tj ET`;
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${6 + at * 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
        `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ];
    }),
  ];
  let file = '%PDF-1.4\n';
  const offsets = objects.map((object, at) => {
    const offset = file.length;
    file += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const start = file.length;
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R /Info 4 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(file, 'latin1');
}

/** Tables of index version 2. */
const FORMER_TABLES = `
CREATE TABLE files (source TEXT PRIMARY KEY, stamp TEXT NOT NULL, hash TEXT NOT NULL, recipe TEXT NOT NULL, fault TEXT) STRICT;
CREATE TABLE chunks (id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, nth INTEGER NOT NULL, title TEXT NOT NULL, location TEXT NOT NULL, text TEXT NOT NULL, vector TEXT) STRICT;
CREATE INDEX chunks_by_source ON chunks (source);
CREATE VIRTUAL TABLE words USING fts5(title, headings, text, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE vectors (hash TEXT PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL) STRICT;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
INSERT INTO files VALUES ('old.md', 's', 'h', 'r', NULL);
INSERT INTO chunks (source, nth, title, location, text) VALUES ('old.md', 0, 'Old', '{}', 'what an older version indexed');
INSERT INTO words (rowid, title, headings, text) VALUES (1, 'Old', '', 'what an older version indexed');
INSERT INTO facts VALUES ('revision', '7');
`;

interface FormerVector {
  readonly hash: string;
  readonly model: string;
  readonly vector: Float32Array;
}

/** Creates an index of version 2 with one passage, and writes any number as its version. */
export async function makeFormerIndex(
  folder: string,
  version: number,
  vectors: readonly FormerVector[] = [],
): Promise<void> {
  const database = await openIndex(folder, 1000);
  for (const table of ['files', 'chunks', 'folders', 'vectors', 'facts']) database.exec(`DROP TABLE ${table}`);
  database.exec(`${FORMER_TABLES} PRAGMA user_version=${version}`);
  const put = database.prepare('INSERT INTO vectors VALUES (?, ?, ?)');
  for (const { hash, model, vector } of vectors) put.run(hash, model, new Uint8Array(vector.buffer));
  database.close();
}
