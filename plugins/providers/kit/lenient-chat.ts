import {
  type ChatChunk,
  type ChatCodec,
  type ChatMessage,
  type ChatRequest,
  type CodecCall,
  factsOf,
  isObject,
  type JsonObject,
  type RequestFacts,
  type StreamDecoder,
} from '../../../core/index.ts';
import { invalid } from './content.ts';
import { functionChoice, functionChunk, isLegacy, toolsOfFunctions } from './legacy-functions.ts';
import { findToolNames, TOOL_NAME, type ToolNames } from './tool-names.ts';

/** What a vendor takes of what clients are known to send. */
export interface Leniency {
  /** True where 0 and −1 as a limit mean "no limit": servers of one's own. */
  readonly unlimited?: boolean;
  /** Names of tools that the vendor takes; others are renamed on the way out, and back on the way in. */
  readonly toolNames?: RegExp;
  /** True where the codec itself says what becomes of `functions`; elsewhere they become tools, and back. */
  readonly ownFunctions?: boolean;
}

/**
 * A codec that is given canonical requests only: nulls left out, one limit, `functions` as tools, names that the vendor takes.
 * What comes back is in the form that the caller used; for that the call has to carry its request.
 */
export function lenientChat(codec: ChatCodec, leniency: Leniency = {}): ChatCodec {
  // By the request, which is frozen: read when it is sent, needed once more for its response.
  const forms = new WeakMap<ChatRequest, Form>();
  /** The form that the caller used; without the request, the canonical one. */
  const formOf = ({ request }: CodecCall): Form =>
    request ? (forms.get(request) ?? readRequest(request, leniency)) : { names: undefined, legacy: false };
  return {
    request(input, call) {
      const { request, names, legacy } = readRequest(input, leniency);
      if (call.request === input) forms.set(input, { names, legacy });
      const sent = codec.request(names ? names.rename(request) : request, call);
      // The caller did not ask for it: the old form did.
      const isOurs = isLegacy(input) && input.parallel_tool_calls !== false;
      if (!isOurs || !sent.dropped?.includes('parallel_tool_calls')) return sent;
      return { ...sent, dropped: sent.dropped.filter((field) => field !== 'parallel_tool_calls') };
    },
    response(body, call) {
      const response = codec.response(body, call);
      const { names, legacy } = formOf(call);
      if (!names && !legacy) return response;
      const choices = response.choices.map((choice) => {
        const restored = names ? names.restoreChoice(choice) : choice;
        return legacy ? functionChoice(restored) : restored;
      });
      return { ...response, choices };
    },
    stream(call) {
      const decoder = codec.stream(call);
      const { names, legacy } = formOf(call);
      if (!names && !legacy) return decoder;
      return restored(decoder, (chunk) => {
        const named = names ? names.restoreChunk(chunk) : chunk;
        return legacy ? functionChunk(named) : named;
      });
    },
  };
}

interface Form {
  readonly names: ToolNames | undefined;
  readonly legacy: boolean;
}

function readRequest(input: ChatRequest, leniency: Leniency): { readonly request: ChatRequest } & Form {
  const { unlimited = false, toolNames = TOOL_NAME, ownFunctions = false } = leniency;
  const facts = factsOf(input);
  const canonical = canonicalRequest(input, facts, unlimited);
  const isOld = !ownFunctions && ('functions' in canonical || 'function_call' in canonical || facts.hasFunctions);
  if (!isOld) return { request: canonical, names: findToolNames(facts.toolNames, toolNames), legacy: false };
  const request = toolsOfFunctions(canonical);
  return { request, names: findToolNames(factsOf(request).toolNames, toolNames), legacy: isLegacy(canonical) };
}

function restored(decoder: StreamDecoder, restore: (chunk: ChatChunk) => ChatChunk | undefined): StreamDecoder {
  const restoreAll = (chunks: readonly ChatChunk[]) => chunks.flatMap((chunk) => restore(chunk) ?? []);
  return {
    push: (event) => restoreAll(decoder.push(event)),
    end() {
      const { chunks, complete } = decoder.end();
      return { chunks: restoreAll(chunks), complete };
    },
  };
}

const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/**
 * A request in its canonical form: what is null is left out, tools and calls have their `type`, and there is one limit of output.
 * Returns the same object where nothing has to change. `unlimited` is for servers that read 0 and −1 as "no limit".
 */
function canonicalRequest(input: ChatRequest, facts: RequestFacts, unlimited: boolean): ChatRequest {
  const { messages, tools, stream_options, logit_bias } = input;
  const changes = canonicalLimits(input, unlimited);
  if (facts.hasLooseMessages) changes['messages'] = messages.map(canonicalMessage);
  if (Array.isArray(tools) && facts.hasLooseTools) changes['tools'] = tools.map(canonicalTool);
  if (isObject(stream_options)) changes['stream_options'] = withoutNulls(stream_options);
  if (isObject(logit_bias) && Object.keys(logit_bias).length === 0) changes['logit_bias'] = undefined;
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
  const { max_tokens: first, max_completion_tokens: second } = input;
  if (typeof first !== 'number' || typeof second !== 'number' || first <= 0 || second <= 0) return changes;
  return { max_tokens: Math.max(first, second), max_completion_tokens: undefined };
}

function canonicalMessage(message: ChatMessage): ChatMessage {
  const { content, tool_calls, ...rest } = message;
  const isResult = message.role === 'tool' || message.role === 'function';
  return {
    ...withoutNulls(rest),
    content: Array.isArray(content) ? content.map(withoutNulls) : (content ?? (isResult ? '' : null)),
    ...(Array.isArray(tool_calls) && { tool_calls: tool_calls.map(withType) }),
  };
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
  if (!isObject(value)) return false;
  for (const field of Object.keys(value)) if (value[field] === null || value[field] === undefined) return true;
  return false;
}

/** Null means "not set". */
function withoutNulls<T>(value: T): T {
  if (!isObject(value) || !hasNulls(value)) return value;
  const copy = { ...value };
  for (const field in copy) if (copy[field] === null || copy[field] === undefined) delete copy[field];
  return copy;
}
