import { type ChatMessage, type ChatRequest, isObject, type JsonObject } from '../../../core/index.ts';
import { invalid } from './content.ts';

const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/**
 * A request in its canonical form: what is null is left out, tools and calls have their `type`, and there is one limit of output.
 * Returns the same object where nothing has to change. `unlimited` is for servers that read 0 and −1 as "no limit".
 */
export function canonicalRequest(input: ChatRequest, unlimited: boolean): ChatRequest {
  const { messages, tools, stream_options, logit_bias } = input;
  const changes: JsonObject = {
    ...(messages.some(isLoose) && { messages: messages.map(canonicalMessage) }),
    ...(Array.isArray(tools) && tools.some(isLooseTool) && { tools: tools.map(canonicalTool) }),
    ...(isObject(stream_options) && { stream_options: withoutNulls(stream_options) }),
    ...(isObject(logit_bias) && Object.keys(logit_bias).length === 0 && { logit_bias: undefined }),
    ...canonicalLimits(input, unlimited),
  };
  if (Object.keys(changes).length === 0 && !hasNulls(input)) return input;
  return withoutNulls({ ...input, ...changes });
}

/** Of two limits the larger one is what was reserved, so it alone is sent, as `max_tokens`: every codec knows that name. */
function canonicalLimits(input: ChatRequest, unlimited: boolean): JsonObject {
  const changes: JsonObject = {};
  for (const field of LIMITS) {
    const limit = input[field];
    if (typeof limit !== 'number' || limit > 0) continue;
    if (!unlimited) throw invalid(field, 'must be at least 1 for this provider');
    changes[field] = undefined;
  }
  const limits = LIMITS.map((field) => input[field]).filter((limit) => typeof limit === 'number' && limit > 0);
  const [first, second] = limits;
  if (typeof first !== 'number' || typeof second !== 'number') return changes;
  return { max_tokens: Math.max(first, second), max_completion_tokens: undefined };
}

function isLoose(message: ChatMessage): boolean {
  if (message.content === undefined || message.content === null) return true;
  if (Array.isArray(message.content) && message.content.some(hasNulls)) return true;
  return hasNulls(message) || (Array.isArray(message.tool_calls) && message.tool_calls.some(isLooseTool));
}

function canonicalMessage(message: ChatMessage): ChatMessage {
  if (!isLoose(message)) return message;
  const { content, tool_calls, ...rest } = message;
  const isResult = message.role === 'tool' || message.role === 'function';
  return {
    ...withoutNulls(rest),
    content: Array.isArray(content) ? content.map(withoutNulls) : (content ?? (isResult ? '' : null)),
    ...(Array.isArray(tool_calls) && { tool_calls: tool_calls.map(withType) }),
  };
}

function isLooseTool(tool: unknown): boolean {
  if (!isObject(tool)) return false;
  return (
    !('type' in tool) || hasNulls(tool) || ('function' in tool && isObject(tool.function) && hasNulls(tool.function))
  );
}

function canonicalTool(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  if (!('function' in tool) || !isObject(tool.function)) return withoutNulls(tool);
  return withType({ ...tool, function: withoutNulls(tool.function) });
}

/** A call or tool of a client that leaves `type` out: it is a function. */
function withType<T>(tool: T): T {
  if (!isObject(tool)) return tool;
  const typed = withoutNulls(tool);
  return 'type' in typed || !('function' in typed) ? typed : { ...typed, type: 'function' };
}

function hasNulls(value: unknown): boolean {
  return isObject(value) && Object.values(value).some((field) => field === null || field === undefined);
}

/** Null means "not set". */
function withoutNulls<T>(value: T): T {
  if (!isObject(value) || !hasNulls(value)) return value;
  const copy = { ...value };
  for (const field in copy) if (copy[field] === null || copy[field] === undefined) delete copy[field];
  return copy;
}
