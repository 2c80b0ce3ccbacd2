import {
  type ChatCodec,
  type ChatResponse,
  type CodecCall,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readCount,
  readObject,
  readString,
  StreamFailure,
  type ToolCall,
} from '../../../core/index.ts';
import {
  type ClassifyFailure,
  finishOf,
  isCall,
  readAnnotations,
  readCall,
  readReasoningItem,
} from './responses-items.ts';
import { decodeResponsesStream } from './responses-stream.ts';
import { type CostOf, readResponsesUsage } from './responses-usage.ts';

/**
 * Reads what vendors with OpenAI's Responses API send, for metering and hooks on the native lane. Never throws but
 * {@link StreamFailure}. https://platform.openai.com/docs/api-reference/responses-streaming
 */
export function createResponsesCodec(
  classify: ClassifyFailure,
  costOf?: CostOf,
): Pick<ChatCodec, 'response' | 'stream'> {
  return {
    response: (body, call) => readResponse(body, call, classify, costOf),
    stream: (call) => decodeResponsesStream(call, classify, costOf),
  };
}

interface Read {
  readonly order: string[];
  readonly details: ReasoningDetail[];
  readonly calls: ToolCall[];
  readonly annotations: JsonObject[];
  text: string | undefined;
  refusal: string | undefined;
}

function readResponse(body: unknown, call: CodecCall, classify: ClassifyFailure, costOf?: CostOf): ChatResponse {
  const response = readObject(body);
  if (isObject(response['error']) || response['status'] === 'failed') throw new StreamFailure(classify(body));
  if (!Array.isArray(response['output']))
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider answered without `output`.' });
  const read: Read = { order: [], details: [], calls: [], annotations: [], text: undefined, refusal: undefined };
  for (const item of response['output']) if (isObject(item)) readItem(item, read);
  const { order, details, calls, annotations, text, refusal } = read;
  const { reason, finish } = finishOf(response, calls.length > 0, refusal !== undefined);
  const usage = readResponsesUsage(response['usage'], costOf);
  const thoughts = details.flatMap((detail) => detail.text ?? []).join('\n\n');
  const tier = readString(response['service_tier']);
  return {
    id: readString(response['id']) ?? call.id,
    object: 'chat.completion',
    created: readCount(response['created_at']) || call.created,
    model: readString(response['model']) ?? call.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text ?? null,
          refusal: refusal ?? null,
          ...(calls.length > 0 && { tool_calls: calls }),
          ...(thoughts !== '' && { reasoning_content: thoughts }),
          ...(details.length > 0 && { reasoning_details: details }),
          ...(annotations.length > 0 && { annotations }),
          ...(order.length > 1 && { order }),
        },
        finish_reason: reason,
        finish,
        logprobs: null,
      },
    ],
    ...(usage && { usage }),
    ...(tier !== undefined && { service_tier: tier }),
  };
}

function readItem(item: JsonObject, read: Read): void {
  if (item['type'] === 'reasoning') {
    for (const detail of readReasoningItem(item)) {
      read.order.push(`reasoning:${read.details.length}`);
      read.details.push(detail);
    }
  } else if (isCall(item)) {
    read.order.push(`tool:${read.calls.length}`);
    read.calls.push(readCall(item));
  } else if (item['type'] === 'message') {
    for (const part of readArray(item['content'])) readPart(readObject(part), read);
  }
}

function readPart(part: JsonObject, read: Read): void {
  const { type, text, refusal, annotations } = part;
  if (type === 'refusal') read.refusal = (read.refusal ?? '') + (readString(refusal) ?? '');
  if (type !== 'output_text') return;
  if (read.text === undefined) read.order.push('content:0');
  read.text = (read.text ?? '') + (readString(text) ?? '');
  read.annotations.push(...readAnnotations(annotations));
}
