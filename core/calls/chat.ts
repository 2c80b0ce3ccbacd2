import { CHAT, type Target } from '../../contract/call.ts';
import type { ChatChoice, ChatRequest, ChatResponse } from '../../contract/chat.ts';
import { GatewayError } from '../../contract/errors.ts';
import { factsOf } from '../../contract/facts.ts';
import type { Answered } from '../../contract/hooks.ts';
import { readObject } from '../../contract/json.ts';
import { pricedTier, requestedTier } from '../../contract/prices.ts';
import type { ChatCodec, CodecCall, HttpRequest, Provider } from '../../contract/provider.ts';
import { redact } from '../../contract/redaction.ts';
import { BYTES_PER_TOKEN } from '../../contract/units.ts';
import { codecCallOf, forgetRefused, type ResponseNotes, readJson, responseNotes, sendAttempt } from './attempt.ts';
import type { Call, CallInput } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { writtenBytes } from './chat-chunks.ts';
import { asRefusal } from './error-marks.ts';
import { tryTargets } from './failover.ts';
import { assertNeeds, brokenCondition, type Lane, nativeRequest } from './ingress.ts';
import { meterChat } from './meter.ts';
import { type Handlers, runCall } from './run-call.ts';
import { openFor, openReasoning } from './seals.ts';

export interface ChatResult extends ResponseNotes {
  readonly response: ChatResponse;
  /** The vendor's own response, parsed, where the caller gets that. */
  readonly native: unknown;
}

/**
 * A non-streaming chat completion. The call is finished when this resolves; but whoever writes the response in a client's format
 * finishes one with an `ingress`, since what that cannot say belongs to the record.
 */
export function completeChat(deps: CallDeps, input: CallInput<'chat'>): Promise<ChatResult> {
  return runCall(deps, input, NON_STREAMING);
}

const NON_STREAMING: Handlers<ChatResult, ChatResult> = {
  respondEarly: responseOfHook,
  callTargets: (deps, call) => tryTargets(deps, call, callTarget),
  respond(_deps, call, result) {
    const received = call.hooks.receive?.(call, result.response) ?? result.response;
    return received instanceof Promise
      ? received.then((response) => end(call, result, response as ChatResponse))
      : end(call, result, received as ChatResponse);
  },
};

/** Ends the call with the response as the `receive` hooks left it. */
function end(call: Call, { response: before, headers, native }: ChatResult, received: ChatResponse): ChatResult {
  const { record } = call;
  const isChanged = received !== before;
  if (isChanged && record.lane === 'native') record.lane = 'mixed';
  // The usage that is charged is the one that is shown, also where the vendor reported none or a hook left it out.
  const response = !received.usage && record.usage ? { ...received, usage: record.usage } : received;
  if (!call.client) call.finish('ok');
  return { call, headers, response, native: isChanged ? undefined : native };
}

async function callTarget(deps: CallDeps, call: Call, target: Target): Promise<ChatResult> {
  const { record } = call;
  const { provider, request, codec, codecCall, passesOn, dropped } = planChat(deps, call, target);
  const upstreamResponse = await sendAttempt(deps, call, target, provider, request);
  const startedMs = performance.now();
  let body: unknown;
  let decoded: ChatResponse;
  try {
    body = await readJson(upstreamResponse);
    record.upstreamMs += performance.now() - startedMs;
    decoded = codec.response(body, codecCall);
  } catch (error) {
    forgetRefused(call, error);
    throw error;
  }
  recordUnmappedFinish(deps, call, decoded.choices);
  // Metered as the vendor responded: no hook changes what a call cost.
  meterChat(deps, call, target, decoded, () => writtenTokens(decoded));
  const response = record.metered?.estimated && record.usage ? { ...decoded, usage: record.usage } : decoded;
  const { headers } = responseNotes(call, target, { dropped, endpoint: provider, upstream: upstreamResponse.headers });
  return { call, headers, response, native: passesOn ? body : undefined };
}

/** A response that a hook gave at once: nothing was sent, and it costs what the hook says. */
export function responseOfHook(call: Call, { response, cost = 0, saved, headers = {} }: Answered): ChatResult {
  const { usage } = response as ChatResponse;
  call.record.metered = { units: {}, cost };
  call.record.saved = saved;
  const [first] = call.targets;
  return {
    ...responseNotes(call, first, { headers }),
    response: (usage ? response : { ...response, usage: NO_USAGE }) as ChatResponse,
    native: undefined,
  };
}

/** The longest stop reason of a vendor that is recorded. */
const MAX_FINISH = 64;

/** Records the vendor's word for the end of an answer that was kept as incomplete, once. */
export function recordUnmappedFinish(
  { log }: CallDeps,
  { record, requestId }: Call,
  choices: readonly Pick<ChatChoice, 'finish'>[],
): void {
  const ended = choices.find(({ finish }) => finish?.unmapped === true);
  if (!ended || record.unmappedFinish !== undefined) return;
  record.unmappedFinish = redact((ended.finish?.native ?? '').slice(0, MAX_FINISH));
  const { target, unmappedFinish: finish } = record;
  log.warn(
    { request_id: requestId, provider: target?.provider, finish },
    'unknown finish reason of a provider; the response counts as incomplete',
  );
}

const NO_USAGE = Object.freeze({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });

