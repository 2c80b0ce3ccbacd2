import {
  type AssistantMessage,
  type ChatChoice,
  type ChatResponse,
  type CodecCall,
  isObject,
  readString,
  StreamFailure,
} from '../../../core/index.ts';
import { readRelayDetails } from '../kit/index.ts';
import { extrasOf, mapFinishReason, readContent, readFinish, readLogprobs } from './choice.ts';
import { failureIn } from './errors.ts';
import type { Differences } from './spec.ts';
import { readToolCalls } from './tool-calls.ts';
import { count, readUsage } from './usage.ts';

const TOP = new Set(['id', 'object', 'created', 'model', 'choices', 'usage']);
const CHOICE = new Set(['index', 'message', 'finish_reason', 'logprobs', 'text', 'delta', 'finish', 'stop_reason']);
const MESSAGE = new Set([
  'role',
  'content',
  'refusal',
  'tool_calls',
  'reasoning_content',
  'reasoning',
  'reasoning_text',
  'reasoning_details',
]);

/** A whole response in OpenAI's exact shape. Throws {@link StreamFailure} for a failure that came with status 200. */
export function readResponse(body: unknown, call: CodecCall, differences: Differences): ChatResponse {
  const failure = failureIn(body, differences.errors);
  if (failure) throw new StreamFailure(failure);
  if (!isObject(body) || !Array.isArray(body['choices'])) {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider answered without `choices`.' });
  }
  const usage = readUsage(body['usage'], differences);
  const response: ChatResponse = {
    id: readString(body['id']) ?? call.id,
    object: 'chat.completion',
    created: unixSeconds(body['created']) ?? call.created,
    model: readString(body['model']) ?? call.model,
    choices: body['choices'].filter(isObject).map((choice, at) => readChoice(choice, at, call, differences)),
  };
  return Object.assign(response, usage && { usage }, extrasOf(body, TOP));
}

function readChoice(
  choice: Readonly<Record<string, unknown>>,
  position: number,
  call: CodecCall,
  differences: Differences,
): ChatChoice {
  const message = readMessage(isObject(choice['message']) ? choice['message'] : {}, `${call.id}:${position}`);
  const calledTools = message.tool_calls !== undefined;
  // The body arrived whole, so a missing reason is a vendor's omission, not a broken response.
  const reason = readString(choice['finish_reason']) ?? 'stop';
  const finishReason = mapFinishReason(reason, calledTools, differences);
  const read: ChatChoice = {
    index: count(choice['index']) ?? position,
    message,
    logprobs: readLogprobs(choice['logprobs']),
    finish_reason: finishReason,
  };
  return Object.assign(read, readFinish(choice, finishReason), extrasOf(choice, CHOICE));
}

function readMessage(message: Readonly<Record<string, unknown>>, seed: string): AssistantMessage {
  const { content, reasoning } = readContent(message);
  const details = readRelayDetails(message['reasoning_details']);
  const toolCalls = readToolCalls(message['tool_calls'], seed);
  const read: AssistantMessage = {
    role: 'assistant',
    content: content ?? null,
    refusal: readString(message['refusal']) ?? null,
  };
  return Object.assign(
    read,
    reasoning !== undefined && { reasoning_content: reasoning },
    details.length > 0 && { reasoning_details: details },
    toolCalls && { tool_calls: toolCalls },
    extrasOf(message, MESSAGE),
  );
}

/** Unix seconds of a vendor's `created`, also where it counts milliseconds or fractions; 0 is none. */
export function unixSeconds(value: unknown): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) return undefined;
  return Math.floor(value > 100_000_000_000 ? value / 1000 : value);
}
