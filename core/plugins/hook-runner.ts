import {
  type Call,
  COUNT,
  type CredentialKind,
  type Operation,
  type Outcome,
  type Principal,
  type Target,
} from '../contract/call.ts';
import type { ChatChunk } from '../contract/chat.ts';
import { type GatewayError, isGatewayError } from '../contract/errors.ts';
import {
  type Answered,
  type AttemptReport,
  type AuthRequest,
  HOOKS,
  type HookName,
  type StreamTransform,
} from '../contract/hooks.ts';
import { deepFreeze, isObject } from '../contract/json.ts';
import type { HttpRequest } from '../contract/provider.ts';
import { attribution, own, pluginError, runAs } from './attribution.ts';

type Handler = (...args: readonly unknown[]) => unknown;

/** A hook as a plugin registered it. */
export interface HookEntry {
  readonly owner: string;
  readonly name: HookName;
  readonly handler: Handler;
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
 * The hooks of one operation, each as one function; one that no plugin uses is undefined. Requests and responses are plain objects
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
  /** Never throws. */
  readonly attempt: ((call: Call, report: AttemptReport) => void) | undefined;
  readonly receive: ((call: Call, response: object) => Awaitable<object>) | undefined;
  readonly stream: ((call: Call) => Promise<ChunkTransform | undefined>) | undefined;
  readonly error: ((call: Call, error: GatewayError) => Awaitable<GatewayError>) | undefined;
  /** Never throws; calls `onEnd` when all of them are done. */
  readonly finish: ((call: Call, outcome: Outcome, onEnd: () => void) => void) | undefined;
}

interface CompileOptions {
  readonly operation: Operation;
  /** Whether a request is one that the operation's schema accepts. */
  readonly isRequest: Check;
  readonly isResponse: Check;
  /** Gets what a hook that only observes threw; the call does not. */
  onObserverError(owner: string, name: HookName, error: unknown): void;
  /** Counts work of such a hook, which no call waits for. */
  readonly pending: { begin(what: string): void; end(what: string): void };
}

