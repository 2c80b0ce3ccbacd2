import type { CallHook, CredentialKind, Operation } from '../../contract/call.ts';
import { type GatewayError, isGatewayError } from '../../contract/errors.ts';
import type { HookName } from '../../contract/hooks.ts';
import { deepFreeze, isObject } from '../../contract/json.ts';
import { type Linked, LinkedList } from '../../contract/linked-list.ts';
import type { HttpRequest } from '../../contract/provider.ts';
import { attribute, attribution, pluginError, runAs } from './attribution.ts';
import {
  countFailure,
  countTimeout,
  forgetFailures,
  HOOK_TIMEOUT_MS,
  type HookCounts,
  isPaused,
} from './hook-guard.ts';
import { redactError } from './plugin-secrets.ts';

export type Handler = (...args: readonly unknown[]) => unknown;

/** Hook as registered by a plugin. */
export interface HookEntry {
  readonly owner: string;
  readonly name: HookName;
  readonly handler: Handler;
  readonly order?: 'pre' | 'post';
  readonly operations?: readonly string[];
}

/**
 * Steps that run in sequence; a throw stops them. `first`: the first result other than undefined wins. `sequence`: no result.
 * `waterfall`: each step gets the previous step's value as its second argument.
 */
export interface Chain extends Steps {
  readonly kind: 'first' | 'sequence' | 'waterfall';
  readonly hasCall: boolean;
}

/** Hook event listeners. */
export interface HookListeners {
  /** Receives the errors that a call ignores: those of observing hooks and of hooks that fail open. */
  onIgnored(owner: string, name: HookName, error: unknown): void;
  /** Receives the actions of hooks, for the record of a call. */
  onActed?(call: unknown, acted: CallHook): void;
  /** Receives the durations of asynchronous hooks over a millisecond. */
  onTimed?(call: unknown, step: Pick<Step, 'owner' | 'name'>, ms: number): void;
  /** Receives the start and the end of a hook's pause. */
  onPause?(owner: string, name: HookName, isPaused: boolean): void;
  /** Counts the work of hooks that no call waits for. */
  readonly pending: { begin(what: string): void; end(what: string): void };
}

/** Functions of all plugins for one hook, in order. */
export interface Steps extends HookListeners {
  readonly steps: readonly Step[];
  readonly shape: ResultShape;
}

/** Action of a hook that returned a result. */
const ACTIONS: Readonly<Partial<Record<HookName, CallHook['action']>>> = Object.freeze({
  answer: 'answered',
  route: 'routed',
});

/** Records a hook's action on a call. */
export function recordAction({ onActed }: Steps, call: unknown, step: Step, action: CallHook['action'], ms = 0): void {
  onActed?.(call, { plugin: step.owner, hook: step.name, action, ...(ms > 1 && { ms: Math.round(ms) }) });
}

/** Lets a call continue without a failed step if its plugin fails open; otherwise throws. A rejection is not a failure. */
export function passFailure(steps: Steps, step: Step, call: unknown, thrown: unknown, ms?: number): void {
  const hasFailed = isFailure(thrown);
  if (call !== undefined) recordAction(steps, call, step, hasFailed ? 'failed' : 'refused', ms);
  if (!step.failsOpen || !hasFailed) throw thrown;
  steps.onIgnored(step.owner, step.name, thrown);
}

/** Returns whether an error is a failure of a plugin (a bug or an unavailable dependency) and not a rejection. */
function isFailure(error: unknown): boolean {
  return !isGatewayError(error) || error.status >= 500;
}

/**
 * Runs the steps in order. Returns the value, or a promise of it if a step is asynchronous. `subject` is the first argument of each
 * step, `value` the initial value of a waterfall, `detail` the third argument.
 */
export function runChain(chain: Chain, subject: unknown, value?: unknown, detail?: unknown): unknown {
  return runFrom(chain, 0, chain.kind === 'waterfall' ? deepFreeze(value) : undefined, subject, detail);
}

