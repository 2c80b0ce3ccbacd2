import Keyv, { type DeserializedData, type KeyvStoreAdapter } from 'keyv';
import type { StoreWatcher } from '../../../contract/index.ts';
import { checkNamespace } from './check.ts';
import { misuse, unreadable } from './failure.ts';
import { type FailureWatcher, timeDocuments } from './timed.ts';

/** Backend of one namespace: a Keyv storage adapter or a Map. */
export type Adapter = KeyvStoreAdapter | Map<string, string>;

/** Keyv's serialization (JSON with support for Buffers). Keyv does not export it, so an instance provides it. */
const { serialize, deserialize } = new Keyv();

/**
 * Creates the `keyv` method of a store. It differs from Keyv's defaults:
 * - Each namespace has its own Keyv and adapter: a shared adapter mixes namespaces.
 * - Errors are thrown: Keyv reports an outage as "no such key" by default.
 * - Keys have no prefix: with Keyv's prefixes, `a` and `ns:a` become one key.
 * - Unreadable values are a store error instead of a SyntaxError.
 *
 * Reports operations to `observe` if the adapter does not report them itself.
 */
export function createDocuments(
  openAdapter: (namespace: string) => Adapter,
  observe?: StoreWatcher,
  onFailure?: FailureWatcher,
): <T>(namespace: string) => Keyv<T> {
  const opened = new Map<string, Keyv>();
  return <T>(namespace: string): Keyv<T> => {
    const known = opened.get(namespace);
    if (known) return known as Keyv<T>;
    checkNamespace(namespace);
    const keyv = new Keyv<T>({
      store: timeDocuments(openAdapter(namespace), observe, onFailure),
      namespace,
      useKeyPrefix: false,
      throwOnErrors: true,
      serialize: writeDocument,
      deserialize: readDocument,
    });
    opened.set(namespace, keyv as Keyv);
    return keyv;
  };
}

function writeDocument<T>(data: DeserializedData<T>): string {
  if (data.value === undefined) throw misuse('A document must have a value: delete it to make it absent.');
  return serialize?.(data) as string;
}

function readDocument<T>(text: string): DeserializedData<T> {
  let data: unknown;
  try {
    data = deserialize?.(text);
  } catch (cause) {
    throw unreadable('document', cause);
  }
  if (typeof data !== 'object' || data === null || !('value' in data)) throw unreadable('document');
  return data as DeserializedData<T>;
}