/** Compiles the hooks of one operation in the order of the configuration: inward hooks first to last, outward ones last to first. */
export function compileHooks(entries: readonly HookEntry[], options: CompileOptions): CompiledHooks {
  const shapes = resultShapes(options.operation, options.isRequest, options.isResponse);
  const compile = (name: HookName): Handler | undefined => {
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
    .map((entry): Step => ({ ...entry, place: `plugin "${entry.owner}", hook "${name}"` }));
  return HOOKS[name].direction === 'out' ? steps.reverse() : steps;
}

function combine(steps: readonly Step[], name: HookName, shape: ResultShape, options: CompileOptions): Handler {
  const { kind } = HOOKS[name];
  switch (kind) {
    case 'transform':
      return transform(steps, shape, options);
    case 'observe':
      return observe.bind(undefined, steps, options);
    default:
      return runChain.bind(undefined, { kind, steps, shape });
  }
}

/**
 * Steps that run one after the other; a throw stops. `first`: the first result that is not undefined wins. `sequence`: there is
 * none. `waterfall`: each step gets what the one before made of the value, as its second argument.
 */
interface Chain {
  readonly kind: 'first' | 'sequence' | 'waterfall';
  readonly steps: readonly Step[];
  readonly shape: ResultShape;
}

/** Runs the steps in order; returns the value, or one promise of it when a step gives a promise. */
function runChain({ kind, steps, shape }: Chain, ...args: readonly unknown[]): unknown {
  const isWaterfall = kind === 'waterfall';
  let value: unknown = isWaterfall ? deepFreeze(args[1]) : undefined;
  let at = 0;
  const take = (step: Step, result: unknown): void => {
    at = kind === 'first' && result !== undefined ? steps.length : at + 1;
    if (result !== undefined) value = checkResult(step, shape, result, value);
  };
  /** Runs the steps that give their result at once; returns the one that gives a promise, with it. */
  const runOn = (): readonly [step: Step, work: PromiseLike<unknown>] | undefined => {
    for (let step = steps[at]; step; step = steps[at]) {
      const result = callStep(step, isWaterfall ? [args[0], value, ...args.slice(2)] : args);
      if (isPromise(result)) return [step, result];
      take(step, result);
    }
    return undefined;
  };
  let waiting = runOn();
  if (!waiting) return value;
  const [step, work] = waiting;
  return new Promise((resolve, reject) => {
    const onEnd = (error: GatewayError | undefined, result?: unknown): void => {
      try {
        if (error || !waiting) throw error;
        take(waiting[0], result);
        waiting = runOn();
        if (waiting) awaitStep(...waiting, onEnd);
        else resolve(value);
      } catch (thrown) {
        reject(thrown);
      }
    };
    awaitStep(step, work, onEnd);
  });
}

/** Runs all steps at once; what one throws is reported and reaches neither the others nor the call. */
function observe(
  steps: readonly Step[],
  { onObserverError, pending }: CompileOptions,
  ...args: readonly unknown[]
): void {
  const [call, subject, onEnd] = args;
  let left = 1;
  const done = (): void => {
    left -= 1;
    if (left === 0 && typeof onEnd === 'function') onEnd();
  };
  for (const step of steps)
    try {
      const work = callStep(step, [call, subject]);
      if (!isPromise(work)) continue;
      left += 1;
      pending.begin(step.place);
      awaitStep(step, work, (error) => {
        if (error) onObserverError(step.owner, step.name, error);
        pending.end(step.place);
        done();
      });
    } catch (error) {
      onObserverError(step.owner, step.name, error);
    }
  done();
}

/** The transforms of one stream as one: a chunk passes all of them in order, and what one held back passes those after it. */
function transform(steps: readonly Step[], shape: ResultShape, { onObserverError }: CompileOptions): Handler {
  return async (call): Promise<ChunkTransform | undefined> => {
    const changing: TransformSteps[] = [];
    const watching: Step[] = [];
    for (const step of steps) {
      const given = runStep(step, call);
      const made = (isPromise(given) ? await given : given) as Partial<StreamTransform> | undefined;
      if (made === undefined) continue;
      const [push, end] = stepsOfTransform(step, checkResult(step, shape, made) as object);
      if (made.observes === true) watching.push(push);
      else changing.push([push, end]);
    }
    if (changing.length + watching.length === 0) return undefined;
    return {
      changes: changing.length > 0,
      push: (chunk) => pushThrough(changing, [chunk]),
      end: () => endThrough(changing),
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
    typeof run === 'function'
      ? { ...step, handler: (...args) => Reflect.apply(run, made, args) as unknown }
      : undefined;
  return [stepOf(made.push) ?? step, stepOf(made.end)];
}

async function pushThrough(
  changing: readonly TransformSteps[],
  chunks: readonly ChatChunk[],
): Promise<readonly ChatChunk[]> {
  let passing = chunks;
  for (const [push] of changing) {
    const next: ChatChunk[] = [];
    for (const chunk of passing) {
      const made = runStep(push, deepFreeze(chunk));
      next.push(...checkChunks(push, isPromise(made) ? await made : made));
    }
    passing = next;
  }
  return passing;
}

async function endThrough(changing: readonly TransformSteps[]): Promise<readonly ChatChunk[]> {
  let passing: readonly ChatChunk[] = [];
  for (const [at, [, end]] of changing.entries()) {
    const held = end ? checkChunks(end, await runStep(end)) : [];
    passing = [...(await pushThrough(changing.slice(at, at + 1), passing)), ...held];
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

/** How long one hook may take before the call fails. */
export const HOOK_TIMEOUT_MS = 30_000;

/** One plugin's function for one hook. */
interface Step extends HookEntry {
  /** In words. */
  readonly place: string;
}

/** What a step returns: a promise of it when it returns one, which fails when it never settles. */
function runStep(step: Step, ...args: readonly unknown[]): unknown {
  const result = callStep(step, args);
  if (!isPromise(result)) return result;
  return new Promise((resolve, reject) =>
    awaitStep(step, result, (error, settled) => (error ? reject(error) : resolve(settled))),
  );
}

/** Calls a step; what it throws at once is attributed to its plugin. */
function callStep(step: Step, args: readonly unknown[]): unknown {
  try {
    return attribution.isOn ? runAs(step.owner, step.handler, ...args) : step.handler(...args);
  } catch (error) {
    throw attributeError(step, error);
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** A step whose promise has not settled. */
interface RunningStep {
  readonly untilMs: number;
  readonly fail: (error: Error) => void;
}

/** In the order in which they began. All have the same time, so one timer, for the oldest, serves every call. */
const running = new Set<RunningStep>();
let timer: NodeJS.Timeout | undefined;

/** Calls `onEnd` when a step's promise settles, or takes too long: what it comes to later is ignored. */
function awaitStep(
  step: Step,
  work: PromiseLike<unknown>,
  onEnd: (error: GatewayError | undefined, result?: unknown) => void,
): void {
  const fail = (error: unknown): void => onEnd(attributeError(step, error));
  const waiting: RunningStep = { untilMs: performance.now() + HOOK_TIMEOUT_MS, fail };
  running.add(waiting);
  if (!timer) timer = setTimeout(watchSteps, HOOK_TIMEOUT_MS).unref();
  work.then(
    (result) => {
      if (running.delete(waiting)) onEnd(undefined, result);
    },
    (error: unknown) => {
      if (running.delete(waiting)) fail(error);
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

/** Fails the steps whose time is over at `nowMs` (of `performance.now()`); returns when the next one's time is over. */
export function failLateSteps(nowMs: number): number | undefined {
  for (const step of running) {
    if (step.untilMs > nowMs) return step.untilMs;
    running.delete(step);
    step.fail(new Error(`did not finish within ${HOOK_TIMEOUT_MS} ms`));
  }
  return undefined;
}

/** A GatewayError is the plugin's response and passes; anything else is a bug of the plugin, which the log names. */
function attributeError(step: Step, error: unknown): GatewayError {
  const attributed = pluginError(step.place, error);
  own(attributed, step.owner);
  return attributed;
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

/** The shape of a hook's result: checked, so that an error names the plugin and not the code that reads the result. */
interface ResultShape {
  readonly expected: string;
  /** `before` is what a waterfall hook was given to change. */
  readonly fits: (value: unknown, before?: unknown) => boolean;
}

/** Whether a value looks like a request or a response of an operation. */
type Check = (value: unknown) => boolean;

const isChatChunk = (value: unknown): boolean =>
  isObject(value) &&
  Array.isArray(value['choices']) &&
  value['choices'].every((choice) => isObject(choice) && isObject(choice['delta']));

const isName = (value: unknown): boolean => typeof value === 'string' && value !== '';

const CREDENTIALS: ReadonlySet<unknown> = new Set<CredentialKind>(['key', 'token', 'session']);

const isPrincipal = (value: unknown): boolean =>
  isObject(value) && CREDENTIALS.has(value['credential']) && isName(value['userId']) && isName(value['account']);

const isTarget = (value: unknown): boolean => isObject(value) && isName(value['provider']) && isName(value['model']);

const isStream = (request: unknown): boolean => isObject(request) && request['stream'] === true;

const isCost = (value: unknown): boolean =>
  value === undefined || (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0);

const isHeaders = (value: unknown): boolean =>
  value === undefined || (isObject(value) && Object.values(value).every((text) => typeof text === 'string'));

const NOTHING: ResultShape = { expected: 'nothing: a throw refuses', fits: () => false };

/** The shape of each hook's result, where it has one that counts. */
function resultShapes(
  operation: Operation,
  isRequest: Check,
  isResponse: Check,
): Readonly<Record<HookName, ResultShape>> {
  const response: ResultShape = { expected: `a response of the operation "${operation}"`, fits: isResponse };
  return {
    authenticate: { expected: 'a principal with credential, userId and account', fits: isPrincipal },
    admit: NOTHING,
    prepare: {
      expected: `a request that the schema of "${operation}" accepts, a stream or whole as it was`,
      fits: (value, before) => isRequest(value) && isStream(value) === isStream(before),
    },
    answer: {
      expected: `an object with a response of the operation "${operation}", whole micro-dollars as its cost and text headers`,
      fits: (value) =>
        isObject(value) &&
        isResponse(value['response']) &&
        isCost(value['cost']) &&
        isCost(value['saved']) &&
        isHeaders(value['headers']),
    },
    route: {
      expected: 'a list of targets, each with provider and model',
      fits: (value) => Array.isArray(value) && value.length > 0 && value.every(isTarget),
    },
    reserve: NOTHING,
    send: {
      expected:
        'an HTTP request with a path and the body that it was given: what was checked and priced is what is sent',
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
