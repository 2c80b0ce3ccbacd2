import { stat } from 'node:fs/promises';
import path from 'node:path';
import { definePlugin, type Store } from '../../../core/index.ts';
import { createDocuments } from '../kit/documents.ts';
import { storeUnavailable } from '../kit/failure.ts';
import { createCensus } from './census.ts';
import { createSqliteCounters } from './counters.ts';
import { closeDatabase, type Database, type DatabaseOptions, FILE, openDatabase, openLock } from './database.ts';
import { createDocumentAdapters } from './documents.ts';
import { createJournal, JOURNAL_FILE, type Journal } from './journal.ts';
import { createSqliteLedger } from './ledger.ts';
import { createLedgerAlone } from './ledger-alone.ts';
import { createLedgerTables } from './ledger-tables.ts';
import { createPresence } from './presence.ts';
import { createPurge, startPurge } from './purge.ts';
import { createSqliteSets } from './sets.ts';
import { createWriter } from './writer.ts';

/**
 * Opens the embedded store: one file, `tollgate.db`, that several processes of one machine may share. Rejects with
 * `store_unavailable` when the folder or the file cannot be used.
 */
export async function openSqlite(options: DatabaseOptions): Promise<Store> {
  const file = path.join(options.folder, FILE);
  const database = await openDatabase(options);
  const { ino } = await stat(file);
  const writer = createWriter(database);
  const presence = createPresence(writer, async () => createCensus(await openLock(options.folder), database));
  const tables = createLedgerTables(database);
  const journal = createJournal(path.join(options.folder, JOURNAL_FILE));
  refuseNewerJournal(journal, database);
  const alone = createLedgerAlone(database, writer, tables, journal);
  presence.add(alone);
  const stopPurge = startPurge(writer, createPurge(database));
  const ping = database.prepare('SELECT count(*) AS tables FROM sqlite_schema');
  let closing: Promise<void> | undefined;

  const close = async (): Promise<void> => {
    stopPurge();
    await presence.close();
    await writer.close();
    presence.leave();
    journal.close();
    closeDatabase(database);
  };

  return {
    kind: 'sqlite',
    keyv: createDocuments(createDocumentAdapters(database, writer)),
    // What must survive a power cut cannot wait in a journal that nobody syncs.
    ledger: createSqliteLedger(writer, presence, tables, options.durability === 'full' ? undefined : alone),
    sets: createSqliteSets(database, writer),
    counters: createSqliteCounters(database, writer, presence),
    health: async () => {
      await writer.read(() => ping.get());
      alone.check();
      const found = await stat(file).catch(() => undefined);
      if (found?.ino !== ino)
        throw storeUnavailable('The file of the sqlite store was removed or replaced: restart the gateway.');
    },
    close: () => (closing ??= close()),
  };
}

/** Nobody may go on without what a newer version left there. */
function refuseNewerJournal(journal: Journal, database: Database): void {
  try {
    journal.read();
    journal.close();
  } catch (error) {
    closeDatabase(database);
    throw error;
  }
}

export default definePlugin({
  name: 'sqlite',
  kind: 'store',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    required: ['folder'],
    properties: {
      folder: { type: 'string', minLength: 1, description: 'The folder of the database file.' },
      durability: {
        type: 'string',
        enum: ['normal', 'full'],
        description: '`normal` survives a crash of the process, `full` also a power cut.',
      },
    },
  },
  setup(api, { folder, durability }) {
    api.store(() => openSqlite(durability === undefined ? { folder } : { folder, durability }));
  },
});
