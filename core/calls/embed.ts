import type { Target } from '../contract/call.ts';
import type { EmbeddingResponse } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import { exchange } from './attempt.ts';
import type { CallInit, LiveCall } from './live-call.ts';
import { meterEmbeddings } from './meter.ts';
import { type AnswerNotes, MAX_RESPONSE_BYTES, parseAnswer, readAnswer } from './open-chat.ts';
import { type Ask, codecCall, finishBeside, type PipelineDeps, providerOf, runCall, tryTargets } from './run.ts';

export interface EmbeddingAnswer extends AnswerNotes {
  readonly response: EmbeddingResponse;
}

/** Embeddings of texts, in the order of the input. */
export function embed(deps: PipelineDeps, ask: Ask<'embeddings'>, init: CallInit): Promise<EmbeddingAnswer> {
  return runCall(deps, ask, init, async (call) => {
    const answer = await tryTargets(call, (target) => embedOn(deps, call, target));
    finishBeside(deps, call, 'ok');
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
  const input = { ...call.request, model: target.model };
  const info = codecCall(call, target, false);
  const request = codec.request(input, info);
  const upstreamResponse = await exchange(
    { upstream: deps.upstream, hooks: deps.hooks.embeddings },
    call,
    target,
    provider,
    request,
  );
  const bytes = await upstreamResponse.readAll(MAX_RESPONSE_BYTES);
  let response = readAnswer(call, () => codec.response(parseAnswer(bytes), input, info));
  meterEmbeddings(deps, call, target, response.usage);
  const receive = deps.hooks.embeddings.receive;
  const changed = receive && (await receive(call, response));
  if (changed && !('choices' in changed)) response = changed;
  return { call, target, dropped: request.dropped ?? [], rateLimits: {}, response };
}
