import type { Outcome, Target } from '../../contract/call.ts';
import type { ChatChoice, ChatRequest, ChatResponse } from '../../contract/chat.ts';
import { GatewayError } from '../../contract/errors.ts';
import { isEventStream } from '../../contract/event-reader.ts';
import { factsOf } from '../../contract/facts.ts';
import type { Answered } from '../../contract/hooks.ts';
import { readObject } from '../../contract/json.ts';
import { pricedTier, requestedTier } from '../../contract/prices.ts';
import type { ChatCodec, CodecCall, HttpRequest, Provider } from '../../contract/provider.ts';
import { redact } from '../../contract/redaction.ts';
import { BYTES_PER_TOKEN } from '../../contract/units.ts';
import { codecCallOf, forgetRefused, readJson, readRejection, rememberRejected, sendAttempt } from './attempt.ts';
import { type Call, recordDropped } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { writtenBytes } from './chat-chunks.ts';
import { asRefusal } from './error-marks.ts';
import { tryTargets } from './failover.ts';
import { assertNeeds, brokenCondition } from './gates.ts';
import { joinStream } from './join-stream.ts';
import { addUsage, meterChat } from './meter.ts';
import { isUnforced, lacksCall, requestAgain, requiresCall } from './required-call.ts';
import type { RouteTarget } from './routes.ts';
import { runCall } from './run-call.ts';
import { openFor, openReasoning } from './seals.ts';

/**
 * Completes a chat without a stream. The call is finished when this resolves, unless it came over HTTP: its route
 * finishes it, because the outcome lists what the caller's format cannot express.
 */
export function completeChat(deps: CallDeps, call: Call): Promise<ChatResponse> {
  return runCall(deps, call, respondWhole);
}

async function respondWhole(deps: CallDeps, call: Call, early: Answered | undefined): Promise<ChatResponse> {
  const response = early ? takeHookResponse(call, early) : await tryTargets(deps, call, callTarget);
  const receiving = call.hooks.receive?.(call, response) ?? response;
  const received = (receiving instanceof Promise ? await receiving : receiving) as ChatResponse;
  const { record } = call;
  if (received !== response) {
    record.native = undefined;
    if (record.lane === 'native') record.lane = 'mixed';
  }
  if (!call.client) call.finish('ok');
  // The response shows the charged usage, even if a hook removed it.
  return !received.usage && record.usage ? { ...received, usage: record.usage } : received;
}

function callTarget(deps: CallDeps, call: Call, target: Target): Promise<ChatResponse> {
  return requiresCall(call) ? sendForced(deps, call, target) : sendWhole(deps, call, target);
}

/** Sends a request that requires a tool call, and once more if the target cannot be forced and responds without one. */
async function sendForced(deps: CallDeps, call: Call, target: Target): Promise<ChatResponse> {
  const response = await sendWhole(deps, call, target);
  if (!isUnforced(call) || !lacksCall(call, response)) return response;
  const { record } = call;
  const before = record.usage;
  const second = await requestAgain(deps, call, target, response, sendWhole, (each) => !lacksCall(call, each));
  const usage = addUsage(before, record.usage);
  // The vendor's own body has the usage of one request only.
  Object.assign(record, { usage, native: undefined, lane: record.lane === 'native' ? 'mixed' : record.lane });
  return usage ? { ...second, usage } : second;
}

