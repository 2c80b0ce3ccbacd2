import type { InstanceScope, PluginInstance } from '../../config/core-schema.ts';
import { type Call, type CallHook, COUNT, type Principal } from '../../contract/call.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { isGatewayError } from '../../contract/errors.ts';
import type { HookName, StreamTransform } from '../../contract/hooks.ts';
import { type Handler, type HookEntry, isPromise } from './hook-runner.ts';
import { redactError } from './plugin-secrets.ts';
import { StreamChanges } from './stream-changes.ts';

/** Finds the name of a caller's plan, synchronously or as a promise. */
export type PlanNameOf = (principal: Principal) => string | undefined | Promise<string | undefined>;

interface ScopeParts {
  readonly planNameOf: PlanNameOf;
  /** Receives the action that a hook in log mode would have taken. */
  onVerdict(call: unknown, verdict: CallHook, error?: unknown): void;
}

/** Hooks without a call: an instance that is limited to some calls skips them. */
const WITHOUT_CALL: ReadonlySet<HookName> = new Set(['authenticate', 'arrive']);

/** Hooks that observe, or end the work of others: they also run in log mode. */
const WATCHING: ReadonlySet<HookName> = new Set(['attempt', 'finish']);

/** Creates the wrapper that limits the hooks of one instance to some calls, or to log mode; undefined for neither. */
export function createScope(scope: InstanceScope, parts: ScopeParts): ((entry: HookEntry) => Handler) | undefined {
  const { when, mode, beside: parallel } = scope;
  if (!when && mode !== 'log' && !parallel) return undefined;
  const verdicts = new Verdicts();
  // Decided once per call, so that all hooks of a call run or none.
  const decided = new WeakMap<object, boolean | Promise<boolean>>();
  const isMeant = (call: Call): boolean | Promise<boolean> => {
    let is = decided.get(call);
    if (is === undefined) {
      is = !when || matches(when, call, parts.planNameOf);
      decided.set(call, is);
    }
    return is;
  };
  return (entry) => {
    if (entry.handler === awaitVerdict) return (call) => verdicts.of(call as Call);
    const meant = bind(entry);
    // A token count has no response that could wait.
    const isParallel = parallel && entry.name === 'prepare' && !entry.operations?.includes(COUNT);
    return isParallel ? verdicts.note(meant) : meant;
  };

  function bind(entry: HookEntry): Handler {
    const run = mode === 'log' && !WATCHING.has(entry.name) ? onlyLog(entry, parts.onVerdict) : entry.handler;
    if (!when) return run;
    if (WITHOUT_CALL.has(entry.name)) return () => undefined;
    return (...args) => {
      const is = isMeant(args[0] as Call);
      if (isPromise(is)) return is.then((known) => (known ? run(...args) : undefined));
      return is ? run(...args) : undefined;
    };
  }
}

/** Marks the position where a response waits for policies that check its request in parallel. */
function awaitVerdict(): undefined {
  return undefined;
}

/** Returns the hooks where responses wait for policies that run in parallel with their calls. */
export function verdictHooks(instances: readonly Pick<PluginInstance, 'name' | 'scope'>[]): readonly HookEntry[] {
  return instances
    .filter(({ scope }) => scope?.beside)
    .flatMap(({ name: owner }) =>
      (['receive', 'stream'] as const).map((name) => ({ owner, name, handler: awaitVerdict })),
    );
}

/** Results of one policy for calls that did not wait for it. */
class Verdicts {
  readonly #running = new WeakMap<object, Promise<unknown>>();

  /** Returns a promise that the response waits for; it rejects if the policy rejects the call. */
  of(call: Call): Promise<unknown> | undefined {
    return this.#running.get(call);
  }

