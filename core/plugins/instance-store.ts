import { createHash, randomBytes } from 'node:crypto';
import type Keyv from 'keyv';
import { LRUCache } from 'lru-cache';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import type { SharedDocuments } from '../../contract/plugin.ts';
import type { AccountDocuments, Counters, Records, RecordVersion, Sets, Store } from '../../contract/store.ts';
import { maxEntries } from '../../contract/units.ts';
import { changedMeanwhile } from '../../contract/versions.ts';
import { PluginError, type Registry } from './registry.ts';

/** Group and name of an instance: `providers` and `openai`. */
interface InstanceName {
  readonly group: string;
  readonly name: string;
}

const NAMESPACE = /^[a-z][a-z0-9-]{0,40}$/;

/** Part of the store that belongs to one plugin instance: its private documents, sets and counters. */
export interface InstanceStore {
  keyv<T>(namespace: string): Keyv<T>;
  share<T>(name: string): Keyv<T>;
  shared<T>(name: string): SharedDocuments<T>;
  readonly sets: Sets;
  readonly counters: Counters;
  stored(): AccountDocuments;
}

/** Creates the store of an instance, which prefixes all names with the instance's name. */
export function createInstanceStore(store: () => Store, registry: Registry, instance: InstanceName): InstanceStore {
  const prefix = prefixOf(instance);
  const checkName = (what: string, name: string): void => {
    if (!NAMESPACE.test(name))
      throw new PluginError(
        instance.name,
        `uses the invalid name "${name}" for a ${what}: it must match ${NAMESPACE.source}`,
      );
  };
  return {
    keyv(namespace) {
      checkName('document namespace', namespace);
      return store().keyv(`${prefix}.${namespace}`);
    },
    share(name) {
      checkName('shared name', name);
      registry.claim(registry.shared, 'shared name', name, instance.name, name);
      return store().keyv(`shared.${name}`);
    },
    shared<T>(name: string): SharedDocuments<T> {
      checkName('shared name', name);
      return { get: (key) => store().keyv<T>(`shared.${name}`).get(key) };
    },
    sets: prefixSets(() => store().sets, prefix),
    counters: prefixCounters(store, prefix),
    stored: () => store().stored(prefix),
  };
}

/**
 * Returns a prefix without `:`, the separator inside stores, and without `.` in the name, so that prefixes of two instances never
 * collide. A plugin given by a path or package is identified by a hash of it.
 */
function prefixOf({ group, name }: InstanceName): string {
  const safe = /^[a-z0-9_-]{1,63}$/.test(name) ? name : createHash('sha256').update(name).digest('hex').slice(0, 24);
  return `${group}.${safe}`;
}

function prefixSets(sets: () => Sets, prefix: string): Sets {
  const namespaced = (set: string): string => `${prefix}.${set}`;
  return {
    add: (set, member, max) => sets().add(namespaced(set), member, max),
    remove: (set, member) => sets().remove(namespaced(set), member),
    has: (set, member) => sets().has(namespaced(set), member),
    list: (set, page) => sets().list(namespaced(set), page),
    size: (set) => sets().size(namespaced(set)),
  };
}

function prefixCounters(store: () => Store, prefix: string): Counters {
  return {
    take: (windows, now) =>
      store().counters.take(
        windows.map((window) => ({ ...window, key: `${prefix}.${window.key}` })),
        now,
      ),
    adjust: (key, windowMs, delta, now) => store().counters.adjust(`${prefix}.${key}`, windowMs, delta, now),
    lease: (key, id, limit, ttlMs, now) => store().counters.lease(`${prefix}.${key}`, id, limit, ttlMs, now),
    release: (key, id) => store().counters.release(`${prefix}.${key}`, id),
    next: (key, by) => store().counters.next(`${prefix}.${key}`, by),
  };
}

/**
 * Maximum number of attempts for a read or a change. Each retry means that another writer succeeded, so the limit is reached only
 * under heavy contention.
 */
const MAX_TRIES = 200;
const VERSION_DIGITS = 8;
/** Time for which a process caches the ids it listed. */
const LISTED_MS = 3_600_000;

/**
 * Records on documents and sets. Each version is an immutable document. The newest version is determined by a member of the
 * record's set, which has as many members as there are versions. Adding a member with that number as the maximum succeeds for
 * exactly one writer. The others read again.
 */
