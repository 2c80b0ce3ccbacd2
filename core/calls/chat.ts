import type { Target } from '../contract/call.ts';
import type { ChatRequest, ChatResponse } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Answered } from '../contract/hooks.ts';
import type { ChatCodec, CodecCall, HttpRequest, Provider } from '../contract/provider.ts';
import type { UpstreamResponse } from '../upstream/upstream.ts';
import { codecCallOf, forgetRefused, type ResponseNotes, readJson, responseNotes, sendAttempt } from './attempt.ts';
import type { Call, CallInput } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { writtenBytes } from './chat-chunks.ts';
import { BYTES_PER_TOKEN } from './content.ts';
import { asRefusal } from './error-marks.ts';
import { factsOf, type MediaAddress } from './facts.ts';
import { assertNeeds, type Lane, nativeRequest } from './ingress.ts';
import { meterChat, pricedTier, requestedTier } from './meter.ts';
import { runCall } from './run-call.ts';
import { deploymentOf, openReasoning } from './seals.ts';
import { tryTargets } from './try-targets.ts';

export interface ChatResult extends ResponseNotes {
  readonly response: ChatResponse;
  /** The vendor's own response, parsed, where the caller gets that. */
  readonly native: unknown;
}

/** A chat completion as a whole. The call is finished when this resolves. */
export function completeChat(deps: CallDeps, input: CallInput<'chat'>): Promise<ChatResult> {
  return runCall(deps, input, {
    answered: (call, answered) => respond(call, noteAnswered(call, answered)),
    callTargets: (call) =>
      tryTargets(deps, call, (target, own) => callTarget(deps, own, target)).then((result) => respond(call, result)),
  });
}

/** Lets hooks see a response on its way out, and ends the call. */
function respond(call: Call, result: ChatResult): ChatResult | Promise<ChatResult> {
  const received = call.hooks.receive?.(call, result.response) ?? result.response;
  return received instanceof Promise
    ? received.then((response) => end(call, result, response as ChatResponse))
    : end(call, result, received as ChatResponse);
}

function end(call: Call, result: ChatResult, received: ChatResponse): ChatResult {
  let response = received;
  let { native } = result;
  if (response !== result.response) native = undefined;
  if (call.record.lane === 'native' && response !== result.response) call.record.lane = 'mixed';
  // What was charged is what is told, also where the vendor told no count of its own or a hook left it out.
  if (!response.usage && call.record.usage) response = { ...response, usage: call.record.usage };
  void call.finish('ok');
  return { call, headers: result.headers, response, native };
}

async function callTarget(deps: CallDeps, call: Call, target: Target): Promise<ChatResult> {
  const { upstreamResponse, codec, codecCall, passesOn, headers } = await openChat(deps, call, target);
  const startedMs = performance.now();
  let body: unknown;
  let decoded: ChatResponse;
  try {
    body = await readJson(upstreamResponse);
    call.record.upstreamMs += performance.now() - startedMs;
    decoded = codec.response(body, codecCall);
  } catch (error) {
    forgetRefused(call, error);
    throw error;
  }
  // Metered as the vendor responded: no hook changes what a call cost.
  meterChat(deps, call, target, decoded.usage, () => writtenTokens(decoded));
  const { usage, metered } = call.record;
  const response = metered?.estimated && usage ? { ...decoded, usage } : decoded;
  return { call, headers, response, native: passesOn ? body : undefined };
}

