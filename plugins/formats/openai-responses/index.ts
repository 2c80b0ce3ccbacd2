import type { ChatCodec } from '../../../core/index.ts';
import { type ClassifyFailure, type CostOf, type ReadingRules, readResponse } from './response.ts';
import { decodeResponsesStream } from './stream.ts';

export { writeItems, writeResponsesRequest, writeTool } from './request.ts';
export { readReasoningItem } from './response.ts';
export {
  customArguments,
  customInput,
  INCLUDE_ENCRYPTED,
  INCOMPLETE,
  type Item,
  MIN_OUTPUT_TOKENS,
  namespacedName,
  SAME_FIELDS,
} from './types.ts';

/**
 * Reads what vendors with OpenAI's Responses API send. Never throws but `StreamFailure`. `keepsCustomCalls` is for requests whose
 * custom tools went to the vendor as such; elsewhere their calls become calls of functions with the one argument `input`.
 * https://developers.openai.com/api/reference/resources/responses/streaming-events
 */
export function createResponsesCodec(
  classify: ClassifyFailure,
  costOf?: CostOf,
  keepsCustomCalls = false,
): Pick<ChatCodec, 'response' | 'stream'> {
  const rules: ReadingRules = { classify, costOf, keepsCustomCalls };
  return {
    response: (body, call) => readResponse(body, call, rules),
    stream: (call) => decodeResponsesStream(call, rules),
  };
}
