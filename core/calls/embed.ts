import type { Call, Target } from '../contract/call.ts';
import type { EmbeddingResponse } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import { exchange } from './attempt.ts';
import { type AnswerNotes, MAX_RESPONSE_BYTES, parseAnswer, readAnswer } from './chat.ts';
import type { CallInit, LiveCall } from './live-call.ts';
import { meterEmbeddings } from './meter.ts';
import { type Ask, codecCall, finishBeside, type PipelineDeps, providerOf, runCall, tryTargets } from './run.ts';

export interface EmbeddingAnswer extends AnswerNotes {
  readonly response: EmbeddingResponse;
}

/** Embeddings of texts, in the order of the input. */
export function embed(deps: PipelineDeps, ask: Ask<'embeddings'>, init: CallInit): Promise<EmbeddingAnswer> {
  return runCall(deps, ask, init, async (call) => {
    const answer = await tryTargets(call as unknown as LiveCall, (target) => embedOn(deps, call, target));
    finishBeside(deps, call as unknown as LiveCall, 'ok');
    return answer;
  });
}

async function embedOn(deps: PipelineDeps, call: LiveCall<'embeddings'>, target: Target): Promise<EmbeddingAnswer> {
  const provider = providerOf(deps, target);
  const codec = provider.embed;
  if (!codec)
    throw new GatewayError('unsupported_model', `The provider "${target.provider}" has no embedding models.`, {
      param: 'model',
    });
  const live = call as unknown as LiveCall;
  const input = { ...call.request, model: target.model };
  const info = codecCall(live, target, false);
  const request = codec.request(input, info);
  const upstreamResponse = await exchange(
    { upstream: deps.upstream, hooks: deps.hooks.embeddings },
    live,
    target,
    provider,
    request,
  );
  const bytes = await upstreamResponse.readAll(MAX_RESPONSE_BYTES);
  let response = readAnswer(live, () => codec.response(parseAnswer(bytes), input, info));
  meterEmbeddings(deps, call, target, response.usage);
  const receive = deps.hooks.embeddings.receive;
  if (receive)
    response = ((await receive(call as unknown as Call, response)) as EmbeddingResponse | undefined) ?? response;
  return { call: live, target, dropped: request.dropped ?? [], rateLimits: {}, response };
}