async function sendWhole(deps: CallDeps, call: Call, target: Target): Promise<ChatResponse> {
  const { record } = call;
  const planned = planChat(deps, call, target);
  const { provider, request, codec, codecCall, passesOn, passesSame } = 'then' in planned ? await planned : planned;
  const upstreamResponse = await sendAttempt(deps, call, target, provider, request);
  const startedMs = performance.now();
  /** Undefined for a stream. */
  let body: unknown;
  let decoded: ChatResponse;
  try {
    const endpoint = record.key?.endpoint ?? provider;
    if (isEventStream(upstreamResponse.headers))
      decoded = await joinStream(upstreamResponse, codec, codecCall, endpoint);
    else {
      body = await readJson(upstreamResponse, undefined, endpoint);
      decoded = codec.response(body, codecCall);
    }
    record.upstreamMs += performance.now() - startedMs;
    if (decoded.dropped) decoded = takeDropped(call, decoded, decoded.dropped);
  } catch (error) {
    forgetRefused(call, error);
    readRejection(deps, call, target, { request, error });
    throw error;
  }
  rememberRejected(deps, call);
  recordUnmappedFinish(deps, call, decoded.choices);
  // Metered before the hooks, which do not change the cost of a call.
  meterChat(call, target, decoded, () => writtenTokens(decoded));
  const response = record.metered?.estimated && record.usage ? { ...decoded, usage: record.usage } : decoded;
  if (body === undefined && passesOn) record.lane = 'mixed';
  const isSame =
    passesSame && body !== undefined && response === decoded && codec.isOriginal?.(body, response) === true;
  record.providerHeaders = upstreamResponse.headers;
  record.native = passesOn || isSame ? body : undefined;
  return response;
}

/** Records the fields that a vendor ignored, and returns its response without their list. */
export function takeDropped(
  call: Call,
  { dropped: _, ...response }: ChatResponse,
  dropped: readonly string[],
): ChatResponse {
  recordDropped(call, dropped);
  return response as ChatResponse;
}

/** Takes the response of a hook. Nothing was sent, and the hook sets the cost. */
export function takeHookResponse(call: Call, { response, cost = 0, saved, headers }: Answered): ChatResponse {
  const { record } = call;
  const { usage } = response as ChatResponse;
  record.metered = { units: {}, cost };
  record.saved = saved;
  record.hookHeaders = headers;
  return (usage ? response : { ...response, usage: NO_USAGE }) as ChatResponse;
}

/** Maximum length of a vendor's finish reason that is recorded. */
const MAX_FINISH = 64;

/** Records the vendor's unknown finish reason of a response that counts as incomplete, once. */
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

