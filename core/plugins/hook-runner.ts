import { type Call, COUNT, type Operation, type Outcome, type Principal, type Target } from '../contract/call.ts';
import type { ChatChunk } from '../contract/chat.ts';
import { GatewayError, isGatewayError } from '../contract/errors.ts';
import {
  type Answered,
  type AttemptReport,
  type AuthRequest,
  HOOKS,
  type Hook,
  type HookName,
  type HookObject,
  type StreamTransform,
} from '../contract/hooks.ts';
import { deepFreeze } from '../contract/json.ts';
import type { HttpRequest } from '../contract/provider.ts';
import { own, runAs } from './attribution.ts';
import { isChatChunk, type ResponseCheck, type ResultShape, resultShapes } from './hook-results.ts';

/** A hook as a plugin registered it. */
export interface HookEntry {
  readonly owner: string;
  readonly name: HookName;
  readonly handler: Step['run'];
  readonly order?: 'pre' | 'post';
  readonly operations?: readonly string[];
}

/** The changes that plugins make to the chunks of one stream, in one. */
export interface ChunkTransform {
  push(chunk: ChatChunk): Promise<readonly ChatChunk[]>;
  end(): Promise<readonly ChatChunk[]>;
  /** Whether any of them changes something; the others only {@link ChunkTransform.observe}. */
  readonly changes: boolean;
  /** Shows a chunk as the provider sent it to those that only watch. */
  observe(chunk: ChatChunk): Promise<void>;
}

/** At once where all steps of the hook are synchronous, which costs no promise; else as a promise. Either may throw. */
type Awaitable<T> = T | Promise<T>;

/**
 * The hooks of one operation, each as one function; one that nobody uses is undefined. Requests and responses are plain objects
 * here: which operation they belong to is known where they are run.
 */
export interface CompiledHooks {
  readonly authenticate: ((request: AuthRequest) => Awaitable<Principal | undefined>) | undefined;
  readonly admit: ((call: Call) => Awaitable<void>) | undefined;
  readonly prepare: ((call: Call, request: object) => Awaitable<object>) | undefined;
  readonly answer: ((call: Call) => Awaitable<Answered | undefined>) | undefined;
  readonly route: ((call: Call) => Awaitable<readonly Target[] | undefined>) | undefined;
  readonly reserve: ((call: Call) => Awaitable<void>) | undefined;
  readonly send: ((call: Call, request: HttpRequest, target: Target) => Awaitable<HttpRequest>) | undefined;
  /** Never throws or rejects. */
  readonly attempt: ((call: Call, report: AttemptReport) => Awaitable<void>) | undefined;
  readonly receive: ((call: Call, response: object) => Awaitable<object>) | undefined;
  readonly stream: ((call: Call) => Promise<ChunkTransform | undefined>) | undefined;
  readonly error: ((call: Call, error: GatewayError) => Awaitable<GatewayError>) | undefined;
  /** Never throws or rejects. */
  readonly finish: ((call: Call, outcome: Outcome) => Awaitable<void>) | undefined;
}

interface CompileOptions {
  readonly operation: Operation;
  /** Whether a request is one that the operation's schema accepts. */
  readonly isRequest: ResponseCheck;
  readonly isResponse: ResponseCheck;
  /** Told what a hook that only observes threw: it reaches nobody else. */
  onObserverError(owner: string, name: HookName, error: unknown): void;
  /** Counts work of such a hook, which no call waits for, until the function that it returns is called. */
  begin(what: string): () => void;
}

/** A hook's function of any name, as the runners make it. */
type Runner = (...args: readonly unknown[]) => unknown;

/** Compiles the hooks of one operation in the order of the configuration: inward hooks first to last, outward ones last to first. */
export function compileHooks(entries: readonly HookEntry[], options: CompileOptions): CompiledHooks {
  const shapes = resultShapes(options.operation, options.isRequest, options.isResponse);
  const compile = (name: HookName): Runner | undefined => {
    const steps = orderSteps(entries, name, options.operation);
    return steps.length === 0 ? undefined : combine(steps, name, shapes[name], options);
  };
  const names = Object.keys(HOOKS) as HookName[];
  return Object.fromEntries(names.map((name) => [name, compile(name)])) as Partial<CompiledHooks> as CompiledHooks;
}

