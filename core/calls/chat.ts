import type { Target } from '../contract/call.ts';
import type { ChatRequest, ChatResponse } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Answered } from '../contract/hooks.ts';
import type { ChatCodec, CodecCall, Provider } from '../contract/provider.ts';
import type { UpstreamResponse } from '../upstream/upstream.ts';
import { codecCallOf, decodeResponse, MAX_RESPONSE_BYTES, parseResponse, sendAttempt } from './attempt.ts';
import type { CallDeps } from './call-deps.ts';
import { writtenBytes } from './chat-chunks.ts';
import type { CallInit, CallRequest, LiveCall } from './live-call.ts';
import { meterChat } from './meter.ts';
import { pricedTier, requestedTier } from './pricing.ts';
import { type ResponseNotes, responseNotes } from './response-notes.ts';
import { runCall, tryTargets } from './run-call.ts';
import { BYTES_PER_TOKEN } from './tokens.ts';

export interface ChatResult extends ResponseNotes {
  readonly response: ChatResponse;
}

/** A chat completion as a whole. The call is finished when this resolves. */
export function completeChat(deps: CallDeps, callRequest: CallRequest<'chat'>, init: CallInit): Promise<ChatResult> {
  return runCall(deps, callRequest, init, {
    answered: (call, answered) => respond(call, noteAnswered(call, answered)),
    callTargets: async (call) =>
      respond(call, await tryTargets(deps, call, (target) => callTarget(deps, call, target))),
  });
}

/** Lets hooks see a response on its way out, and ends the call. */
async function respond(call: LiveCall, result: ChatResult): Promise<ChatResult> {
  let { response } = result;
  if (call.hooks.receive) response = (await call.hooks.receive(call, response)) as ChatResponse;
  // What was charged is what is told, also where the vendor told no count of its own or a hook left it out.
  if (!response.usage && call.record.usage) response = { ...response, usage: call.record.usage };
  void call.finish('ok');
  return { ...result, response };
}

async function callTarget(deps: CallDeps, call: LiveCall, target: Target): Promise<ChatResult> {
  const { upstreamResponse, codec, codecCall, ...notes } = await openChat(deps, call, target);
  const startedMs = performance.now();
  const bytes = await upstreamResponse.readAll(MAX_RESPONSE_BYTES);
  call.record.upstreamMs += performance.now() - startedMs;
  const decoded = decodeResponse(call, () => codec.response(parseResponse(bytes), codecCall));
  // Metered as the vendor responded: no hook changes what a call cost.
  meterChat(deps, call, target, decoded.usage, () => writtenTokens(decoded));
  const { usage, metered } = call.record;
  const response = metered?.estimated && usage ? { ...decoded, usage } : decoded;
  return { ...notes, response };
}

/** A response that a hook gave at once: nothing was sent, and it costs what the hook says. */
export function noteAnswered(call: LiveCall, { response, cost = 0, headers = {} }: Answered): ChatResult {
  const { usage } = response as ChatResponse;
  call.record.metered = { units: {}, cost };
  const [first] = call.targets;
  return {
    ...responseNotes(call, first, { headers }),
    response: (usage ? response : { ...response, usage: NO_USAGE }) as ChatResponse,
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
  readonly codec: ChatCodec;
  readonly codecCall: CodecCall;
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
export async function openChat(deps: CallDeps, call: LiveCall, target: Target): Promise<OpenedChat> {
  const provider: Provider | undefined = deps.partsOf('chat').offers.get(target.provider);
  if (!provider) throw new GatewayError('unsupported_provider', `There is no provider "${target.provider}".`);
  if (!provider.chat)
    throw new GatewayError('unsupported_model', `The provider "${target.provider}" has no chat models.`, {
      param: 'model',
    });
  const { input, told } = requestFor(deps, call.request as ChatRequest, target);
  const codecCall: CodecCall = { ...codecCallOf(call, target), request: input };
  const request = provider.chat.request(input, codecCall);
  const dropped = [...told, ...(request.dropped ?? [])];
  call.record.serviceTier = dropped.includes('service_tier') ? undefined : requestedTier(input);
  const upstreamResponse = await sendAttempt(deps, call, target, provider, request);
  return {
    ...responseNotes(call, target, { dropped, endpoint: provider, upstream: upstreamResponse.headers }),
    upstreamResponse,
    codec: provider.chat,
    codecCall,
  };
}
