import type { StoreWatcher } from '../../../contract/index.ts';

/** Told what an operation failed with. */
export type FailureWatcher = (operation: string, error: unknown) => void;

/** The methods of a Keyv adapter that are operations. */
const DOCUMENT_OPERATIONS: readonly string[] = Object.freeze(
  'get getMany set setMany delete deleteMany has hasMany clear'.split(' '),
);

/** Makes the operations of a ledger, of sets or counters tell how long they took and whether they were done. Changes the part itself. */
export function timeOperations<T extends object>(
  part: T,
  name: string,
  observe: StoreWatcher | undefined,
  onFailure?: FailureWatcher,
): T {
  return observe ? timeMethods(part, Object.keys(part), { name, observe, onFailure }) : part;
}

/** The same for the adapter of a namespace of documents. */
export function timeDocuments<T extends object>(
  adapter: T,
  observe: StoreWatcher | undefined,
  onFailure?: FailureWatcher,
): T {
  return observe ? timeMethods(adapter, DOCUMENT_OPERATIONS, { name: 'documents', observe, onFailure }) : adapter;
}

interface Watch {
  readonly name: string;
  readonly observe: StoreWatcher;
  readonly onFailure: FailureWatcher | undefined;
}

function timeMethods<T extends object>(part: T, methods: readonly string[], { name, observe, onFailure }: Watch): T {
  for (const key of methods) {
    const method: unknown = Reflect.get(part, key);
    if (typeof method !== 'function') continue;
    const operation = `${name}.${key}`;
    Reflect.set(part, key, (...args: readonly unknown[]): unknown => {
      const startedMs = performance.now();
      const end = (isOk: boolean): void => observe(operation, performance.now() - startedMs, isOk);
      try {
        const result: unknown = Reflect.apply(method, part, args);
        if (result instanceof Promise)
          result.then(
            () => end(true),
            (error: unknown) => {
              end(false);
              onFailure?.(operation, error);
            },
          );
        else end(true);
        return result;
      } catch (error) {
        end(false);
        onFailure?.(operation, error);
        throw error;
      }
    });
  }
  return part;
}