  /** Runs a hook in parallel with its call. Synchronous rejections apply at once. */
  note(run: Handler): Handler {
    return (...args) => {
      const [call] = args as readonly [Call];
      const work = run(...args);
      if (!isPromise(work)) return refuseChange(work);
      const verdict = Promise.all([this.#running.get(call), work.then(refuseChange)]).then(() => undefined);
      this.#running.set(call, verdict);
      // Prevents an unhandled rejection for calls that end without a response.
      verdict.catch(() => undefined);
      return undefined;
    };
  }
}

/** Rejects a change, because the provider already has the request. */
function refuseChange(result: unknown): undefined {
  if (result === undefined) return undefined;
  throw new TypeError(
    'changed the request of a call that it runs in parallel with: a policy with "beside" can only reject calls',
  );
}

type When = NonNullable<InstanceScope['when']>;

/** Returns whether a call matches every condition. */
function matches(when: When, call: Call, planNameOf: PlanNameOf): boolean | Promise<boolean> {
  const { principal, tags, targets, operation, client } = call;
  const { model } = call.request as Partial<ChatRequest>;
  const models = [...(model === undefined ? [] : [model]), ...targets.map((each) => `${each.provider}/${each.model}`)];
  const has = (names: readonly string[] | undefined, own: readonly (string | undefined)[]): boolean =>
    !names || own.some((one) => one !== undefined && names.some((name) => isNamed(name, one)));
  const fits =
    has(when.keys, [principal.keyId, principal.keyName]) &&
    has(when.users, [principal.userId]) &&
    has(when.accounts, [principal.account]) &&
    has(when.tags, tags) &&
    has(when.models, models) &&
    has(
      when.providers,
      targets.map(({ provider }) => provider),
    ) &&
    has(when.operations, [operation]) &&
    has(when.dialects, [client?.dialect]);
  if (!fits || !when.plans) return fits;
  const plan = planNameOf(principal);
  return isPromise(plan) ? Promise.resolve(plan).then((name) => has(when.plans, [name])) : has(when.plans, [plan]);
}

/** Matches names; `gpt-5*` is a prefix. */
function isNamed(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** Runs a hook in log mode: reports its action, and neither changes nor rejects anything. */
function onlyLog({ owner, name, handler }: HookEntry, onVerdict: ScopeParts['onVerdict']): Handler {
  const verdict = (call: unknown, action: CallHook['action'], error?: unknown): undefined => {
    onVerdict(call, { plugin: owner, hook: name, action }, redactError(owner, error));
    return undefined;
  };
  const onThrow = (call: unknown, error: unknown): undefined =>
    verdict(call, isGatewayError(error) && error.status < 500 ? 'would_refuse' : 'failed', error);
  return (...args) => {
    const [call] = args;
    const tell = (result: unknown): unknown => {
      if (result === undefined) return undefined;
      if (name === 'stream') return watch(result as StreamTransform, (action, error) => verdict(call, action, error));
      return verdict(call, 'would_change');
    };
    try {
      const result = handler(...args);
      return isPromise(result) ? result.then(tell, (error: unknown) => onThrow(call, error)) : tell(result);
    } catch (error) {
      return onThrow(call, error);
    }
  };
}

/** Creates a transform that observes a stream without changes, and reports once the action it would have taken. */
function watch(
  transform: StreamTransform,
  tell: (action: CallHook['action'], error?: unknown) => void,
): StreamTransform {
  if (transform.observes) return transform;
  let isOver = false;
  const end = (action: CallHook['action'], error?: unknown): void => {
    isOver = true;
    tell(action, error);
  };
  const changes = new StreamChanges(() => end('would_change'));
  return {
    observes: true,
    async push(chunk) {
      if (isOver) return [];
      try {
        const isLast = chunk.choices.some(({ finish_reason }) => finish_reason !== null);
        changes.note([chunk], await transform.push(chunk));
        if (!isLast) return [];
        changes.note([], (await transform.end?.()) ?? []);
        changes.end();
        isOver = true;
      } catch (error) {
        end(isGatewayError(error) && error.status < 500 ? 'would_refuse' : 'failed', error);
      }
      return [];
    },
  };
}
