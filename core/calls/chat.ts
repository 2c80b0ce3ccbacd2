import type { Target } from '../contract/call.ts';
import type { ChatResponse } from '../contract/chat.ts';
import { type ChatStream, openStream } from './chat-stream.ts';
import type { CallInit, LiveCall } from './live-call.ts';
import { meterChat } from './meter.ts';
import { type AnswerNotes, MAX_RESPONSE_BYTES, openChat, parseAnswer, readAnswer } from './open-chat.ts';
import { type Ask, finishBeside, type PipelineDeps, runCall, tryTargets } from './run.ts';
import { estimateTextTokens } from './tokens.ts';

export interface ChatAnswer extends AnswerNotes {
  readonly response: ChatResponse;
}

/** A chat completion as a whole. The call is finished when this resolves. */
export function completeChat(deps: PipelineDeps, ask: Ask<'chat'>, init: CallInit): Promise<ChatAnswer> {
  return runCall(deps, ask, init, async (call) => {
    const answer = await tryTargets(call, (target) => completeOn(deps, call, target));
    finishBeside(deps, call, 'ok');
    return answer;
  });
}

async function completeOn(deps: PipelineDeps, call: LiveCall<'chat'>, target: Target): Promise<ChatAnswer> {
  const { upstreamResponse, codec, codecInfo, dropped, rateLimits } = await openChat(deps, call, target, false);
  const started = performance.now();
  const bytes = await upstreamResponse.readAll(MAX_RESPONSE_BYTES);
  call.measures.upstreamMs += performance.now() - started;
  let response = readAnswer(call, () => codec.response(parseAnswer(bytes), codecInfo));
  // Metered as the vendor answered: no hook changes what a call cost.
  meterChat(deps, call, target, response.usage, () => estimateTextTokens(answerText(response)));
  // What was charged is what is told, also where the vendor's own count is none.
  if (call.measures.estimated && call.measures.usage) response = { ...response, usage: call.measures.usage };
  const receive = deps.hooks.chat.receive;
  const changed = receive && (await receive(call, response));
  if (changed && 'choices' in changed) response = changed;
  if (!response.usage && call.measures.usage) response = { ...response, usage: call.measures.usage };
  return { call, target, dropped, rateLimits, response };
}

function answerText(response: ChatResponse): string {
  return response.choices
    .map(
      ({ message }) =>
        `${message.content ?? ''}${message.reasoning_content ?? ''}${message.tool_calls ? JSON.stringify(message.tool_calls) : ''}`,
    )
    .join('');
}

/** A chat completion as a stream. Rejects before the first byte when no target answers; the caller closes the stream. */
export function streamChat(deps: PipelineDeps, ask: Ask<'chat'>, init: CallInit): Promise<ChatStream> {
  return runCall(deps, ask, init, (call) =>
    tryTargets(call, async (target) => openStream(deps, call, target, await openChat(deps, call, target, true))),
  );
}