/** Runs the steps from an index until one returns a promise, or to the end. */
function runFrom(chain: Chain, from: number, before: unknown, subject: unknown, detail: unknown): unknown {
  const { kind, steps, hasCall } = chain;
  const call = hasCall ? subject : undefined;
  let value = before;
  for (let at = from; at < steps.length; at += 1) {
    const step = steps[at];
    if (!step) break;
    try {
      if (step.counts.pausedUntilMs > 0 && isSkipped(step, call)) continue;
      const result = callStep(step, subject, value, detail);
      if (isPromise(result)) return awaitResult(chain, at, value, subject, detail, result);
      value = takeResult(chain, step, subject, result, value);
      if (kind === 'first' && result !== undefined) return value;
    } catch (error) {
      passFailure(chain, step, call, error);
    }
  }
  return value;
}

/** Returns the value after a step's result; throws for a result of a wrong shape. */
function takeResult(
  chain: Chain,
  step: Step,
  subject: unknown,
  result: unknown,
  before: unknown,
  ms?: number,
): unknown {
  let value = before;
  if (result !== undefined) {
    value = checkResult(step, chain.shape, result, before);
    if (chain.hasCall) recordAction(chain, subject, step, ACTIONS[step.name] ?? 'changed', ms);
  }
  step.counts.wentWell += 1;
  if (step.counts.failedInARow > 0) recover(step);
  return value;
}

/** Continues after the promise of the step `at` has settled. */
function awaitResult(
  chain: Chain,
  at: number,
  before: unknown,
  subject: unknown,
  detail: unknown,
  work: PromiseLike<unknown>,
): Promise<unknown> {
  const step = chain.steps[at] as Step;
  const call = chain.hasCall ? subject : undefined;
  return new Promise((resolve, reject) => {
    const onEnd: OnStepEnd = (error, result, ms) => {
      let value = before;
      try {
        if (ms !== undefined && ms > 1 && call !== undefined) chain.onTimed?.(call, step, ms);
        try {
          if (error) throw error;
          value = takeResult(chain, step, subject, result, before, ms);
          if (chain.kind === 'first' && result !== undefined) return resolve(value);
        } catch (thrown) {
          passFailure(chain, step, call, thrown, ms);
        }
        return resolve(runFrom(chain, at + 1, value, subject, detail));
      } catch (thrown) {
        return reject(thrown);
      }
    };
    awaitStep(step, work, onEnd, call);
  });
}

/** Runs all steps concurrently. Errors are reported and affect neither the other steps nor the call. */
export function observe({ steps, onIgnored, pending }: Steps, call: unknown, subject: unknown, onEnd?: unknown): void {
  let left = 1;
  const done = (): void => {
    left -= 1;
    if (left === 0 && typeof onEnd === 'function') onEnd();
  };
  for (const step of steps)
    try {
      if (step.counts.pausedUntilMs > 0 && isSkipped(step, call)) continue;
      const work = callStep(step, call, subject);
      if (!isPromise(work)) {
        step.counts.wentWell += 1;
        if (step.counts.failedInARow > 0) recover(step);
        continue;
      }
      left += 1;
      pending.begin(step.place);
      awaitStep(
        step,
        work,
        (error) => {
          if (error) onIgnored(step.owner, step.name, error);
          else if (step.counts.failedInARow > 0) recover(step);
          pending.end(step.place);
          done();
        },
        call,
      );
    } catch (error) {
      onIgnored(step.owner, step.name, error);
    }
  done();
}

export function checkResult(step: Step, shape: ResultShape, result: unknown, before?: unknown): unknown {
  if (!shape.fits(result, before)) throw wrongResult(step, result, shape.expected);
  if (step.name === 'error') return redactError(step.owner, result);
  return typeof result === 'object' && step.name !== 'stream' ? deepFreeze(result) : result;
}

/** Function of one plugin for one hook. */
export interface Step extends HookEntry {
  /** Description for messages. */
  readonly place: string;
  readonly counts: HookCounts;
  readonly queue: DeadlineQueue;
  readonly failsOpen: boolean;
  readonly onPause: HookListeners['onPause'];
}

/** Returns a step's result, or a promise of it, which rejects at the time limit. */
export function runStep(step: Step, subject?: unknown): unknown {
  const result = callStep(step, subject);
  if (!isPromise(result)) return result;
  return new Promise((resolve, reject) =>
    awaitStep(step, result, (error, settled) => (error ? reject(error) : resolve(settled))),
  );
}

/** Returns whether a call continues without a paused step; throws if the step fails closed. */
export function isSkipped(step: Step, call?: unknown): boolean {
  if (!isPaused(step.counts, accountOf(call))) return false;
  if (step.failsOpen) return true;
  throw blame(step, new Error('is skipped for a time, since its last calls timed out'));
}

