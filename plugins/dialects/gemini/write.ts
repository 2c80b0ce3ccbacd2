import {
  type ChatChoice,
  type ChatResponse,
  type DialectContext,
  type FinishReason,
  isObject,
  type JsonObject,
  type NativeFinish,
  readArray,
  readObject,
  type Usage,
} from '../../../core/index.ts';
import type { Seal } from './signatures.ts';
import { fieldOf } from './spelling.ts';
import type { GeminiBody } from './types.ts';
import { textPart, writeParts } from './write-parts.ts';

const FINISH_REASON: Readonly<Record<FinishReason, string>> = Object.freeze({
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  function_call: 'STOP',
  content_filter: 'SAFETY',
});

/** Google's reasons that say more than ours; any other vendor's word means nothing to these clients. */
const NATIVE_REASON =
  /^(?:RECITATION|LANGUAGE|OTHER|BLOCKLIST|PROHIBITED_CONTENT|SPII|IMAGE_\w+|NO_IMAGE|CONTINUATION|SAFETY)$/;

/** The body of a whole response. */
export function writeGemini(response: ChatResponse, context: DialectContext<GeminiBody>): object {
  const seal: Seal = (data) => context.seal(data);
  const withThoughts = wantsThoughts(context);
  const usage = response.usage && usageOf(response.usage);
  return {
    candidates: response.choices.map((choice) => candidateOf(choice, seal, withThoughts)),
    ...(usage && { usageMetadata: usage }),
    modelVersion: response.model,
    responseId: context.id,
  };
}

function candidateOf(choice: ChatChoice, seal: Seal, withThoughts: boolean): object {
  const { parts, isBroken } = writeParts(choice.message, seal, withThoughts);
  const logprobs = logprobsOf(choice.logprobs);
  return {
    content: { role: 'model', parts: parts.length === 0 ? [textPart('')] : parts },
    finishReason: finishOf(choice.finish_reason, choice.finish, isBroken),
    index: choice.index,
    ...(logprobs && { logprobsResult: logprobs }),
  };
}

/** Why a candidate ended. A call that is no JSON object was either cut by the limit or malformed by the model. */
export function finishOf(reason: FinishReason, finish: NativeFinish | undefined, isBroken: boolean): string {
  if (isBroken && reason !== 'length' && reason !== 'content_filter') return 'MALFORMED_FUNCTION_CALL';
  const { native } = finish ?? {};
  return native !== undefined && NATIVE_REASON.test(native) ? native : FINISH_REASON[reason];
}

/** Whether the caller wants to see the model's thinking; Google shows it only to those who say so. */
export function wantsThoughts({ input: { body } }: DialectContext<GeminiBody>): boolean {
  const config = fieldOf(body, 'generationConfig');
  const thinking = isObject(config) ? fieldOf(config, 'thinkingConfig') : undefined;
  return isObject(thinking) && fieldOf(thinking, 'includeThoughts') === true;
}

/** Token counts: thinking stands beside the candidates' tokens in Google's arithmetic, inside them in ours. */
export function usageOf(usage: Usage): JsonObject {
  const thoughts = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  return {
    promptTokenCount: usage.prompt_tokens,
    candidatesTokenCount: Math.max(0, usage.completion_tokens - thoughts),
    totalTokenCount: usage.prompt_tokens + usage.completion_tokens,
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    ...(cached > 0 && { cachedContentTokenCount: cached }),
  };
}

/** OpenAI's `logprobs` as `logprobsResult`; undefined when there are none. */
export function logprobsOf(logprobs: unknown): JsonObject | undefined {
  const tokens = readArray(readObject(logprobs)['content']).map(readObject);
  if (tokens.length === 0) return undefined;
  return {
    chosenCandidates: tokens.map(tokenOf),
    topCandidates: tokens.map((token) => ({
      candidates: readArray(token['top_logprobs']).map(readObject).map(tokenOf),
    })),
  };
}

function tokenOf({ token, logprob }: JsonObject): JsonObject {
  return { token, logProbability: logprob };
}
