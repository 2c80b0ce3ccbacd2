import type { StoreWatcher } from '../../../contract/index.ts';

/** Called with the error of a failed operation. */
export type FailureWatcher = (operation: string, error: unknown) => void;

/** Methods of a Keyv adapter that count as operations. */
const DOCUMENT_OPERATIONS: readonly string[] = Object.freeze(
  'get getMany set setMany delete deleteMany has hasMany clear'.split(' '),
);

/** Reports duration and success of the operations of a ledger, sets or counters. Changes the object itself. */
export function timeOperations<T extends object>(
  part: T,
  name: string,
  observe: StoreWatcher | undefined,
  onFailure?: FailureWatcher,
): T {
  return observe ? timeMethods(part, Object.keys(part), { name, observe, onFailure }) : part;
}

/** Reports the operations of a document adapter in the same way. */
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
