import type { Operation } from '../contract/call.ts';
import { HOOKS, type Hook, type HookFunctions, type HookName, type HookObject } from '../contract/hooks.ts';
import { type AnyFunction, type Args, blame, call, type Step, wrongReturn } from './hook-call.ts';

/** A hook as a plugin registered it. */
export interface HookEntry<N extends HookName = HookName> {
  readonly owner: string;
  readonly name: N;
  readonly hook: Hook<N>;
}

/** The hooks of one operation, each compiled into one function; a hook that nobody uses is undefined and costs nothing. */
export type CompiledHooks = { readonly [N in HookName]: HookFunctions[N] | undefined };

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

/**
 * Hooks run without a promise as long as they answer without one: most do, and each turn costs a call as much as a small
 * hook. What runs after the first promise is in the functions named `…From`.
 */

/** The first answer that is not undefined wins. */
function first(steps: readonly Step[]): AnyFunction {
  return (a, b, c) => {
    for (let at = 0; at < steps.length; at += 1) {
      const step = steps[at] as Step;
      const answer = call(step, a, b, c);
      if (answer instanceof Promise) return firstFrom(steps, at, answer, [a, b, c]);
      if (answer !== undefined) return checked(step, answer);
    }
    return undefined;
  };
}

async function firstFrom(
  steps: readonly Step[],
  from: number,
  pending: Promise<unknown>,
  args: Args,
): Promise<unknown> {
  for (const [at, step] of steps.entries()) {
    if (at < from) continue;
    const answer = await (at === from ? pending : call(step, ...args));
    if (answer !== undefined) return checked(step, answer);
  }
  return undefined;
}

/** One after the other; a throw stops. */
function sequence(steps: readonly Step[]): AnyFunction {
  return (a, b, c) => {
    for (let at = 0; at < steps.length; at += 1) {
      const step = steps[at] as Step;
      const answer = call(step, a, b, c);
      if (answer instanceof Promise)
        return at === steps.length - 1 ? answer : sequenceFrom(steps, at, answer, [a, b, c]);
    }
    return undefined;
  };
}

async function sequenceFrom(
  steps: readonly Step[],
  from: number,
  pending: Promise<unknown>,
  args: Args,
): Promise<void> {
  await pending;
  for (const step of steps.slice(from + 1)) {
    const answer = call(step, ...args);
    if (answer instanceof Promise) await answer;
  }
}

/** Each one gets what the one before made of the value, which is the second argument. */
function waterfall(steps: readonly Step[]): AnyFunction {
  return (subject, initial, c) => {
    let value = initial;
    for (let at = 0; at < steps.length; at += 1) {
      const step = steps[at] as Step;
      const changed = call(step, subject, value, c);
      if (changed instanceof Promise) return waterfallFrom(steps, at, changed, [subject, value, c]);
      if (changed !== undefined) value = checked(step, changed);
    }
    return value;
  };
}

async function waterfallFrom(
  steps: readonly Step[],
  from: number,
  pending: Promise<unknown>,
  [subject, initial, c]: Args,
): Promise<unknown> {
  let value = initial;
  for (const [at, step] of steps.entries()) {
    if (at < from) continue;
    const changed = await (at === from ? pending : call(step, subject, value, c));
    if (changed !== undefined) value = checked(step, changed);
  }
  return value;
}

function checked(step: Step, answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null) throw wrongReturn(step, answer);
  return answer;
}

/** As a waterfall, but synchronous, and null drops the chunk. */
function chunks(steps: readonly Step[]): AnyFunction {
  return (subject, initial) => {
    let value = initial;
    for (const step of steps) {
      let changed: unknown;
      try {
        changed = step.run(subject, value, undefined);
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
  const runOne = (step: Step, a: unknown, b: unknown): Promise<unknown> | undefined => {
    const report = (error: unknown): void => onError(step.owner, error);
    try {
      const answer = call(step, a, b, undefined);
      return answer instanceof Promise ? answer.catch(report) : undefined;
    } catch (error) {
      report(error);
      return undefined;
    }
  };
  return (a, b) => {
    let pending: Promise<unknown>[] | undefined;
    for (const step of steps) {
      const answer = runOne(step, a, b);
      if (!answer) continue;
      pending ??= [];
      pending.push(answer);
    }
    return pending && (pending.length === 1 ? pending[0] : Promise.all(pending));
  };
}
