import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { InputCount, Target } from '../../contract/call.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { GatewayError } from '../../contract/errors.ts';
import { factsOf } from '../../contract/facts.ts';
import type { ChatDraft } from '../../contract/operation.ts';
import { type HttpRequest, type NativeRow, type Provider, StreamFailure } from '../../contract/provider.ts';
import { maxEntries } from '../../contract/units.ts';
import { withoutAdded } from './added-fields.ts';
import { attemptReport, type FailedAttempt, readFailedAttempt, readJson, sendAttempt } from './attempt.ts';
import type { Call } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { planChat } from './chat.ts';
import { assertEffects, assertNeeds, assertPublicMedia, effectsOf } from './gates.ts';
import type { InboundChat } from './inbound-chat.ts';
import { estimateChat } from './meter.ts';
import { runCall } from './run-call.ts';
import { openFor } from './seals.ts';

/** Counts the input tokens of a chat request. */
export type Counter = (call: Call) => Promise<InputCount>;

/** Maximum time for a vendor's count, in milliseconds. Callers count before each turn. */
const PROVIDER_MS = 2000;

const MAX_RESPONSE_BYTES = 64 * 1024;

/**
 * Creates the operation `count`. The first target's vendor counts if it supports the caller's format; otherwise the
 * tokens are estimated here. Counting is free. If the vendor fails, the count is an estimate.
 */
export function createCounter(deps: CallDeps, bounds: CountBounds = createCountBounds()): Counter {
  return (call) =>
    runCall(deps, call, async (_deps, _call, early) => {
      // Also free if the caller disconnects before the end.
      call.record.metered = FREE;
      call.record.hookHeaders = early?.headers;
      const given = early ? (early.response as InputCount) : await countInput(deps, bounds, call);
      const count = call.hooks.receive ? ((await call.hooks.receive(call, given)) as InputCount) : given;
      call.finish('ok');
      return count;
    });
}

/**
 * Prepares a chat request without sending it, with the admission and checks of a call. Hooks for requests see it as
 * they see a count.
 */
export function draftChat(deps: CallDeps, call: Call, takes: (provider: string) => boolean): Promise<ChatDraft> {
  return runCall(deps, call, async (_deps, _call, early) => {
    if (early)
      throw new GatewayError(
        'invalid_request',
        'A plugin of this gateway answers this request, so it cannot be part of a batch. Send it alone.',
      );
    call.record.metered = FREE;
    const { catalog } = call.parts;
    const target = call.targets.find(({ provider }) => takes(provider));
    if (!target) throw beyondBatches(call.targets);
    if (call.client?.ownSubscription)
      throw new GatewayError(
        'permission_denied',
        'Batches cannot use your own subscription. Send the gateway’s key alone.',
      );
    assertPublicMedia([...factsOf(call.request as ChatRequest).media, ...(call.client?.media ?? [])]);
    const { provider, request } = await planChat(deps, call, target);
    const needs = effectsOf(provider.effects, target, request);
    await assertEffects(deps, call, needs, [target]);
    const model = catalog.find(target.provider, target.model);
    const tools = [...(call.client?.needs ?? []), ...needs].filter(({ kind }) => kind === 'server tool');
    call.finish('ok');
    return {
      target,
      requested: (call.client?.request ?? (call.request as ChatRequest)).model,
      request: withoutAdded(request, deps.rejected.of(target)),
      most: (price) => estimateChat(call.request as ChatRequest, model, price, undefined, tools),
    };
  });
}

function beyondBatches([first]: readonly Target[]): GatewayError {
  return new GatewayError(
    'unsupported_model',
    `The provider "${first?.provider}" does not support batches in this format. Use a model of another provider, or send the requests one by one.`,
    { param: 'model' },
  );
}

const FREE = Object.freeze({ units: Object.freeze({}), cost: 0 });

