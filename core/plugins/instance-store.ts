import { createHash } from 'node:crypto';
import type Keyv from 'keyv';
import type { SharedDocuments } from '../contract/api.ts';
import type { Counters, Sets, Store } from '../contract/store.ts';
import { PluginError, type Registry } from './registry.ts';

/** The group and name of an instance: `providers` and `openai`. */
export interface InstanceName {
  readonly group: string;
  readonly name: string;
}

const NAMESPACE = /^[a-z][a-z0-9-]{0,40}$/;

/** The part of the store that belongs to one plugin instance: its documents, sets and counters are nobody else's. */
export interface InstanceStore {
  keyv<T>(namespace: string): Keyv<T>;
  share<T>(name: string): Keyv<T>;
  shared<T>(name: string): SharedDocuments<T>;
  readonly sets: Sets;
  readonly counters: Counters;
}

/** Lays an instance's name in front of everything it stores. */
export function createInstanceStore(store: () => Store, registry: Registry, instance: InstanceName): InstanceStore {
  const prefix = prefixOf(instance);
  const checkName = (what: string, name: string): void => {
    if (!NAMESPACE.test(name))
      throw new PluginError(instance.name, `asks for the ${what} "${name}"; a name is ${NAMESPACE.source}`);
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
    counters: prefixCounters(() => store().counters, prefix),
  };
}

/**
 * Without `:`, which divides names inside the stores, and without a `.` of its own, so that no two instances can meet; a plugin
 * that is named by a path or package is known by a hash of it.
 */
function prefixOf({ group, name }: InstanceName): string {
  const safe = /^[a-z0-9_-]{1,63}$/.test(name) ? name : createHash('sha256').update(name).digest('hex').slice(0, 24);
  return `${group}.${safe}`;
}

function prefixSets(sets: () => Sets, prefix: string): Sets {
  const own = (set: string): string => `${prefix}.${set}`;
  return {
    add: (set, member, max) => sets().add(own(set), member, max),
    remove: (set, member) => sets().remove(own(set), member),
    has: (set, member) => sets().has(own(set), member),
    list: (set, page) => sets().list(own(set), page),
    size: (set) => sets().size(own(set)),
  };
}

function prefixCounters(counters: () => Counters, prefix: string): Counters {
  const own = (key: string): string => `${prefix}.${key}`;
  return {
    take: (windows, now) =>
      counters().take(
        windows.map((window) => ({ ...window, key: own(window.key) })),
        now,
      ),
    adjust: (key, windowMs, delta, now) => counters().adjust(own(key), windowMs, delta, now),
    lease: (key, id, limit, ttlMs, now) => counters().lease(own(key), id, limit, ttlMs, now),
    release: (key, id) => counters().release(own(key), id),
    next: (key, by) => counters().next(own(key), by),
  };
}