/** Returns the paying account of a call, if the hook has a call. */
const accountOf = (call: unknown): string | undefined =>
  (call as { readonly principal?: { readonly account?: string } } | undefined)?.principal?.account;

/** Calls a step; synchronous errors are attributed to its plugin. */
function callStep(step: Step, subject: unknown, value?: unknown, detail?: unknown): unknown {
  step.counts.calls += 1;
  try {
    return attribution.isOn
      ? runAs(step.owner, step.handler, subject, value, detail)
      : step.handler(subject, value, detail);
  } catch (error) {
    throw attributeError(step, error);
  }
}

export function recover(step: Step): void {
  if (forgetFailures(step.counts)) step.onPause?.(step.owner, step.name, false);
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Step with a pending promise. */
class RunningStep implements Linked<RunningStep> {
  previous: RunningStep | undefined = undefined;
  next: RunningStep | undefined = undefined;
  isLinked = false;
  readonly untilMs: number;
  readonly #startedMs = performance.now();
  readonly #successesBefore: number;
  readonly #step: Step;
  readonly #onEnd: OnStepEnd;
  readonly #call: unknown;

  constructor(step: Step, onEnd: OnStepEnd, call: unknown) {
    this.#step = step;
    this.#onEnd = onEnd;
    this.#call = call;
    this.#successesBefore = step.counts.wentWell;
    this.untilMs = this.#startedMs + step.queue.timeoutMs;
  }

  /** Settles the step; ignored after its time limit. */
  readonly settle = (result: unknown): void => {
    if (this.#step.queue.running.remove(this)) this.#onEnd(undefined, result, this.#count());
  };

  readonly fail = (error: unknown): void => {
    if (this.#step.queue.running.remove(this)) this.#end(error);
  };

  /** Ends a step that was removed from its queue. */
  timeOut(): void {
    const step = this.#step;
    const { owner, name, counts, queue } = step;
    if (countTimeout(counts, this.#successesBefore, accountOf(this.#call))) step.onPause?.(owner, name, true);
    this.#end(new Error(`did not finish within ${queue.timeoutMs} ms`));
  }

  #end(error: unknown): void {
    const ms = this.#count();
    this.#onEnd(attributeError(this.#step, error), undefined, ms);
  }

  #count(): number {
    const { counts } = this.#step;
    const ms = performance.now() - this.#startedMs;
    counts.timed += 1;
    counts.timedMs += ms;
    return ms;
  }
}

type OnStepEnd = (error: GatewayError | undefined, result?: unknown, ms?: number) => void;

/** Steps with the same time limit, in order of their start: one timer, for the oldest, serves every call. */
interface DeadlineQueue {
  readonly timeoutMs: number;
  readonly running: LinkedList<RunningStep>;
  timer: NodeJS.Timeout | undefined;
}

const queues = new Map<number, DeadlineQueue>();

export function queueOf(timeoutMs: number): DeadlineQueue {
  let queue = queues.get(timeoutMs);
  if (!queue) {
    queue = { timeoutMs, running: new LinkedList(), timer: undefined };
    queues.set(timeoutMs, queue);
  }
  return queue;
}

/** Calls `onEnd` when a step's promise settles or times out; later results are ignored. */
function awaitStep(step: Step, work: PromiseLike<unknown>, onEnd: OnStepEnd, call?: unknown): void {
  const { queue } = step;
  const running = new RunningStep(step, onEnd, call);
  queue.running.add(running);
  queue.timer ??= setTimeout(watchSteps, queue.timeoutMs, queue).unref();
  work.then(running.settle, running.fail);
}

/** A timer may fire slightly before the time of `performance.now()`. */
const TOLERANCE_MS = 5;

function watchSteps(queue: DeadlineQueue): void {
  const nowMs = performance.now();
  const nextMs = failLateSteps(nowMs + TOLERANCE_MS, queue);
  queue.timer = nextMs === undefined ? undefined : setTimeout(watchSteps, nextMs - nowMs, queue).unref();
}

/** Fails the expired steps of a queue at `nowMs` (of `performance.now()`); returns the time limit of the next step. */
export function failLateSteps(
  nowMs: number,
  { running }: DeadlineQueue = queueOf(HOOK_TIMEOUT_MS),
): number | undefined {
  for (let step = running.first; step; step = running.first) {
    if (step.untilMs > nowMs) return step.untilMs;
    running.remove(step);
    step.timeOut();
  }
  return undefined;
}

/** Passes a GatewayError, which is the plugin's response. Any other error is a bug of the plugin, which the log names. */
function attributeError(step: Step, error: unknown): GatewayError {
  if (isFailure(error)) countFailure(step.counts);
  return blame(step, error);
}

function blame(step: Step, error: unknown): GatewayError {
  return attribute(pluginError(step.place, error), step.owner) as GatewayError;
}

/** Returns the error for a step with an invalid result. */
export function wrongResult(step: Step, value: unknown, expected: string): GatewayError {
  const error = new TypeError(`returned ${describe(value)}; expected ${expected}, or undefined`);
  // The stack of the check says nothing about the plugin's code.
  error.stack = String(error);
  return attributeError(step, error);
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const names = Object.keys(value).slice(0, 5);
  return names.length === 0 ? 'an empty object' : `an object with ${names.join(', ')}`;
}

/** Shape of a hook's result, validated so that an error names the plugin and not the reader of the result. */
export interface ResultShape {
  readonly expected: string;
  /** `before` is the input of a waterfall hook. */
  readonly fits: (value: unknown, before?: unknown) => boolean;
}

/** Returns whether a value has the shape of an operation's request or response. */
export type Check = (value: unknown) => boolean;

export const isChatChunk = (value: unknown): boolean =>
  isObject(value) &&
  Array.isArray(value['choices']) &&
  value['choices'].every((choice) => isObject(choice) && isObject(choice['delta']));

const isName = (value: unknown): boolean => typeof value === 'string' && value !== '';

const CREDENTIALS: ReadonlySet<unknown> = new Set<CredentialKind>(['key', 'token', 'session']);

const isPrincipal = (value: unknown): boolean =>
  isObject(value) && CREDENTIALS.has(value['credential']) && isName(value['userId']) && isName(value['account']);

const isTarget = (value: unknown): value is { readonly provider: string } =>
  isObject(value) && isName(value['provider']) && isName(value['model']);

const isStream = (request: unknown): boolean => isObject(request) && request['stream'] === true;

const isCost = (value: unknown): boolean =>
  value === undefined || (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0);

const isHeaders = (value: unknown): boolean =>
  value === undefined || (isObject(value) && Object.values(value).every((text) => typeof text === 'string'));

const NOTHING: ResultShape = { expected: 'nothing (throw an error to reject)', fits: () => false };

/** Returns the shape of each hook's result, for hooks with a result. */
export function resultShapes(
  operation: Operation,
  isRequest: Check,
  isResponse: Check,
  isProvider: Check,
): Readonly<Record<HookName, ResultShape>> {
  const response: ResultShape = { expected: `a response of the operation "${operation}"`, fits: isResponse };
  return {
    authenticate: { expected: 'a principal with credential, userId and account', fits: isPrincipal },
    admit: NOTHING,
    prepare: {
      expected: `a valid request of "${operation}" with the same value of "stream"`,
      fits: (value, before) => isRequest(value) && isStream(value) === isStream(before),
    },
    answer: {
      expected: `an object with a response of the operation "${operation}", whole nano-dollars as its cost and text headers`,
      fits: (value) =>
        isObject(value) &&
        isResponse(value['response']) &&
        isCost(value['cost']) &&
        isCost(value['saved']) &&
        isHeaders(value['headers']),
    },
    route: {
      expected: 'a list of targets, each with a model and an existing provider',
      fits: (value) =>
        Array.isArray(value) && value.length > 0 && value.every((each) => isTarget(each) && isProvider(each.provider)),
    },
    arrive: NOTHING,
    reserve: NOTHING,
    send: {
      expected: 'an HTTP request with a path and an unchanged body',
      fits: (value, before) =>
        isObject(value) &&
        typeof value['path'] === 'string' &&
        value['path'].startsWith('/') &&
        value['body'] === (before as HttpRequest | undefined)?.body,
    },
    attempt: { expected: 'nothing', fits: () => true },
    receive: response,
    stream: {
      expected: 'an object with a push function',
      fits: (value) => isObject(value) && typeof value['push'] === 'function',
    },
    error: { expected: 'a GatewayError', fits: isGatewayError },
    finish: { expected: 'nothing', fits: () => true },
  };
}
