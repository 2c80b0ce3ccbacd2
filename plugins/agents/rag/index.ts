import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { definePlugin, type GatewaySettings, OptionError, parseDuration, problemsOf } from '../../../core/index.ts';
import { createAccess } from './access.ts';
import { ragAgent } from './agent.ts';
import { createCallerPlan } from './caller-plan.ts';
import { checkFolders, checkRules } from './check-access.ts';
import { RAG_CONFIG } from './config.ts';
import { openIndex } from './database.ts';
import { createEmbedder } from './embedder.ts';
import { createIndexReader } from './index-reader.ts';
import { createIndexer } from './indexer.ts';
import { createRetrieve } from './retrieve.ts';
import { searchRoute } from './route.ts';

/** How long the gateway itself waits for another process's write: it blocks requests, and only ever acquires the lock. */
const BUSY_MS = 200;

/** The knowledge base: a folder, indexed beside the running gateway, searched by words and, with a model, by meaning. */
export default definePlugin({
  name: 'rag',
  kind: 'agent',
  apiVersion: 1,
  configSchema: RAG_CONFIG,
  check({ folder: given, access = {} }, { baseDir, settings }) {
    const folder = path.resolve(baseDir, given);
    return problemsOf(
      () => assertOwnFolder(folder, settings),
      () => checkRules(access, Object.keys(settings.plans)),
      async () => {
        await assertFolder(folder);
        await checkFolders(access, folder);
      },
    );
  },
  async setup(api, config) {
    const { baseDir, dataDir } = api.settings;
    const { embeddings, chunkWords, maxFileBytes, maxChunks, watch } = config;
    const folder = path.resolve(baseDir, config.folder);
    assertOwnFolder(folder, api.settings);
    const rules = config.access ?? {};
    checkRules(rules, Object.keys(api.settings.plans));
    const access = createAccess(rules, createCallerPlan(api));
    const database = await openIndex(dataDir, BUSY_MS, (version) =>
      api.log.info(
        { index_version: version },
        'another version made the index of the knowledge base: it is made again from the folder',
      ),
    );
    api.onClose(() => database.close());
    const reader = createIndexReader(database);
    const embedder = embeddings === undefined ? undefined : createEmbedder(api, embeddings);
    const retrieve = createRetrieve(reader, access, embedder, api);
    api.route(searchRoute(retrieve));
    api.agent(ragAgent(retrieve));
    const indexer = createIndexer(
      {
        folder,
        folders: access.folders,
        indexFolder: dataDir,
        holder: randomUUID(),
        chunkWords,
        maxFileBytes,
        maxChunks,
        watchMs: parseDuration(watch),
        ...(embeddings !== undefined && { model: embeddings }),
      },
      { database, reader, embedder, log: api.log },
    );
    api.onReady(async () => {
      await assertFolder(folder);
      await checkFolders(rules, folder);
      indexer.start();
    });
    api.onClose(() => indexer.close());
  },
});

/** Throws for a folder that holds what is the gateway's own. */
function assertOwnFolder(folder: string, { baseDir, dataDir }: GatewaySettings): void {
  if (isInside(baseDir, folder) || isInside(dataDir, folder))
    throw new OptionError(
      '/folder',
      'holds the gateway’s own configuration or data, which every API key could read then',
      'Give the documents a folder of their own.',
    );
}

async function assertFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => undefined);
  if (!found?.isDirectory())
    throw new OptionError(
      '/folder',
      'is no folder',
      `Make ${folder}, or correct the path; a relative one is relative to the configuration file.`,
    );
}

function isInside(inner: string, outer: string): boolean {
  const way = path.relative(outer, inner);
  return way === '' || (!way.startsWith('..') && !path.isAbsolute(way));
}
