import { GatewayError, isGatewayError } from '../contract/errors.ts';
import type { HookName } from '../contract/hooks.ts';
import { Bag, type BagItem } from '../upstream/bag.ts';

/** How long one asynchronous hook may take before the call fails. */
export const HOOK_TIMEOUT_MS = 30_000;

export type Args = [a: unknown, b: unknown, c: unknown];
/** No hook takes more than three arguments. */
export type AnyFunction = (...args: Args) => unknown;
export interface Step {
  readonly owner: string;
  readonly name: HookName;
  readonly run: AnyFunction;
}

/**
 * Runs one hook; what it throws is blamed on its owner, and a promise that never settles ends in an error. A promise of
 * any kind is answered as a `Promise`.
 */
export function call(step: Step, a: unknown, b: unknown, c: unknown): unknown {
  let answer: unknown;
  try {
    answer = step.run(a, b, c);
  } catch (error) {
    throw blame(step, error);
  }
  if (typeof answer !== 'object' || answer === null || typeof (answer as Promise<unknown>).then !== 'function')
    return answer;
  return bounded(step, answer as Promise<unknown>);
}

/** Hooks that have not settled. One timer looks at all of them: most are done before it is ever due. */
const waiting = new Bag<Waiting>();
let isWatched = false;
const WATCH_MS = 1000;

interface Waiting extends BagItem {
  readonly until: number;
  readonly expire: () => void;
}

function watchWaiting(): void {
  const now = performance.now();
  for (const { until, expire } of waiting.all()) if (until <= now) expire();
  isWatched = waiting.size > 0;
  if (isWatched) setTimeout(watchWaiting, WATCH_MS).unref();
}

function bounded(step: Step, promise: Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      waiting.delete(entry);
      reject(blame(step, error));
    };
    const entry: Waiting = {
      slot: -1,
      until: performance.now() + HOOK_TIMEOUT_MS,
      expire: () => fail(new Error(`did not finish within ${HOOK_TIMEOUT_MS} ms`)),
    };
    waiting.add(entry);
    if (!isWatched) {
      isWatched = true;
      setTimeout(watchWaiting, WATCH_MS).unref();
    }
    promise.then((value) => {
      waiting.delete(entry);
      resolve(value);
    }, fail);
  });
}

/** A GatewayError is the plugin's answer and passes; anything else is a bug in the plugin and names it in the log. */
export function blame(step: Step, error: unknown): GatewayError {
  if (isGatewayError(error)) return error;
  return new GatewayError(
    'internal_error',
    'A plugin of the gateway failed on this request. The request id finds the reason in its log.',
    {
      cause: new Error(
        `plugin "${step.owner}", hook "${step.name}": ${error instanceof Error ? error.message : String(error)}`,
        { cause: error },
      ),
    },
  );
}

export function wrongReturn(step: Step, value: unknown): GatewayError {
  return blame(
    step,
    new TypeError(`returned ${value === null ? 'null' : typeof value}, which is neither a changed value nor undefined`),
  );
}
