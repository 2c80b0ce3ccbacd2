import type Keyv from 'keyv';
import type { Store } from '../../../contract/index.ts';
import { withStored } from '../../../plugins/stores/kit/kept.ts';

type Operation = 'get' | 'set' | 'delete';

/** Store that can be made to fail or wait, and that records its operations. */
export interface ShakyStore extends Store {
  /** `namespace key`, in order. */
  readonly reads: string[];
  /** `namespace key value-as-JSON`, in order. */
  readonly writes: string[];
  /** Makes document operations fail, and by default all other operations too; `when` selects some. */
  fail(when?: (namespace: string, operation: Operation) => boolean): void;
  failSets(): void;
  recover(): void;
  /** Makes new reads wait after they have their value, until the returned function is called. */
  holdReads(): () => void;
  /** Lets new reads pass; waiting reads continue to wait. */
  letReadsPass(): void;
}

export function openShakyStore(store: Store): ShakyStore {
  const reads: string[] = [];
  const writes: string[] = [];
  let fails: (namespace: string, operation: Operation) => boolean = () => false;
  let setsFail = false;
  let held: Promise<void> | undefined;

  const wrapKeyv = (namespace: string): Keyv => {
    const keyv = store.keyv(namespace);
    const guard = (operation: Operation): void => {
      if (fails(namespace, operation)) throw new Error('connect ECONNREFUSED redis:6379');
    };
    return {
      async get(key: string) {
        reads.push(`${namespace} ${key}`);
        guard('get');
        const wait = held;
        const value = await keyv.get(key);
        await wait;
        return value;
      },
      async set(key: string, value: unknown, ttl?: number) {
        guard('set');
        writes.push(`${namespace} ${key} ${JSON.stringify(value)}`);
        return keyv.set(key, value, ttl);
      },
      async delete(key: string) {
        guard('delete');
        return keyv.delete(key);
      },
      clear: () => keyv.clear(),
    } as unknown as Keyv;
  };

  const failing = <T extends object>(half: T): T =>
    new Proxy(half, {
      get: (target, name) =>
        setsFail ? async () => Promise.reject(new Error('connect ECONNREFUSED redis:6379')) : Reflect.get(target, name),
    });

  const halves = { keyv: (namespace: string) => wrapKeyv(namespace) as never, sets: failing(store.sets) };
  return {
    ...store,
    ...withStored(halves),
    reads,
    writes,
    fail(when) {
      fails = when ?? (() => true);
      setsFail = when === undefined;
    },
    failSets() {
      setsFail = true;
    },
    recover() {
      fails = () => false;
      setsFail = false;
    },
    holdReads() {
      let release = (): void => undefined;
      held = new Promise((resolve) => {
        release = resolve;
      });
      return () => release();
    },
    letReadsPass() {
      held = undefined;
    },
  };
}