function writtenTokens({ choices }: ChatResponse): number {
  const bytes = choices.reduce((sum, { message }) => sum + writtenBytes(message), 0);
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** A chat as one target gets it. */
export interface ChatPlan {
  readonly provider: Provider;
  readonly request: HttpRequest;
  /** Reads what the vendor sends. */
  readonly codec: Pick<ChatCodec, 'response' | 'stream' | 'reader'>;
  readonly codecCall: CodecCall;
  /** Whether the caller gets what the vendor sends in its own format. */
  readonly passesOn: boolean;
  /** Fields of the request that the target does not get. */
  readonly dropped: readonly string[];
}

/** Writes a chat request for one target: with the target's own name of the model, and no service tier at an unknown price. */
export function planChat(deps: CallDeps, call: Call, target: Target): ChatPlan {
  const { offers, catalog } = deps.partsOf(CHAT);
  const provider: Provider | undefined = offers.get(target.provider);
  if (!provider) throw new GatewayError('unsupported_provider', `The provider "${target.provider}" does not exist.`);
  if (!provider.chat)
    throw new GatewayError('unsupported_model', `The provider "${target.provider}" has no chat models.`, {
      param: 'model',
    });
  const original = call.request as ChatRequest;
  let input = original.model === target.model ? original : { ...original, model: target.model };
  let tier = requestedTier(input);
  const isUnpriced =
    tier !== undefined &&
    pricedTier(input, catalog.priceOf(target, catalog.find(target.provider, target.model))) === undefined;
  if (isUnpriced) {
    const { service_tier: _tier, ...rest } = input;
    input = rest;
    tier = undefined;
  }
  const { model, stream, created, id } = codecCallOf(call, target);
  const codecCall = { model, stream, created, id, request: input };
  const { lane, ...written } = writeChat(deps, call, provider, provider.chat, codecCall, target.provider);
  const dropped = [...(isUnpriced ? ['service_tier'] : []), ...(written.request.dropped ?? [])];
  const broken =
    dropped.length > 0 && brokenCondition(dropped, [original, readObject(call.client?.body)], target.provider);
  if (broken) throw asRefusal(broken);
  call.record.serviceTier = dropped.includes('service_tier') ? undefined : tier;
  call.record.lane = lane;
  call.record.dropped = dropped.length > 0 ? dropped : undefined;
  return { ...written, provider, codecCall, dropped };
}

/** The request in the caller's own format where the vendor speaks it, else by the codec. */
function writeChat(
  { seals }: CallDeps,
  { principal: { account }, client, stream, request: original, route }: Call,
  provider: Provider,
  codec: ChatCodec,
  codecCall: CodecCall & { readonly request: ChatRequest },
  instance: string,
): Pick<ChatPlan, 'request' | 'codec' | 'passesOn'> & { readonly lane: Lane | undefined } {
  const { model, request: input } = codecCall;
  const continuation = route.isResumed ? provider.continues?.(model) : undefined;
  const open = (sealed: string): string | undefined => openFor(seals, account, provider, instance, sealed);
  try {
    const row = client && provider.native?.(model, stream)[client.row];
    const lacking = client && client.needs.length > 0 ? assertNeeds(client, instance, row) : [];
    const { media, reasoning } = factsOf(original as ChatRequest);
    if (provider.remoteMedia === 'refuse') assertNoMedia(instance, [...media, ...(client?.media ?? [])]);
    const isInOrder = codec.isInOrder?.(input, codecCall) ?? true;
    if (client?.patch && row && !route.isResumed && !route.isTranslated && isInOrder) {
      const scope = (text: string) => seals.scope(account, text);
      const change = { before: client.before, after: input, model, stream, without: route.without, open, scope };
      const native = nativeRequest(client, row, change);
      if (native) return { request: native, codec: row.codec ?? codec, lane: 'native', passesOn: true };
    }
    const opened = reasoning.length > 0 ? openReasoning(input, open) : { request: input, leftOut: false };
    const plain = codec.request(opened.request, codecCall);
    const written = continuation?.write?.(plain) ?? plain;
    const dropped = droppedOf(client?.dropped, lacking, written.dropped, opened.leftOut);
    // A dialect whose shape is the canonical one is written by the codec: where that chose the same API, this is its native lane.
    const isSameApi = row !== undefined && !client?.patch && written.path === row.path;
    return {
      request: dropped.length > 0 ? { ...written, dropped } : written,
      codec,
      lane: client && (isSameApi ? 'native' : 'translated'),
      passesOn: false,
    };
  } catch (thrown) {
    throw asRefusal(thrown);
  }
}

/** Fields of a request that its target does not get, each once; no Set for a request without any, as almost all are. */
function droppedOf(
  byDialect: readonly string[] = NO_FIELDS,
  lacking: readonly string[],
  byCodec: readonly string[] = NO_FIELDS,
  isReasoningLeftOut: boolean,
): readonly string[] {
  if (byDialect.length + lacking.length + byCodec.length === 0 && !isReasoningLeftOut) return NO_FIELDS;
  const dropped = new Set([...byDialect, ...lacking, ...byCodec]);
  if (isReasoningLeftOut) dropped.add('reasoning');
  return [...dropped];
}

const NO_FIELDS: readonly string[] = Object.freeze([]);

/** A server on the operator's own network is not sent addresses that it would fetch from there. */
function assertNoMedia(instance: string, [first]: readonly { readonly param: string }[]): void {
  if (!first) return;
  throw new GatewayError(
    'invalid_request',
    `\`${first.param}\` must be a data URL; the provider "${instance}" does not accept other URLs of images and files.`,
    { param: first.param },
  );
}
