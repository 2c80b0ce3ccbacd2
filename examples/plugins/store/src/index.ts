import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { definePlugin, GatewayError, type Store, type StoreWatcher } from 'tollgate';
import { type DocumentAdapter, openDocumentStore } from 'tollgate/stores';

let written = 0;

const unavailable = (cause: unknown): GatewayError =>
  new GatewayError('store_unavailable', 'The folder of the store cannot be used.', { cause });

/** The documents of one namespace: a file each, under the hash of its key. */
function openFolder(folder: string): DocumentAdapter {
  mkdirSync(folder, { recursive: true });
  const fileOf = (key: string): string => path.join(folder, createHash('sha256').update(key).digest('hex'));
  return {
    get: (key) =>
      readFile(fileOf(key), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined;
        throw unavailable(error);
      }),
    async set(key, text) {
      const file = fileOf(key);
      written += 1;
      const draft = `${file}.${process.pid}.${written}`;
      try {
        await writeFile(draft, text);
        await rename(draft, file); // a reader sees the old document or the new one
      } catch (error) {
        throw unavailable(error);
      }
    },
    delete: (key) =>
      rm(fileOf(key)).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'ENOENT') return false;
          throw unavailable(error);
        },
      ),
  };
}

/** Documents in a folder; balances, limits and lists are in this process alone. */
export async function open(folder: string, observe?: StoreWatcher): Promise<Store> {
  return openDocumentStore({
    kind: 'my-plugin',
    documents: (namespace) => openFolder(path.join(folder, namespace)),
    observe,
  });
}

export default definePlugin({
  name: 'my-plugin',
  kind: 'store',
  apiVersion: 1,
  processes: 'one',
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: { folder: { type: 'string', minLength: 1, default: 'data', description: 'Where the documents are.' } },
  },
  setup(api, { folder }) {
    api.store((observe) => open(path.resolve(api.settings.baseDir, folder), observe));
  },
});
