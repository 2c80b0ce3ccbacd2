import { GatewayError, isGatewayError } from '../contract/errors.ts';
import type { HookName } from '../contract/hooks.ts';

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

/** The promise of a hook, which fails after {@link HOOK_TIMEOUT_MS}. */
async function bounded(step: Step, promise: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    const expire = (): void => reject(new Error(`did not finish within ${HOOK_TIMEOUT_MS} ms`));
    timer = setTimeout(expire, HOOK_TIMEOUT_MS).unref();
  });
  try {
    return await Promise.race([promise, timeout]);
  } catch (error) {
    throw blame(step, error);
  } finally {
    clearTimeout(timer);
  }
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