function orderSteps(entries: readonly HookEntry[], name: HookName, operation: Operation): readonly Step[] {
  const rank = { pre: 0, none: 1, post: 2 } as const;
  const steps = entries
    .filter((entry) => entry.name === name && (entry.operations?.includes(operation) ?? operation !== COUNT))
    .toSorted((a, b) => rank[a.order ?? 'none'] - rank[b.order ?? 'none'])
    .map(({ owner, handler }): Step => ({ owner, name, run: handler }));
  return HOOKS[name].direction === 'out' ? steps.reverse() : steps;
}

function combine(steps: readonly Step[], name: HookName, shape: ResultShape, options: CompileOptions): Runner {
  const { kind } = HOOKS[name];
  switch (kind) {
    case 'first':
    case 'sequence':
      return (...args) => runChain({ kind, steps, shape }, args, undefined, 0);
    case 'waterfall':
      return (call, initial, ...rest) => runChain({ kind, steps, shape }, [call, ...rest], deepFreeze(initial), 0);
    case 'transform':
      return transform(steps, shape, options);
    case 'observe':
      return observe(steps, options);
  }
}

/** Steps that run one after the other; a throw stops. */
interface Chain {
  /**
   * `first`: the first result that is not undefined wins. `sequence`: there is none. `waterfall`: each step gets what the one
   * before made of the value, as its second argument.
   */
  readonly kind: 'first' | 'sequence' | 'waterfall';
  readonly steps: readonly Step[];
  readonly shape: ResultShape;
}

/** Runs the steps from the one at `from` on; a promise only where a step gives one. */
function runChain(chain: Chain, args: readonly unknown[], value: unknown, from: number): unknown {
  const step = chain.steps[from];
  if (!step) return value;
  const result = callStep(step, chain.kind === 'waterfall' ? [args[0], value, ...args.slice(1)] : args);
  const goOn = (settled: unknown): unknown => {
    if (settled === undefined) return runChain(chain, args, value, from + 1);
    const checked = checkResult(step, chain.shape, settled, value);
    return chain.kind === 'first' ? checked : runChain(chain, args, checked, from + 1);
  };
  return isPromise(result) ? settleStep(step, result, goOn) : goOn(result);
}

/** All at once; what one throws is reported and reaches neither the others nor the call. */
function observe(steps: readonly Step[], { onObserverError, begin }: CompileOptions): Runner {
  const observers = steps.map((step) => ({ step, place: placeOf(step) }));
  return (...args) => {
    const running: (readonly [step: Step, place: string, work: PromiseLike<unknown>])[] = [];
    for (const { step, place } of observers)
      try {
        const work = callStep(step, args);
        if (isPromise(work)) running.push([step, place, work]);
      } catch (error) {
        onObserverError(step.owner, step.name, error);
      }
    if (running.length === 0) return undefined;
    return new Promise<void>((resolve) => {
      let left = running.length;
      for (const [step, place, work] of running) {
        const end = begin(place);
        const done = (): void => {
          end();
          left -= 1;
          if (left === 0) resolve();
        };
        awaitStep(step, work, done, (error) => {
          onObserverError(step.owner, step.name, error);
          done();
        });
      }
    });
  };
}

/** The transforms of one stream as one: a chunk passes all of them in order, and what one held back passes those after it. */
function transform(steps: readonly Step[], shape: ResultShape, { onObserverError }: CompileOptions): Runner {
  return async (call): Promise<ChunkTransform | undefined> => {
    const own: TransformSteps[] = [];
    const watching: Step[] = [];
    for (const step of steps) {
      const given = runStep(step, call);
      const made = (isPromise(given) ? await given : given) as Partial<StreamTransform> | undefined;
      if (made === undefined) continue;
      const [push, end] = stepsOfTransform(step, checkResult(step, shape, made) as object);
      if (made.observes === true) watching.push(push);
      else own.push([push, end]);
    }
    if (own.length + watching.length === 0) return undefined;
    return {
      changes: own.length > 0,
      push: (chunk) => pushThrough(own, [chunk]),
      end: () => endThrough(own),
      async observe(chunk) {
        for (const step of watching)
          try {
            const work = runStep(step, deepFreeze(chunk));
            if (isPromise(work)) await work;
          } catch (error) {
            onObserverError(step.owner, step.name, error);
          }
      },
    };
  };
}

