import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { InputCount, Target } from '../../contract/call.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { GatewayError } from '../../contract/errors.ts';
import { factsOf } from '../../contract/facts.ts';
import type { ChatDraft } from '../../contract/operation.ts';
import { type HttpRequest, type NativeRow, type Provider, StreamFailure } from '../../contract/provider.ts';
import { maxEntries } from '../../contract/units.ts';
import {
  attemptReport,
  type FailedAttempt,
  readFailedAttempt,
  readJson,
  responseNotes,
  sendAttempt,
} from './attempt.ts';
import type { Call, CallInput } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { planChat } from './chat.ts';
import { assertEffects, assertNeeds, assertPublicMedia, effectsOf, type Ingress, nativeRequest } from './ingress.ts';
import { estimateChat } from './meter.ts';
import { runCall } from './run-call.ts';
import { openFor } from './seals.ts';

interface Counted {
  readonly count: InputCount;
  readonly headers: Readonly<Record<string, string>>;
}

/** Counts the input tokens of chat requests, each with the caller's own body. */
export type Counter = (input: CallInput<'chat'>, body: unknown) => Promise<Counted>;

/** How long a vendor may take to count, in all; callers do it before each turn. */
const PROVIDER_MS = 2000;

const MAX_RESPONSE_BYTES = 64 * 1024;

/**
 * Makes the operation `count`: the first target's vendor is asked where it speaks the caller's format, else the tokens are
 * estimated here. It costs nothing, and whatever goes wrong with the vendor ends in an estimate.
 */
export function createCounter(deps: CallDeps, bounds: CountBounds = createCountBounds()): Counter {
  return (input, body) => {
    const counting = { ...input, operation: 'count', stream: false } as const;
    return runCall(deps, counting, {
      respondEarly: (_call, { response, headers }) => ({ count: response as InputCount, headers }),
      async callTargets(_deps, call) {
        // Also when its caller leaves amid it.
        call.record.metered = FREE;
        return { count: await countInput(deps, bounds, call, body) };
      },
      respond: (_deps, call, { count, headers }: CountResponse) => respond(call, count, headers),
    });
  };
}

/**
 * A chat request as it would be sent, let in as a call is and held to what one would be: nothing is sent. Hooks that look at requests see it
 * as they see a count.
 */
export function draftChat(
  deps: CallDeps,
  { caller: { onOutcome: _, ...caller }, ...input }: CallInput<'chat'>,
  takes: (provider: string) => boolean,
): Promise<ChatDraft> {
  return runCall<ChatDraft, ChatDraft>(deps, { ...input, caller, operation: 'count', stream: false } as const, {
    respondEarly() {
      throw new GatewayError(
        'invalid_request',
        'A plugin of this gateway answers this request, so it cannot be part of a batch.',
      );
    },
    async callTargets(_deps, call) {
      call.record.metered = FREE;
      const { catalog } = deps.partsOf('chat');
      const target = call.targets.find(({ provider }) => takes(provider));
      if (!target) throw beyondBatches(call.targets);
      if (call.client?.ownSubscription)
        throw new GatewayError(
          'permission_denied',
          'Batches cannot use your own subscription. Send the gateway’s key alone.',
        );
      assertPublicMedia([...factsOf(call.request as ChatRequest).media, ...(call.client?.media ?? [])]);
      const { provider, request } = planChat(deps, call, target);
      const needs = effectsOf(provider.effects, target, request);
      await assertEffects(deps, call, needs, [target]);
      const model = catalog.find(target.provider, target.model);
      const tools = [...(call.client?.needs ?? []), ...needs].filter(({ kind }) => kind === 'server tool');
      return {
        target,
        requested: input.request.model,
        request,
        most: (price) => estimateChat(call.request as ChatRequest, model, price, undefined, tools),
      };
    },
    respond(_deps, call, draft) {
      call.finish('ok');
      return draft;
    },
  });
}

