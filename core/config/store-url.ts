import path from 'node:path';
import type { JsonObject } from '../contract/json.ts';

/** The store plugin that a configuration's `store:` value means, and that plugin's own config. */
export interface StoreChoice {
  readonly plugin: string;
  readonly config: JsonObject;
}

const FORMS = 'memory:, sqlite:./data, redis://host:6379, postgres://user@host/database or { adapter, options }';

/** Schemes that open a store at a server, and the built-in plugin behind each. */
const SERVER_PLUGIN: Readonly<Record<string, string>> = Object.freeze({
  redis: 'redis',
  rediss: 'redis',
  postgres: 'postgres',
  postgresql: 'postgres',
});

/** Stores whose atomic half lives in one process. */
const OWN_PROCESS: ReadonlySet<string> = new Set(['memory', 'keyv']);

/** Whether several processes can work on a store of this plugin; one from elsewhere is taken to be made for it. */
export function isSharedStore(plugin: string): boolean {
  return !OWN_PROCESS.has(plugin);
}

/**
 * Reads the `store:` value of a configuration: a URL; `{ url, … }`, whose other fields go to the plugin as they are;
 * `{ adapter, options }` for a Keyv adapter; or `{ plugin, … }` for a store plugin from npm or a file. Relative paths
 * become absolute under `baseDir`. Throws a TypeError that shows the forms and never repeats the value: URLs hold passwords.
 */
export function readStoreUrl(value: unknown, baseDir: string): StoreChoice {
  if (typeof value === 'string') return readUrl(value, {}, baseDir);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(`store must be a URL or an object: write ${FORMS}`);
  }
  const { url, plugin, ...rest } = value as JsonObject;
  if (typeof plugin === 'string') return { plugin, config: url === undefined ? rest : { url, ...rest } };
  if (typeof rest['adapter'] === 'string')
    return { plugin: 'keyv', config: { ...rest, adapter: adapterPath(rest['adapter'], baseDir) } };
  if (typeof url === 'string') return readUrl(url, rest, baseDir);
  throw new TypeError(`store needs a url, an adapter or a plugin: write ${FORMS}`);
}

function readUrl(url: string, rest: JsonObject, baseDir: string): StoreChoice {
  const match = /^([a-z][a-z0-9+.-]*):(.*)$/i.exec(url.trim());
  const scheme = match?.[1]?.toLowerCase() ?? '';
  const tail = match?.[2] ?? '';
  if (scheme === 'memory') return { plugin: 'memory', config: rest };
  if (scheme === 'sqlite') return { plugin: 'sqlite', config: { ...rest, folder: folderOf(tail, baseDir) } };
  const plugin = SERVER_PLUGIN[scheme];
  if (plugin === undefined || !URL.canParse(url.trim()))
    throw new TypeError(`store is not a URL that is known: write ${FORMS}`);
  return { plugin, config: { ...rest, url: url.trim() } };
}

/** `sqlite:./data`, `sqlite:/var/lib/tollgate` and `sqlite:///var/lib/tollgate` name a folder; a bare `sqlite:` is `./data`. */
function folderOf(tail: string, baseDir: string): string {
  const folder = tail.startsWith('//') ? tail.slice(2) : tail;
  return path.resolve(baseDir, folder === '' ? 'data' : folder);
}

/** A path becomes absolute; a package's name stays as it is. */
function adapterPath(adapter: string, baseDir: string): string {
  return /^\.{1,2}[\\/]/.test(adapter) ? path.resolve(baseDir, adapter) : adapter;
}
