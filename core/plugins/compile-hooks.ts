import { type Call, COUNT, type Operation, type Outcome, type Principal, type Target } from '../../contract/call.ts';
import type { ChatChunk } from '../../contract/chat.ts';
import type { GatewayError } from '../../contract/errors.ts';
import {
  type Answered,
  type AttemptReport,
  type AuthRequest,
  HOOKS,
  type HookName,
  type StreamTransform,
} from '../../contract/hooks.ts';
import { deepFreeze } from '../../contract/json.ts';
import type { HttpRequest } from '../../contract/provider.ts';
import { DEFAULT_RULES, HookBook, type HookRules } from './hook-guard.ts';
import {
  type Check,
  checkResult,
  type Handler,
  type HookEntry,
  type HookListeners,
  isChatChunk,
  isPromise,
  isSkipped,
  observe,
  passFailure,
  queueOf,
  recordAction,
  recover,
  resultShapes,
  runChain,
  runStep,
  type Step,
  type Steps,
  wrongResult,
} from './hook-runner.ts';
import { StreamChanges } from './stream-changes.ts';

/** Combined transform of all plugins for the chunks of one stream. */
export interface ChunkTransform {
  push(chunk: ChatChunk): Awaitable<readonly ChatChunk[]>;
  end(): Promise<readonly ChatChunk[]>;
  /** True if any of them may change chunks; the others only {@link ChunkTransform.observe}. */
  readonly changes: boolean;
  /** Passes a chunk to the observers as the provider sent it; undefined without observers. */
  readonly observe: ((chunk: ChatChunk) => Promise<void>) | undefined;
}

/** Synchronous if all steps of the hook are, which saves a promise; otherwise a promise. Either may throw. */
type Awaitable<T> = T | Promise<T>;

/**
 * Hooks of one operation, each as one function; undefined if no plugin uses it. Requests and responses are plain objects here,
 * because the operation is known only to the caller.
 */
export interface CompiledHooks {
  readonly authenticate: ((request: AuthRequest) => Awaitable<Principal | undefined>) | undefined;
  readonly arrive: ((principal: Principal) => Awaitable<void>) | undefined;
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
  /** Never throws; calls `onEnd` when all hooks are done. */
  readonly finish: ((call: Call, outcome: Outcome, onEnd: () => void) => void) | undefined;
}

interface CompileOptions extends HookListeners {
  readonly operation: Operation;
  /** Returns whether the operation's schema accepts a request. */
  readonly isRequest: Check;
  readonly isResponse: Check;
  /** Returns whether a provider with this name exists. Default: always true. */
  readonly isProvider?: Check;
  /** Book for the counts of calls; default: a new one. */
  readonly book?: HookBook;
  /** Returns the limits of an instance's hooks; default: the standard limits. */
  rulesOf?(owner: string): HookRules;
  /** Returns a wrapper for hooks of an instance that is limited to some calls or in log mode; undefined for others. */
  bindOf?(owner: string): ((entry: HookEntry) => Handler) | undefined;
}

/**
 * Compiles the hooks of one operation in the order of the configuration: inbound hooks first to last, outbound ones last to first.
 */
export function compileHooks(entries: readonly HookEntry[], options: CompileOptions): CompiledHooks {
  const shapes = resultShapes(
    ...([options.operation, options.isRequest, options.isResponse, options.isProvider ?? (() => true)] as const),
  );
  const compile = (name: HookName): Handler | undefined => {
    const steps = orderSteps(entries, name, options);
    return steps.length === 0 ? undefined : combine({ ...options, steps, shape: shapes[name] }, name);
  };
  const names = Object.keys(HOOKS) as HookName[];
  return Object.fromEntries(names.map((name) => [name, compile(name)])) as Partial<CompiledHooks> as CompiledHooks;
}

function orderSteps(entries: readonly HookEntry[], name: HookName, options: CompileOptions): readonly Step[] {
  const { operation, book = new HookBook(), rulesOf, bindOf, onPause } = options;
  const rank = { pre: 0, none: 1, post: 2 } as const;
  const steps = entries
    .filter((entry) => entry.name === name && (entry.operations?.includes(operation) ?? operation !== COUNT))
    .toSorted((a, b) => rank[a.order ?? 'none'] - rank[b.order ?? 'none'])
    .map((entry): Step => {
      const { timeoutMs, onFailure } = rulesOf?.(entry.owner) ?? DEFAULT_RULES;
      return {
        ...entry,
        handler: bindOf?.(entry.owner)?.(entry) ?? entry.handler,
        place: `plugin "${entry.owner}", hook "${name}"`,
        counts: book.countsOf(entry.owner, name),
        queue: queueOf(timeoutMs),
        failsOpen: onFailure === 'open' || HOOKS[name].kind === 'observe',
        onPause,
      };
    });
  return HOOKS[name].direction === 'out' ? steps.reverse() : steps;
}

function combine(hook: Steps, name: HookName): Handler {
  const { kind } = HOOKS[name];
  switch (kind) {
    case 'transform':
      return transform(hook);
    case 'observe':
      return observe.bind(undefined, hook);
    default:
      // Hooks that authenticate a caller have no call yet.
      return runChain.bind(undefined, { ...hook, kind, hasCall: name !== 'authenticate' && name !== 'arrive' });
  }
}

