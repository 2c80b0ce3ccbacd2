import { GatewayError, isGatewayError } from '../contract/errors.ts';
import type { HookName } from '../contract/hooks.ts';
import { runAs } from './attribution.ts';

/** How long one hook may take before the call fails. */
export const HOOK_TIMEOUT_MS = 30_000;

/** One plugin's function for one hook. */
export interface Step {
  readonly owner: string;
  readonly name: HookName;
  readonly run: (...args: readonly unknown[]) => unknown;
}

/**
 * Runs a step: what it returns, or a promise of it when it returns one. Whatever it throws is attributed to its plugin, and a
 * promise that never settles ends in an error.
 */
export function runStep(step: Step, ...args: readonly unknown[]): unknown {
  const result = callStep(step, args);
  return isPromise(result) ? settleStep(step, result, (settled) => settled) : result;
}

/** Calls a step; what it throws at once is attributed to its plugin. */
export function callStep(step: Step, args: readonly unknown[]): unknown {
  try {
    return runAs(step.owner, step.run, ...args);
  } catch (error) {
    throw attributeError(step, error);
  }
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Goes on with what a step's promise comes to, as {@link awaitStep} does; resolves with what `next` makes of it. */
export function settleStep<T>(
  step: Step,
  work: PromiseLike<unknown>,
  next: (result: unknown) => T | PromiseLike<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    awaitStep(
      step,
      work,
      (result) => {
        try {
          resolve(next(result));
        } catch (error) {
          reject(error);
        }
      },
      reject,
    );
  });
}

/** A step whose promise has not settled. */
interface RunningStep {
  readonly untilMs: number;
  readonly fail: () => void;
}

/** In the order in which they began. All have the same time, so one timer, for the oldest, serves every call. */
const running = new Set<RunningStep>();
let timer: NodeJS.Timeout | undefined;

/** Calls one of the two when a step's promise settles, or `onError` when that takes too long; what it comes to later is ignored. */
export function awaitStep(
  step: Step,
  work: PromiseLike<unknown>,
  onResult: (result: unknown) => void,
  onError: (error: GatewayError) => void,
): void {
  const own: RunningStep = {
    untilMs: performance.now() + HOOK_TIMEOUT_MS,
    fail: () => onError(attributeError(step, new Error(`did not finish within ${HOOK_TIMEOUT_MS} ms`))),
  };
  running.add(own);
  if (!timer) timer = setTimeout(watchSteps, HOOK_TIMEOUT_MS).unref();
  work.then(
    (result) => {
      if (running.delete(own)) onResult(result);
    },
    (error: unknown) => {
      if (running.delete(own)) onError(attributeError(step, error));
    },
  );
}

/** A timer may fire a little before the time that `performance.now()` says. */
const TOLERANCE_MS = 5;

function watchSteps(): void {
  const nowMs = performance.now();
  const nextMs = failLateSteps(nowMs + TOLERANCE_MS);
  timer = nextMs === undefined ? undefined : setTimeout(watchSteps, nextMs - nowMs).unref();
}

/** Fails the steps whose time is over at `nowMs`, of the clock of `performance.now()`; returns when the next one's is. */
export function failLateSteps(nowMs: number): number | undefined {
  for (const step of running) {
    if (step.untilMs > nowMs) return step.untilMs;
    running.delete(step);
    step.fail();
  }
  return undefined;
}

/** A GatewayError is the plugin's response and passes; anything else is a bug of the plugin, which the log names. */
export function attributeError(step: Pick<Step, 'owner' | 'name'>, error: unknown): GatewayError {
  return pluginError(placeOf(step), error);
}

/** A step in words. */
export function placeOf({ owner, name }: Pick<Step, 'owner' | 'name'>): string {
  return `plugin "${owner}", hook "${name}"`;
}

/** What a plugin threw, as the call tells it: the caller gets a fixed sentence, the log where it comes from. */
export function pluginError(place: string, error: unknown): GatewayError {
  if (isGatewayError(error)) return error;
  return new GatewayError(
    'internal_error',
    'A plugin of the gateway failed on this request. The request id finds the reason in its log.',
    {
      cause: new Error(`${place}: ${error instanceof Error ? error.message : String(error)}`, { cause: error }),
    },
  );
}

/** The error of a step that returned something its hook has no use for. */
export function wrongResult(step: Step, value: unknown, expected: string): GatewayError {
  return attributeError(step, new TypeError(`returned ${describe(value)}; expected ${expected}, or undefined`));
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const names = Object.keys(value).slice(0, 5);
  return names.length === 0 ? 'an empty object' : `an object with ${names.join(', ')}`;
}
