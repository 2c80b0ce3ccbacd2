import { GatewayError, isGatewayError } from './errors.ts';
import { HOOKS, type Hook, type HookFunctions, type HookName, type HookObject } from './hooks.ts';
import type { Operation } from './types/call.ts';

/** A hook as a plugin registered it. */
export interface HookEntry<N extends HookName = HookName> {
  readonly owner: string;
  readonly name: N;
  readonly hook: Hook<N>;
}

/** The hooks of one operation, each compiled into one function; a hook that nobody uses is undefined and costs nothing. */
export type CompiledHooks = { readonly [N in HookName]: HookFunctions[N] | undefined };

/** How long one asynchronous hook may take before the call fails. */
export const HOOK_TIMEOUT_MS = 30_000;

type AnyFunction = (...args: unknown[]) => unknown;
interface Step {
  readonly owner: string;
  readonly name: HookName;
  readonly run: AnyFunction;
}

/** Compiles the hooks of one operation in the order of the configuration: inward hooks first to last, outward ones last to first. */
export function compileHooks(
  entries: readonly HookEntry[],
  operation: Operation,
  onFinishError: (owner: string, error: unknown) => void,
): CompiledHooks {
  const compiled: Record<string, AnyFunction | undefined> = {};
  for (const name of Object.keys(HOOKS) as HookName[]) {
    const steps = orderSteps(entries, name, operation);
    compiled[name] = steps.length === 0 ? undefined : combine(name, steps, onFinishError);
  }
  return compiled as unknown as CompiledHooks;
}

function orderSteps(entries: readonly HookEntry[], name: HookName, operation: Operation): Step[] {
  const rank = { pre: 0, none: 1, post: 2 } as const;
  const chosen = entries
    .filter((entry) => entry.name === name)
    .map((entry) => ({ owner: entry.owner, ...asObject(entry.hook) }))
    .filter((entry) => entry.operations === undefined || entry.operations.includes(operation));
  const sorted = chosen.toSorted((a, b) => rank[a.order ?? 'none'] - rank[b.order ?? 'none']);
  if (HOOKS[name].direction === 'out') sorted.reverse();
  return sorted.map(({ owner, handler }) => ({ owner, name, run: handler as unknown as AnyFunction }));
}

function asObject<N extends HookName>(hook: Hook<N>): HookObject<N> {
  return typeof hook === 'function' ? { handler: hook as HookFunctions[N] } : hook;
}

function combine(
  name: HookName,
  steps: readonly Step[],
  onFinishError: (owner: string, error: unknown) => void,
): AnyFunction {
  if (name === 'chunk') return chunks(steps);
  switch (HOOKS[name].kind) {
    case 'first':
      return first(steps);
    case 'sequence':
      return sequence(steps);
    case 'waterfall':
      return waterfall(steps);
    case 'parallel':
      return parallel(steps, onFinishError);
  }
}

/** The first answer that is not undefined wins. */
function first(steps: readonly Step[]): AnyFunction {
  return async (...args) => {
    for (const step of steps) {
      const answer = await call(step, args);
      if (answer === undefined) continue;
      if (typeof answer !== 'object' || answer === null) throw wrongReturn(step, answer);
      return answer;
    }
    return undefined;
  };
}

/** One after the other; a throw stops. */
function sequence(steps: readonly Step[]): AnyFunction {
  return async (...args) => {
    for (const step of steps) await call(step, args);
  };
}

/** Each one gets what the one before made of the value, which is the second argument. */
function waterfall(steps: readonly Step[]): AnyFunction {
  return async (subject, initial, ...rest) => {
    let value = initial;
    for (const step of steps) {
      const changed = await call(step, [subject, value, ...rest]);
      if (changed === undefined) continue;
      if (typeof changed !== 'object' || changed === null) throw wrongReturn(step, changed);
      value = changed;
    }
    return value;
  };
}

/** As a waterfall, but synchronous, and null drops the chunk. */
function chunks(steps: readonly Step[]): AnyFunction {
  return (subject, initial) => {
    let value = initial;
    for (const step of steps) {
      let changed: unknown;
      try {
        changed = step.run(subject, value);
      } catch (error) {
        throw blame(step, error);
      }
      if (changed === null) return null;
      if (changed === undefined) continue;
      if (changed instanceof Promise) {
        // Nobody waits for it, so what it rejects with must not end the process.
        changed.catch(() => {});
        throw blame(step, new TypeError('returned a promise; the chunk hook is synchronous'));
      }
      if (typeof changed !== 'object') throw wrongReturn(step, changed);
      value = changed;
    }
    return value;
  };
}

/** All at once; a throw of one is reported and does not reach the others. */
function parallel(steps: readonly Step[], onError: (owner: string, error: unknown) => void): AnyFunction {
  const runOne = async (step: Step, args: unknown[]) => {
    try {
      await call(step, args);
    } catch (error) {
      onError(step.owner, error);
    }
  };
  const [only] = steps;
  if (steps.length === 1 && only) return (...args) => runOne(only, args);
  return async (...args) => {
    await Promise.all(steps.map((step) => runOne(step, args)));
  };
}

/** Runs one hook; what it throws is blamed on its owner, and a promise that never settles ends in an error. */
function call(step: Step, args: unknown[]): unknown {
  let answer: unknown;
  try {
    answer = step.run(...args);
  } catch (error) {
    throw blame(step, error);
  }
  if (typeof answer !== 'object' || answer === null || typeof (answer as Promise<unknown>).then !== 'function')
    return answer;
  return bounded(step, answer as Promise<unknown>);
}

/** Hooks that have not settled. One timer looks at all of them: most are done before it is ever due. */
const waiting = new Set<Waiting>();
let isWatched = false;
const WATCH_MS = 1000;

interface Waiting {
  readonly until: number;
  readonly expire: () => void;
}

function watchWaiting(): void {
  const now = performance.now();
  for (const { until, expire } of waiting) {
    if (until > now) break;
    expire();
  }
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
function blame(step: Step, error: unknown): GatewayError {
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

function wrongReturn(step: Step, value: unknown): GatewayError {
  return blame(
    step,
    new TypeError(`returned ${value === null ? 'null' : typeof value}, which is neither a changed value nor undefined`),
  );
}