export function createRecords<T>(store: Pick<InstanceStore, 'keyv' | 'sets'>, name: string): Records<T> {
  const listeners = new Set<(id: string) => void>();
  const listed = new LRUCache<string, true>({ ...maxEntries(20_000), ttl: LISTED_MS });
  const ids = `${name}-ids`;
  const { read, write, remove } = createVersions<T>(store, name);
  return {
    find: (id) => withStore(() => read(id)).then(({ version, value }) => ({ version, value })),

    async change(id, make, expected) {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const now = await withStore(() => read(id));
        if (expected !== undefined && expected !== now.version) throw changedMeanwhile();
        const value = make(now.value);
        if (!(await withStore(() => write(id, now.version + 1, value)))) continue;
        for (const listener of listeners) listener(id);
        // The replaced document is unused. If this fails, a small document remains.
        if (now.member !== undefined) await remove(id, now.member).catch(() => undefined);
        return { version: now.version + 1, before: now.value, value };
      }
      throw new GatewayError('conflict', 'Too many concurrent changes of this object. Try again in a moment.');
    },

    onChange: (listener) => void listeners.add(listener),

    async note(id) {
      if (listed.has(id)) return;
      listed.set(id, true);
      await store.sets.add(ids, id).catch(() => listed.delete(id));
    },
    ids: (page) => withStore(() => store.sets.list(ids, page)),
    async unlist(id) {
      listed.delete(id);
      await withStore(() => store.sets.remove(ids, id));
    },
  };
}

/** Versions of each record: `read` returns the newest, and `write` returns false if another writer was first. */
function createVersions<T>(store: Pick<InstanceStore, 'keyv' | 'sets'>, name: string) {
  const documents = () => store.keyv<{ readonly value: T }>(name);
  const setOf = (id: string): string => `${name}-versions:${hashId(id)}`;
  const keyOf = (id: string, member: string): string => `${hashId(id)}.${member}`;
  const remove = (id: string, member: string) => documents().delete(keyOf(id, member));

  const read = async (id: string): Promise<RecordVersion<T> & { readonly member?: string }> => {
    let missing = 0;
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const version = await store.sets.size(setOf(id));
      if (version === 0) return { version, value: undefined };
      // Each version has one member, which begins with its number.
      const [member] = await store.sets.list(setOf(id), { limit: 1, after: digits(version) });
      const document = member === undefined ? undefined : await documents().get(keyOf(id, member));
      if (document !== undefined && member !== undefined) return { version, value: document.value, member };
      // The version may have been replaced and removed after its number was read. Then a newer one exists.
      if (version === missing) break;
      missing = version;
    }
    throw unavailable(new Error(`the newest version of a record of "${name}" is not in the store`));
  };

  const write = async (id: string, version: number, value: T): Promise<boolean> => {
    const member = `${digits(version)}.${randomBytes(9).toString('base64url')}`;
    // The document is written first, so that members of the set refer to existing documents.
    if (!(await documents().set(keyOf(id, member), { value }))) throw unavailable(undefined);
    if ((await store.sets.add(setOf(id), member, version)) === 'added') return true;
    await remove(id, member);
    return false;
  };

  return { read, write, remove };
}

/** Returns the records of each name. The same name returns the same object, so that writers notify readers. */
export function createRecordBook(store: Pick<InstanceStore, 'keyv' | 'sets'>): <T>(name: string) => Records<T> {
  const known = new Map<string, Records<unknown>>();
  return <T>(name: string) => {
    const records = known.get(name) ?? createRecords<unknown>(store, name);
    known.set(name, records);
    return records as Records<T>;
  };
}

/** Hashes an id, because any text may be one. */
function hashId(id: string): string {
  return createHash('sha256').update(id).digest('base64url');
}

function digits(version: number): string {
  return String(version).padStart(VERSION_DIGITS, '0');
}

/** Converts all errors of a store to `store_unavailable`: unknown is never reported as absent. */
async function withStore<R>(operation: () => Promise<R>): Promise<R> {
  try {
    return await operation();
  } catch (error) {
    throw isGatewayError(error) ? error : unavailable(error);
  }
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError('store_unavailable', 'The store does not respond. Try again shortly.', {
    retryAfterMs: 1000,
    cause,
  });
}
