import type Keyv from 'keyv';
import type { StoreWatcher } from '../contract/figures.ts';
import type { Store } from '../contract/store.ts';

/** Who wants to know what the store's operations take: those of the generation that serves. */
export interface StoreWatch {
  watchers: readonly StoreWatcher[];
}

/** Of documents only these reach the store. */
const DOCUMENT_OPERATIONS: ReadonlySet<string> = new Set(
  'get getMany set setMany delete deleteMany has hasMany clear'.split(' '),
);

/** The same store, whose operations are timed while somebody wants to know. */
export function watchStore(store: Store, watch: StoreWatch): Store {
  const documents = new WeakMap<Keyv, Keyv>();
  return {
    kind: store.kind,
    ...(store.endsWithProcess !== undefined && { endsWithProcess: store.endsWithProcess }),
    keyv<T>(namespace: string): Keyv<T> {
      const own = store.keyv<T>(namespace);
      const known = documents.get(own as Keyv);
      if (known) return known as Keyv<T>;
      const watched = watchPart(own, 'documents', watch, DOCUMENT_OPERATIONS);
      documents.set(own as Keyv, watched as Keyv);
      return watched;
    },
    ledger: watchPart(store.ledger, 'ledger', watch),
    sets: watchPart(store.sets, 'sets', watch),
    counters: watchPart(store.counters, 'counters', watch),
    health: () => store.health(),
    close: () => store.close(),
  };
}

type Method = (...args: readonly unknown[]) => unknown;

/** One part of a store; whatever methods it has are timed, or those of `only`. */
function watchPart<T extends object>(part: T, name: string, watch: StoreWatch, only?: ReadonlySet<string>): T {
  const timed = new Map<string, { readonly method: unknown; readonly run: Method }>();
  // Not around the part itself: a proxy has to give what a frozen object has.
  return new Proxy(Object.create(Object.getPrototypeOf(part) as object | null) as T, {
    get(_target, key) {
      const method: unknown = Reflect.get(part, key, part);
      if (typeof method !== 'function' || typeof key !== 'string') return method;
      const known = timed.get(key);
      if (known?.method === method) return known.run;
      const plain: Method = (...args) => Reflect.apply(method, part, args);
      const run = only && !only.has(key) ? plain : timeOf(`${name}.${key}`, plain, watch);
      timed.set(key, { method, run });
      return run;
    },
    set: (_target, key, value) => Reflect.set(part, key, value, part),
  });
}

function timeOf(operation: string, plain: Method, watch: StoreWatch): Method {
  return (...args) => {
    const { watchers } = watch;
    if (watchers.length === 0) return plain(...args);
    const startedMs = performance.now();
    const result = plain(...args);
    if (!(result instanceof Promise)) return result;
    const tell = (isOk: boolean) => (): void => {
      const ms = performance.now() - startedMs;
      for (const each of watchers) each(operation, ms, isOk);
    };
    result.then(tell(true), tell(false));
    return result;
  };
}