export function writtenTokens({ choices }: ChatResponse): number {
  const bytes = choices.reduce((sum, { message }) => sum + writtenBytes(message), 0);
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Chat request to one target. */
export interface ChatPlan {
  readonly provider: Provider;
  readonly request: HttpRequest;
  /** Decodes the vendor's response. */
  readonly codec: Pick<ChatCodec, 'response' | 'stream' | 'reader' | 'isOriginal'>;
  readonly codecCall: CodecCall;
  readonly lane: Outcome['lane'];
  /** True if the caller gets the vendor's response in the vendor's own format. */
  readonly passesOn: boolean;
  /** True if the caller's format is the canonical one, and equivalent responses of the vendor are forwarded. */
  readonly passesSame: boolean;
}

/**
 * Writes a chat request for one target, with the target's model name and without a service tier of unknown price. Returns a promise
 * only if the codec does.
 */
export function planChat(deps: CallDeps, call: Call, target: Target): ChatPlan | Promise<ChatPlan> {
  const place = call.at(target);
  const provider: Provider | undefined = place.offer;
  if (!provider) throw new GatewayError('unsupported_provider', `The provider "${target.provider}" does not exist.`);
  if (!provider.chat)
    throw new GatewayError('unsupported_model', `The provider "${target.provider}" has no chat models.`, {
      param: 'model',
    });
  const original = call.request as ChatRequest;
  let input = original.model === target.model ? original : { ...original, model: target.model };
  let tier = requestedTier(input);
  const isUnpriced = tier !== undefined && pricedTier(input, place.priceAt()) === undefined;
  if (isUnpriced) {
    const { service_tier: _tier, ...rest } = input;
    input = rest;
    tier = undefined;
  }
  const { model, stream, created, id } = codecCallOf(call, target);
  const codecCall = { model, stream, created, id, principal: call.principal, request: input };
  const plan = writeChat(deps, call, place, provider, provider.chat, codecCall);
  return 'then' in plan
    ? plan.then((written) => recordPlan(call, target, written, tier, isUnpriced))
    : recordPlan(call, target, plan, tier, isUnpriced);
}

/** Records what a request does not contain. Throws if the caller's conditions need it. */
function recordPlan(
  call: Call,
  target: Target,
  plan: ChatPlan,
  tier: string | undefined,
  isUnpriced: boolean,
): ChatPlan {
  const { dropped: written = NO_FIELDS } = plan.request;
  const dropped = isUnpriced ? ['service_tier', ...written] : written;
  const said = [call.request as ChatRequest, readObject(call.client?.body)];
  const broken = dropped.length > 0 && brokenCondition(dropped, said, target.provider);
  if (broken) throw asRefusal(broken);
  call.record.serviceTier = dropped.includes('service_tier') ? undefined : tier;
  call.record.lane = plan.lane;
  call.record.dropped = dropped.length > 0 ? dropped : undefined;
  return plan;
}

/** Writes the request in the caller's own format if the vendor supports it, otherwise with the codec. */
function writeChat(
  { seals }: CallDeps,
  { principal: { account }, client, stream, request: original, record }: Call,
  place: RouteTarget,
  provider: Provider,
  codec: ChatCodec,
  codecCall: CodecCall & { readonly request: ChatRequest },
): ChatPlan | Promise<ChatPlan> {
  const { model, request: input } = codecCall;
  const instance = place.target.provider;
  const continuation = record.isResumed ? provider.continues?.(model) : undefined;
  const open = (sealed: string): string | undefined => openFor(seals, account, provider, instance, sealed);
  try {
    const row = client && place.nativeRow(client.row, stream);
    const lacking = client && client.needs.length > 0 ? assertNeeds(client, instance, row) : [];
    const { media, reasoning } = factsOf(original as ChatRequest);
    if (provider.remoteMedia === 'refuse') assertNoMedia(instance, [...media, ...(client?.media ?? [])]);
    const isInOrder = codec.isInOrder?.(input, codecCall) ?? true;
    if (client?.isNative && row && !record.isResumed && !record.isTranslated && isInOrder) {
      const scope = (text: string) => seals.scope(account, text);
      const change = { before: client.request, after: input, model, stream, without: record.without, open, scope };
      const native = client.requestFor(row, change);
      if (native)
        return {
          provider,
          request: native,
          codec: row.codec ?? codec,
          codecCall,
          lane: 'native',
          passesOn: true,
          passesSame: false,
        };
    }
    const opened = reasoning.length > 0 ? openReasoning(input, open) : { request: input, isOmitted: false };
    const finish = (plain: HttpRequest): ChatPlan => {
      const written = continuation?.write?.(plain) ?? plain;
      const dropped = droppedOf(client?.dropped, lacking, written.dropped, opened.isOmitted);
      // The codec writes a dialect of canonical form. Its lane is native if the codec chose the same API.
      const isSameApi = row !== undefined && !client?.isNative && written.path === row.path;
      return {
        provider,
        request: dropped.length > 0 ? { ...written, dropped } : written,
        codec,
        codecCall,
        lane: client && (isSameApi ? 'native' : 'translated'),
        passesOn: false,
        passesSame: client !== undefined && isSameApi,
      };
    };
    const plain = codec.request(opened.request, codecCall);
    return 'then' in plain ? plain.then(finish).catch(refuse) : finish(plain);
  } catch (thrown) {
    return refuse(thrown);
  }
}

function refuse(thrown: unknown): never {
  throw asRefusal(thrown);
}

/**
 * Fields of a request that its target does not get, without duplicates. Almost all requests have none, so no Set is
 * created.
 */
function droppedOf(
  byDialect: readonly string[] = NO_FIELDS,
  lacking: readonly string[],
  byCodec: readonly string[] = NO_FIELDS,
  isReasoningOmitted: boolean,
): readonly string[] {
  if (byDialect.length + lacking.length + byCodec.length === 0 && !isReasoningOmitted) return NO_FIELDS;
  const dropped = new Set([...byDialect, ...lacking, ...byCodec]);
  if (isReasoningOmitted) dropped.add('reasoning');
  return [...dropped];
}

const NO_FIELDS: readonly string[] = Object.freeze([]);

/** Rejects media URLs, which a server on the operator's own network would fetch from there. */
function assertNoMedia(instance: string, [first]: readonly { readonly param: string }[]): void {
  if (!first) return;
  throw new GatewayError(
    'invalid_request',
    `\`${first.param}\` must be a data URL; the provider "${instance}" does not accept other URLs of images and files.`,
    { param: first.param },
  );
}