type TransformSteps = readonly [push: Step, end: Step | undefined];

function stepsOfTransform(step: Step, made: { push?: unknown; end?: unknown }): TransformSteps {
  const stepOf = (run: unknown): Step | undefined =>
    typeof run === 'function' ? { ...step, run: (...args) => Reflect.apply(run, made, args) as unknown } : undefined;
  return [stepOf(made.push) ?? step, stepOf(made.end)];
}

async function pushThrough(
  own: readonly TransformSteps[],
  chunks: readonly ChatChunk[],
): Promise<readonly ChatChunk[]> {
  let passing = chunks;
  for (const [push] of own) {
    const next: ChatChunk[] = [];
    for (const chunk of passing) {
      const made = runStep(push, deepFreeze(chunk));
      next.push(...checkChunks(push, isPromise(made) ? await made : made));
    }
    passing = next;
  }
  return passing;
}

async function endThrough(own: readonly TransformSteps[]): Promise<readonly ChatChunk[]> {
  let passing: readonly ChatChunk[] = [];
  for (const [at, [, end]] of own.entries()) {
    const held = end ? checkChunks(end, await runStep(end)) : [];
    passing = [...(await pushThrough(own.slice(at, at + 1), passing)), ...held];
  }
  return passing;
}

function checkChunks(step: Step, result: unknown): readonly ChatChunk[] {
  if (Array.isArray(result) && result.every(isChatChunk)) return result as readonly ChatChunk[];
  throw wrongResult(step, result, 'a list of chunks');
}

function checkResult(step: Step, shape: ResultShape, result: unknown, before?: unknown): unknown {
  if (!shape.fits(result, before)) throw wrongResult(step, result, shape.expected);
  return typeof result === 'object' && step.name !== 'stream' && step.name !== 'error' ? deepFreeze(result) : result;
}

/** What a plugin gave as a hook, as an entry of the registry. */
export function toHookEntry<N extends HookName>(owner: string, name: N, hook: Hook<N> | undefined): HookEntry {
  if (typeof hook === 'function') return { owner, name, handler: hook as Step['run'] };
  // A plugin in JavaScript may give anything; what is no hook is refused when it is added.
  const { handler, order, operations } = (hook ?? {}) as Partial<HookObject<N>>;
  return {
    owner,
    name,
    handler: handler as Step['run'],
    ...(order !== undefined && { order }),
    ...(operations !== undefined && { operations }),
  };
}

/** How long one hook may take before the call fails. */
export const HOOK_TIMEOUT_MS = 30_000;

/** One plugin's function for one hook. */
interface Step {
  readonly owner: string;
  readonly name: HookName;
  readonly run: (...args: readonly unknown[]) => unknown;
}

/**
 * Runs a step: what it returns, or a promise of it when it returns one. Whatever it throws is attributed to its plugin, and a
 * promise that never settles ends in an error.
 */
function runStep(step: Step, ...args: readonly unknown[]): unknown {
  const result = callStep(step, args);
  return isPromise(result) ? settleStep(step, result, (settled) => settled) : result;
}

/** Calls a step; what it throws at once is attributed to its plugin. */
function callStep(step: Step, args: readonly unknown[]): unknown {
  try {
    return runAs(step.owner, step.run, ...args);
  } catch (error) {
    throw attributeError(step, error);
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Goes on with what a step's promise comes to, as {@link awaitStep} does; resolves with what `next` makes of it. */
function settleStep<T>(
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
function awaitStep(
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
function attributeError(step: Pick<Step, 'owner' | 'name'>, error: unknown): GatewayError {
  const attributed = pluginError(placeOf(step), error);
  own(attributed, step.owner);
  return attributed;
}

/** A step in words. */
function placeOf({ owner, name }: Pick<Step, 'owner' | 'name'>): string {
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
function wrongResult(step: Step, value: unknown, expected: string): GatewayError {
  return attributeError(step, new TypeError(`returned ${describe(value)}; expected ${expected}, or undefined`));
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const names = Object.keys(value).slice(0, 5);
  return names.length === 0 ? 'an empty object' : `an object with ${names.join(', ')}`;
}
