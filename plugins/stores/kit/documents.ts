import Keyv, { type DeserializedData, type KeyvStoreAdapter } from 'keyv';
import type { StoreWatcher } from '../../../contract/index.ts';
import { checkNamespace } from './check.ts';
import { misuse, unreadable } from './failure.ts';
import { type FailureWatcher, timeDocuments } from './timed.ts';

/** A backend of one namespace: what Keyv calls a storage adapter, or a Map. */
export type Adapter = KeyvStoreAdapter | Map<string, string>;

/** Keyv's own serialisation (JSON that also keeps Buffers), taken from an instance: it is not exported. */
const { serialize, deserialize } = new Keyv();

/**
 * Makes the `keyv` method of a store: one Keyv and one adapter of its own per namespace (a shared adapter mixes
 * namespaces up), errors thrown (Keyv's default reports an outage as "no such key"), keys passed as they are (its
 * prefixing maps `a` and `ns:a` to one key), and a value that cannot be read refused instead of thrown as a SyntaxError.
 * `observe` is told of the operations, of adapters that do not tell it themselves.
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