async function countInput(deps: CallDeps, bounds: CountBounds, call: Call): Promise<InputCount> {
  const [target] = call.targets;
  const provider = target && call.parts.offers.get(target.provider);
  if (!provider)
    throw new GatewayError('unsupported_model', 'No target is available for this model. Use another model.', {
      param: 'model',
    });
  call.record.target = target;
  const request = call.request as ChatRequest;
  const estimate = (): InputCount => ({
    inputTokens: Math.ceil(factsOf(request).inputTokens * ((provider as Provider).countFactor ?? 1)),
    estimated: true,
  });
  const { keyId, userId, limitsId = keyId } = call.principal;
  const key = limitsId ?? `user ${userId}`;
  const row = call.client && (provider as Provider).native?.(target.model, false)[call.client.row];
  if (!call.client || !row?.count || call.record.isTranslated || !bounds.admit(key)) return estimate();
  const { dialect, headers, body, request: before } = call.client;
  // Changes by hooks count too. Most requests have none.
  const changed = request === before ? null : request;
  const fingerprint = fingerprintOf(key, dialect, target, headers, changed, body);
  const known = bounds.find(fingerprint);
  if (known) return known;
  const question = prepareQuestion(deps, call, call.client, { ...row, count: row.count }, target, provider);
  const reported = question && (await bounds.send(key, () => sendQuestion(deps, call, target, provider, question)));
  const count = reported === undefined ? estimate() : { inputTokens: reported, estimated: false };
  bounds.remember(fingerprint, count);
  return count;
}

/** Request to a vendor for a count, and the reader of its response. */
interface Question {
  readonly request: HttpRequest;
  response(body: unknown): number | undefined;
}

type CountingRow = NativeRow & Required<Pick<NativeRow, 'count'>>;

/** Writes the caller's own body as a call would send it; undefined if the vendor may not or cannot get it. */
function prepareQuestion(
  { seals }: CallDeps,
  call: Call,
  client: InboundChat,
  row: CountingRow,
  { model, provider: instance }: Target,
  provider: Provider,
): Question | undefined {
  const { account } = call.principal;
  const request = { ...(call.request as ChatRequest), model };
  const open = (sealed: string): string | undefined => openFor(seals, account, provider, instance, sealed);
  try {
    assertNeeds(client, instance, row);
    const media = [...factsOf(request).media, ...client.media];
    assertPublicMedia(media);
    if (provider.remoteMedia === 'refuse' && media.length > 0) return undefined;
    const native = client.requestFor(row, {
      ...{ before: client.request, after: request, model, stream: false, open },
      without: call.record.without,
      scope: (text) => seals.scope(account, text),
    });
    if (!native) return undefined;
    const { count } = row;
    const body = count.body ? count.body(native.body as object, model) : native.body;
    return {
      request: { ...native, path: count.path, ...(body && { body }) },
      response: (reported) => count.response(reported),
    };
  } catch {
    // A call would be rejected with the reason. A count is estimated instead.
    return undefined;
  }
}

/** Returns the vendor's count; undefined if the vendor fails or times out. */
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
    call.hooks.attempt?.(call, attemptReport(call, { call, target, startedMs, isSecond: false }, 'respond', failed));
  try {
    const upstream = await sendAttempt(deps, call, target, provider, request);
    const tokens = response(await readJson(upstream, MAX_RESPONSE_BYTES));
    if (tokens === undefined || !Number.isSafeInteger(tokens) || tokens < 0)
      throw new GatewayError('provider_invalid_response', 'The provider returned no token count. Use another model.');
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

/** Maximum number of counts that vendors are sent for one key in a minute. */
const REQUESTS_PER_MINUTE = 60;

/** Maximum number of counts of one key in a minute. Further counts are estimated without any lookup. */
const COUNTS_PER_MINUTE = 1200;

/** Maximum number of concurrent count requests to vendors, which share connections with calls. */
const MAX_PARALLEL = 16;

const MAX_KEYS = 10_000;
const MAX_REMEMBERED = 10_000;

/** Limits on counting, which is free. They apply to this process alone. */
interface CountBounds {
  /** Records a count of a key. Returns false if it must be estimated. */
  admit(key: string): boolean;
  /** Returns the count of the same request within the last minute. */
  find(fingerprint: string): InputCount | undefined;
  remember(fingerprint: string, count: InputCount): void;
  /** Sends a count request to a vendor. Returns undefined if the key, or all keys together, sent too many. */
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

/** Hash of everything that a count depends on. The texts themselves are not stored. */
export function fingerprintOf(...parts: readonly unknown[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${JSON.stringify(part)}\n`);
  return hash.digest('base64url');
}