/** Combines the transforms of one stream. A chunk passes all of them in order, and a held-back chunk passes the later ones. */
function transform(hook: Steps): Handler {
  const { steps, shape, onIgnored } = hook;
  return async (call): Promise<ChunkTransform | undefined> => {
    const changing: Transforming[] = [];
    const watching: Step[] = [];
    for (const step of steps)
      try {
        if (step.counts.pausedUntilMs > 0 && isSkipped(step)) continue;
        const given = runStep(step, call);
        const made = (isPromise(given) ? await given : given) as Partial<StreamTransform> | undefined;
        if (made === undefined) continue;
        const [push, end] = stepsOfTransform(step, checkResult(step, shape, made) as object);
        if (made.observes === true) watching.push(push);
        else {
          const onChange = (): void => recordAction(hook, call, step, 'changed');
          const onFailure = passFailure.bind(undefined, hook, step, call);
          changing.push({ push, end, changes: new StreamChanges(onChange), isOut: false, onFailure });
        }
      } catch (error) {
        passFailure(hook, step, call, error);
      }
    if (changing.length + watching.length === 0) return undefined;
    return {
      changes: changing.length > 0,
      push: (chunk) => pushThrough(changing, [deepFreeze(chunk)]),
      end: () => endThrough(changing),
      observe: watching.length === 0 ? undefined : observeChunk,
    };

    async function observeChunk(chunk: ChatChunk): Promise<void> {
      for (const step of watching)
        try {
          const work = runStep(step, deepFreeze(chunk));
          if (isPromise(work)) await work;
        } catch (error) {
          onIgnored(step.owner, step.name, error);
        }
    }
  };
}

/** Transform of a running stream. */
interface Transforming {
  readonly push: Step;
  readonly end: Step | undefined;
  readonly changes: StreamChanges;
  /** True if it failed and the stream continues without it. */
  isOut: boolean;
  /** Throws unless its plugin fails open. */
  onFailure(error: unknown): void;
}

function stepsOfTransform(
  step: Step,
  made: { push?: unknown; end?: unknown },
): readonly [push: Step, end: Step | undefined] {
  const stepOf = (run: unknown): Step | undefined =>
    typeof run === 'function'
      ? { ...step, handler: (...args) => Reflect.apply(run, made, args) as unknown }
      : undefined;
  return [stepOf(made.push) ?? step, stepOf(made.end)];
}

/** Passes chunks through transforms, in order. */
function pushThrough(
  changing: readonly Transforming[],
  chunks: readonly ChatChunk[],
  from = 0,
): Awaitable<readonly ChatChunk[]> {
  let passing = chunks;
  let at = from;
  for (let each = changing[at]; each; each = changing[at]) {
    at += 1;
    const passed = pushAll(each, passing);
    if (passed instanceof Promise) return passed.then((out) => pushThrough(changing, out, at));
    passing = passed;
  }
  return passing;
}

function pushAll(each: Transforming, chunks: readonly ChatChunk[]): Awaitable<readonly ChatChunk[]> {
  const [first] = chunks;
  if (first && chunks.length === 1) return pushOne(each, first);
  const out: ChatChunk[] = [];
  for (const [at, chunk] of chunks.entries()) {
    const pushed = pushOne(each, chunk);
    if (pushed instanceof Promise)
      return pushed.then(async (next) => [...out, ...next, ...(await pushAll(each, chunks.slice(at + 1)))]);
    out.push(...pushed);
  }
  return out;
}

function pushOne(each: Transforming, chunk: ChatChunk): Awaitable<readonly ChatChunk[]> {
  if (each.isOut) return [chunk];
  try {
    const made = runStep(each.push, chunk);
    return made instanceof Promise ? awaitPushed(each, chunk, made) : takePushed(each, chunk, made);
  } catch (error) {
    each.onFailure(error);
    return passWithout(each, chunk);
  }
}

async function awaitPushed(
  each: Transforming,
  chunk: ChatChunk,
  made: Promise<unknown>,
): Promise<readonly ChatChunk[]> {
  try {
    return takePushed(each, chunk, await made);
  } catch (error) {
    each.onFailure(error);
    return passWithout(each, chunk);
  }
}

function takePushed({ push, changes }: Transforming, chunk: ChatChunk, made: unknown): readonly ChatChunk[] {
  // An unchanged chunk was validated before.
  const isSame = Array.isArray(made) && made.length === 1 && made[0] === chunk;
  const gone = isSame ? [chunk] : checkChunks(push, made);
  if (push.counts.failedInARow > 0) recover(push);
  if (!isSame || changes.isHolding) changes.note([chunk], gone);
  return gone;
}

/** Returns the remaining chunks of a stream after one of its transforms failed. */
async function passWithout(failed: Transforming, chunk: ChatChunk): Promise<readonly ChatChunk[]> {
  return [...(await releaseHeld(failed)), chunk];
}

/** Removes a failed transform from its stream and returns the chunks it held back, if it still provides them. */
async function releaseHeld(failed: Transforming): Promise<readonly ChatChunk[]> {
  failed.isOut = true;
  if (!failed.end) return [];
  try {
    return checkChunks(failed.end, await runStep(failed.end));
  } catch {
    return [];
  }
}

/** Passes the final chunks of each transform through the later ones before these end. */
async function endThrough(changing: readonly Transforming[]): Promise<readonly ChatChunk[]> {
  let passing: readonly ChatChunk[] = [];
  for (const each of changing) passing = [...(await pushAll(each, passing)), ...(await endOne(each))];
  return passing;
}

async function endOne(each: Transforming): Promise<readonly ChatChunk[]> {
  if (each.isOut) return [];
  try {
    const held = each.end ? checkChunks(each.end, await runStep(each.end)) : [];
    each.changes.note([], held);
    each.changes.end();
    return held;
  } catch (error) {
    each.onFailure(error);
    return releaseHeld(each);
  }
}

function checkChunks(step: Step, result: unknown): readonly ChatChunk[] {
  if (Array.isArray(result) && result.every(isChatChunk)) return result.map(deepFreeze) as readonly ChatChunk[];
  throw wrongResult(step, result, 'a list of chunks');
}