function beyondBatches([first]: readonly Target[]): GatewayError {
  return new GatewayError(
    'unsupported_model',
    `The provider "${first?.provider}" does not support batches in this format. Use a model of another provider, or send the requests one by one.`,
    { param: 'model' },
  );
}

interface CountResponse {
  readonly count: InputCount;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

const FREE = Object.freeze({ units: Object.freeze({}), cost: 0 });

async function respond(call: Call, given: InputCount, more: Readonly<Record<string, string>> = {}): Promise<Counted> {
  call.record.metered = FREE;
  const count = call.hooks.receive ? ((await call.hooks.receive(call, given)) as InputCount) : given;
  call.finish('ok');
  const headers = { ...more, ...(count.estimated && { 'x-tollgate-estimated': 'true' }) };
  return { count, headers: responseNotes(call, call.targets[0], { headers }).headers() };
}

async function countInput(deps: CallDeps, bounds: CountBounds, call: Call, body: unknown): Promise<InputCount> {
  const [target] = call.targets;
  const provider = target && deps.partsOf('count').offers.get(target.provider);
  if (!provider)
    throw new GatewayError('unsupported_model', 'No target is available for this model.', { param: 'model' });
  call.record.target = target;
  const request = call.request as ChatRequest;
  const estimate = (): InputCount => ({
    inputTokens: Math.ceil(factsOf(request).inputTokens * ((provider as Provider).countFactor ?? 1)),
    estimated: true,
  });
  const { keyId, userId, limitsId = keyId } = call.principal;
  const key = limitsId ?? `user ${userId}`;
  const row = call.client && (provider as Provider).native?.(target.model, false)[call.client.row];
  if (!call.client || !row?.count || call.route.isTranslated || !bounds.admit(key)) return estimate();
  const { dialect, headers, before } = call.client;
  // What hooks made of the request counts too; mostly it is what was read.
  const changed = request === before ? null : request;
  const fingerprint = fingerprintOf(key, dialect, target, headers, changed, body);
  const known = bounds.find(fingerprint);
  if (known) return known;
  const question = prepareQuestion(deps, call, call.client, { ...row, count: row.count }, target, provider);
  const told = question && (await bounds.send(key, () => sendQuestion(deps, call, target, provider, question)));
  const count = told === undefined ? estimate() : { inputTokens: told, estimated: false };
  bounds.remember(fingerprint, count);
  return count;
}

/** What a vendor is asked, and how its response is read. */
interface Question {
  readonly request: HttpRequest;
  response(body: unknown): number | undefined;
}

type CountingRow = NativeRow & Required<Pick<NativeRow, 'count'>>;

/** The caller's own body as a call would send it; undefined for one that the vendor may not or cannot be sent. */
function prepareQuestion(
  { seals }: CallDeps,
  call: Call,
  ingress: Ingress,
  row: CountingRow,
  { model, provider: instance }: Target,
  provider: Provider,
): Question | undefined {
  const { account } = call.principal;
  const request = { ...(call.request as ChatRequest), model };
  const open = (sealed: string): string | undefined => openFor(seals, account, provider, instance, sealed);
  try {
    assertNeeds(ingress, instance, row);
    const media = [...factsOf(request).media, ...ingress.media];
    assertPublicMedia(media);
    if (provider.remoteMedia === 'refuse' && media.length > 0) return undefined;
    const native = nativeRequest(ingress, row, {
      ...{ before: ingress.before, after: request, model, stream: false, open },
      without: call.route.without,
      scope: (text) => seals.scope(account, text),
    });
    if (!native) return undefined;
    const { count } = row;
    const body = count.body ? count.body(native.body as object, model) : native.body;
    return {
      request: { ...native, path: count.path, ...(body && { body }) },
      response: (told) => count.response(told),
    };
  } catch {
    // A call would be refused with the reason; a count has an answer all the same.
    return undefined;
  }
}

/** What the vendor says; undefined when it does not say it in time. */
async function sendQuestion(
  deps: CallDeps,
  call: Call,
  target: Target,
  provider: Provider,
  { request, response }: Question,
): Promise<number | undefined> {
  const startedMs = call.elapsedMs;
  const deadline = AbortSignal.timeout(PROVIDER_MS);
  call.record.attemptSignal = AbortSignal.any([call.signal, deadline]);
  const report = (failed?: FailedAttempt): void =>
    call.hooks.attempt?.(
      call,
      attemptReport(call, { target, number: 1, startedMs, failed, next: 'respond', then: undefined }),
    );
  try {
    const upstream = await sendAttempt(deps, call, target, provider, request);
    const tokens = response(await readJson(upstream, MAX_RESPONSE_BYTES));
    if (tokens === undefined || !Number.isSafeInteger(tokens) || tokens < 0)
      throw new GatewayError('provider_invalid_response', 'The provider returned no token count.');
    report();
    return tokens;
  } catch (thrown) {
    if (call.signal.aborted) throw thrown;
    const late = new StreamFailure({ class: 'timeout', message: `did not count within ${PROVIDER_MS} ms` });
    const failed = readFailedAttempt(deadline.aborted ? late : thrown, target, provider);
    deps.log.debug({ request_id: call.requestId, reason: failed.message }, 'a provider did not return a token count');
    report(failed);
    return undefined;
  }
}

const MINUTE_MS = 60_000;

/** How many counts of one key in a minute a vendor is asked for. */
const REQUESTS_PER_MINUTE = 60;

/** Beyond this many counts of one key in a minute the rest is estimated, without a look at anything else. */
const COUNTS_PER_MINUTE = 1200;

/** How many questions to vendors go on at the same time: they share connections with calls. */
const MAX_PARALLEL = 16;

const MAX_KEYS = 10_000;
const MAX_REMEMBERED = 10_000;

/** What keeps counting small beside calls: in this process alone, since it costs nothing. */
interface CountBounds {
  /** Whether one more count of a key may be more than an estimate. */
  admit(key: string): boolean;
  /** What this text was counted as a moment ago. */
  find(fingerprint: string): InputCount | undefined;
  remember(fingerprint: string, count: InputCount): void;
  /** Sends a question to a vendor, unless the key or all keys together sent too many: then undefined. */
  send<T>(key: string, question: () => Promise<T>): Promise<T | undefined>;
}

export function createCountBounds(now: () => number = () => performance.now()): CountBounds {
  const windows = new LRUCache<string, { readonly from: number; counts: number; requests: number }>(
    maxEntries(MAX_KEYS),
  );
  const known = new LRUCache<string, { readonly from: number; readonly count: InputCount }>(maxEntries(MAX_REMEMBERED));
  let running = 0;
  const windowOf = (key: string) => {
    const window = windows.get(key);
    if (window && now() - window.from < MINUTE_MS) return window;
    const fresh = { from: now(), counts: 0, requests: 0 };
    windows.set(key, fresh);
    return fresh;
  };
  return {
    admit(key) {
      const window = windowOf(key);
      window.counts += 1;
      return window.counts <= COUNTS_PER_MINUTE;
    },
    find(fingerprint) {
      const entry = known.get(fingerprint);
      return entry && now() - entry.from < MINUTE_MS ? entry.count : undefined;
    },
    remember: (fingerprint, count) => void known.set(fingerprint, { from: now(), count }),
    async send(key, question) {
      const window = windowOf(key);
      if (window.requests >= REQUESTS_PER_MINUTE || running >= MAX_PARALLEL) return undefined;
      window.requests += 1;
      running += 1;
      try {
        return await question();
      } finally {
        running -= 1;
      }
    },
  };
}

/** A hash of all that a count depends on: nothing of the texts themselves is kept. */
export function fingerprintOf(...parts: readonly unknown[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${JSON.stringify(part)}\n`);
  return hash.digest('base64url');
}