/** A response that a hook gave at once: nothing was sent, and it costs what the hook says. */
export function noteAnswered(call: Call, { response, cost = 0, saved, headers = {} }: Answered): ChatResult {
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

const NO_USAGE = Object.freeze({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });

function writtenTokens({ choices }: ChatResponse): number {
  const bytes = choices.reduce((sum, { message }) => sum + writtenBytes(message), 0);
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** A target that has begun to respond. */
export interface OpenedChat extends ResponseNotes {
  readonly upstreamResponse: UpstreamResponse;
  /** Reads what the vendor sends. */
  readonly codec: Pick<ChatCodec, 'response' | 'stream'>;
  readonly codecCall: CodecCall;
  /** Whether the caller gets what the vendor sends in its own format. */
  readonly passesOn: boolean;
}

/** The request as one target gets it: with the target's own name of the model, and no service tier at an unknown price. */
function requestFor(
  deps: CallDeps,
  request: ChatRequest,
  target: Target,
): { readonly input: ChatRequest; readonly told: readonly string[] } {
  const { catalog } = deps.partsOf('chat');
  const input = request.model === target.model ? request : { ...request, model: target.model };
  if (requestedTier(input) === undefined) return { input, told: [] };
  const price = catalog.priceOf(target, catalog.find(target.provider, target.model));
  if (pricedTier(input, price) !== undefined) return { input, told: [] };
  const { service_tier: _tier, ...rest } = input;
  return { input: rest, told: ['service_tier'] };
}

/** Translates and sends a chat request to one target. */
export async function openChat(deps: CallDeps, call: Call, target: Target): Promise<OpenedChat> {
  const provider: Provider | undefined = deps.partsOf('chat').offers.get(target.provider);
  if (!provider) throw new GatewayError('unsupported_provider', `There is no provider "${target.provider}".`);
  if (!provider.chat)
    throw new GatewayError('unsupported_model', `The provider "${target.provider}" has no chat models.`, {
      param: 'model',
    });
  const { input, told } = requestFor(deps, call.request as ChatRequest, target);
  const { model, stream, created, id } = codecCallOf(call, target);
  const codecCall = { model, stream, created, id, request: input };
  const { request, codec, lane, passesOn } = planAttempt(
    deps,
    call,
    provider,
    provider.chat,
    codecCall,
    target.provider,
  );
  const dropped = request.dropped ? [...told, ...request.dropped] : told;
  call.record.serviceTier = dropped.includes('service_tier') ? undefined : requestedTier(input);
  call.record.lane = lane;
  const upstreamResponse = await sendAttempt(deps, call, target, provider, request);
  const { headers } = responseNotes(call, target, { dropped, endpoint: provider, upstream: upstreamResponse.headers });
  return { call, headers, upstreamResponse, codec, codecCall, passesOn };
}

interface AttemptPlan extends Pick<OpenedChat, 'codec' | 'passesOn'> {
  readonly request: HttpRequest;
  readonly lane: Lane | undefined;
}

/** Writes the request for one target: in the caller's own format where the vendor speaks it, else by the codec. */
function planAttempt(
  { seals }: CallDeps,
  { principal: { account }, ingress, stream }: Call,
  provider: Provider,
  codec: ChatCodec,
  codecCall: CodecCall & { readonly request: ChatRequest },
  instance: string,
): AttemptPlan {
  const { model, request: input } = codecCall;
  const deployment = deploymentOf(provider, instance);
  const open = (sealed: string): string | undefined => {
    const opened = seals.open(account, sealed);
    return opened?.deployment === deployment ? opened.data : undefined;
  };
  try {
    const row = ingress && provider.native?.(model, stream)[ingress.dialect];
    const lacking = ingress ? assertNeeds(ingress, instance, row) : [];
    assertMedia(provider, instance, [...factsOf(input).media, ...(ingress?.media ?? [])]);
    if (ingress?.patch && row) {
      const { before, without = [] } = ingress;
      const scope = (text: string) => seals.scope(account, text);
      const native = nativeRequest(ingress, row, { before, after: input, model, stream, without, open, scope });
      if (native) return { request: native, codec: row.codec ?? codec, lane: 'native', passesOn: true };
    }
    const opened = openReasoning(input, open);
    const written = codec.request(opened.request, codecCall);
    const before = [...(ingress?.dropped ?? []), ...lacking];
    const after = opened.leftOut ? ['reasoning'] : [];
    const request =
      before.length + after.length > 0
        ? { ...written, dropped: [...new Set([...before, ...(written.dropped ?? []), ...after])] }
        : written;
    // A dialect whose shape is the canonical one is written by the codec: where that chose the same API, this is its native lane.
    const isSameApi = row !== undefined && !ingress?.patch && written.path === row.path;
    const lane = ingress && (isSameApi ? 'native' : 'translated');
    return { request, codec, lane, passesOn: false };
  } catch (thrown) {
    throw asRefusal(thrown);
  }
}

/** A server on the operator's own network is not sent addresses that it would fetch from there. */
function assertMedia({ remoteMedia: rule }: Provider, instance: string, [first]: readonly MediaAddress[]): void {
  if (rule !== 'refuse' || !first) return;
  throw new GatewayError(
    'invalid_request',
    `\`${first.param}\` is an address, and the provider "${instance}" takes images and files as data URLs only.`,
    { param: first.param },
  );
}
