import { stat } from 'node:fs/promises';
import path from 'node:path';
import { definePlugin, type Store, type StoreWatcher } from '../../../core/index.ts';
import { createDocuments } from '../kit/documents.ts';
import { storeUnavailable } from '../kit/failure.ts';
import { createSqliteCounters } from './counters.ts';
import { closeDatabase, type DatabaseOptions, FILE, openDatabase } from './database.ts';
import { createDocumentAdapters } from './documents.ts';
import { createSqliteLedger } from './ledger.ts';
import { probeSqlite } from './probe.ts';
import { createPurge, startPurge } from './purge.ts';
import { createSqliteSets } from './sets.ts';
import { Writer } from './writer.ts';

/**
 * Opens the embedded store: one file, `tollgate.db`, that several processes of one machine may share. Rejects with
 * `store_unavailable` when the folder or the file cannot be used.
 */
export async function openSqlite(options: DatabaseOptions, observe?: StoreWatcher): Promise<Store> {
  const file = path.join(options.folder, FILE);
  const database = await openDatabase(options);
  const { ino } = await stat(file);
  const writer = new Writer(database, file, observe);
  const stopPurge = startPurge(writer, createPurge(database));
  const ping = database.prepare('SELECT count(*) AS tables FROM sqlite_schema');
  let closing: Promise<void> | undefined;

  const close = async (): Promise<void> => {
    stopPurge();
    await writer.close();
    closeDatabase(database);
  };

  return {
    kind: 'sqlite',
    keyv: createDocuments(createDocumentAdapters(database, writer)),
    ledger: createSqliteLedger(database, writer),
    sets: createSqliteSets(database, writer),
    counters: createSqliteCounters(database, writer),
    health: async () => {
      await writer.read('store.health', () => ping.get());
      const found = await stat(file).catch(() => undefined);
      if (found?.ino !== ino)
        throw storeUnavailable('The file of the sqlite store was removed or replaced: restart the gateway.');
    },
    close: () => (closing ??= close()),
  };
}

export default definePlugin({
  name: 'sqlite',
  kind: 'store',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    examples: ['sqlite:./data'],
    properties: {
      folder: { type: 'string', format: 'path', default: 'data', description: 'The folder of the database file.' },
      durability: {
        type: 'string',
        enum: ['normal', 'full'],
        description: '`normal` survives a crash of the process, `full` also a power cut.',
      },
    },
  },
  setup(api, { folder, durability }) {
    api.store(
      (observe) => openSqlite(durability === undefined ? { folder } : { folder, durability }, observe),
      () => probeSqlite(folder),
    );
  },
});
