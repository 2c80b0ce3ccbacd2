import {
  type ChatChoice,
  type ChatResponse,
  type CodecCall,
  isObject,
  type JsonObject,
  readArray,
  readCount,
  readObject,
  readString,
  StreamFailure,
} from '../../../core/index.ts';
import { createCandidateState, finishReason, geminiUsage, isBlocked, nativeFinish, readPieces } from './candidates.ts';
import { geminiFailure } from './errors.ts';
import { signatureField } from './signatures.ts';

/** The response of generateContent as a chat completion. Throws {@link StreamFailure} when a 200 holds none. */
export function geminiResponse(body: unknown, call: CodecCall): ChatResponse {
  const response = unwrap(body);
  if (response['error']) throw new StreamFailure(geminiFailure(200, response, {}));
  const candidates = readArray(response['candidates']).map(readObject);
  if (candidates.length === 0 && !isBlocked(response)) {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider answered without a candidate.' });
  }
  const usage = geminiUsage(response['usageMetadata']);
  return {
    id: readString(response['responseId']) ?? call.id,
    object: 'chat.completion',
    created: call.created,
    model: readString(response['modelVersion']) ?? call.model,
    choices: candidates.length === 0 ? [blockedChoice()] : candidates.map((item, at) => toChoice(item, call, at)),
    ...(usage && { usage }),
  };
}

/** Errors and stream events come wrapped in an array at times. */
export function unwrap(body: unknown): JsonObject {
  return readObject(Array.isArray(body) ? body[0] : body);
}

function toChoice(candidate: JsonObject, call: CodecCall, position: number): ChatChoice {
  const index = readCount(candidate['index']) ?? position;
  const state = createCandidateState();
  const { text, reasoning, calls, images, signature, details, order } = readPieces(candidate, call, index, state);
  const reason = state.reason ?? 'STOP';
  return {
    index,
    message: {
      role: 'assistant',
      content: text === '' && (calls.length > 0 || images.length > 0) ? null : text,
      refusal: null,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(images.length > 0 && { images }),
      ...signatureField(signature),
      ...(!isUsualOrder(order) && { order }),
    },
    finish_reason: finishReason(reason, calls.length > 0),
    ...nativeFinish(reason),
    logprobs: geminiLogprobs(candidate),
  };
}

function blockedChoice(): ChatChoice {
  return {
    index: 0,
    message: { role: 'assistant', content: '', refusal: null },
    finish_reason: 'content_filter',
    logprobs: null,
  };
}

const RANK: Readonly<Record<string, number>> = Object.freeze({ reasoning: 0, content: 1, tool: 2 });

/** Whether the blocks came as they do where nothing is said of it: thinking, words, calls. */
function isUsualOrder(order: readonly string[]): boolean {
  const ranks = order.map((name) => RANK[name.split(':')[0] ?? ''] ?? 0);
  return ranks.every((rank, at) => at === 0 || rank >= (ranks[at - 1] ?? 0));
}

/** A candidate's `logprobsResult` as OpenAI's `logprobs`; null when there is none. */
export function geminiLogprobs(candidate: JsonObject): JsonObject | null {
  const result = candidate['logprobsResult'];
  if (!isObject(result)) return null;
  const alternatives = readArray(result['topCandidates']);
  const content = readArray(result['chosenCandidates']).map((chosen, index) => ({
    ...tokenLogprob(chosen),
    top_logprobs: readArray(readObject(alternatives[index])['candidates']).map(tokenLogprob),
  }));
  return { content, refusal: null };
}

function tokenLogprob(candidate: unknown): { token: string; logprob: number; bytes: number[] } {
  const { token, logProbability } = readObject(candidate);
  const text = typeof token === 'string' ? token : '';
  return {
    token: text,
    logprob: typeof logProbability === 'number' ? logProbability : -9999,
    bytes: [...Buffer.from(text, 'utf8')],
  };
}
