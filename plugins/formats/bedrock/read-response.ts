import {
  type ChatChunk,
  type ChatDelta,
  type ChatResponse,
  type CodecCall,
  chunkHead,
  deltaChunk,
  isCount,
  isObject,
  type JsonObject,
  parseJson,
  type ReasoningDetail,
  type ResponseHeaders,
  readArray,
  readObject,
  readString,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
  type StreamProgress,
  type ToolCall,
  type UpstreamFailure,
  type Usage,
  usageChunk,
  writeJson,
} from '../../../contract/index.ts';
import { failureOfStatus, toolCallId } from '../kit/index.ts';
import { type ChoiceEnd, hasDelivered, unmappedEnd } from '../unmapped-end.ts';
import { CLASS_BY_ERROR, CLASS_BY_TEXT, HINTS, meaningOf, OWN_REASONS } from './tables.ts';

/**
 * Error name of the service as a key of {@link CLASS_BY_ERROR}: `com.amazon#ThrottlingException:http://…` becomes
 * `throttling`.
 */
function errorName(name: string): string {
  const [plain = ''] = (name.split('#').at(-1) ?? '').split(':');
  return plain.toLowerCase().replace(/(?:exception|error)$/, '');
}

/** Classifies an error response, or a stream exception, which has its name in the header. */
export function bedrockFailure(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const { message, Message, __type: type, originalMessage } = readObject(body);
  const name = errorName(readString(type) ?? headers['x-amzn-errortype'] ?? '');
  const said = readString(message) ?? readString(Message) ?? readString(originalMessage);
  const text = said ?? `The provider returned status ${status}.`;
  const byText = CLASS_BY_TEXT.find(([words]) => words.test(text))?.[1];
  const known = Object.hasOwn(CLASS_BY_ERROR, name) ? CLASS_BY_ERROR[name] : undefined;
  const isValidation = name === 'validation' || (known === undefined && status === 400);
  // AWS names the user and the policy here: a matter of the operator's key.
  const byName = known === 'permission' && /not authorized to perform/i.test(text) ? 'authentication' : known;
  const better = byName ?? (isValidation ? (byText ?? 'invalid_request') : undefined);
  const hint = HINTS.find(([words]) => words.test(text))?.[1];
  return failureOfStatus(
    name === 'resourcenotfound' ? 404 : status,
    hint === undefined ? text : `${text} ${hint}`,
    headers,
    better && { class: better },
  );
}

/** Throws the failure for an exception in a stream. */
export function assertNoException({ event = '', data }: SseEvent): void {
  if (event !== 'error' && !event.endsWith('Exception')) return;
  throw new StreamFailure(bedrockFailure(500, parseJson(data), { 'x-amzn-errortype': event }));
}

function malformed(message: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message });
}

/** Converts the vendor's counts, which exclude cached tokens from the input; undefined for invalid counts. */
function readUsage(value: unknown): Usage | undefined {
  const usage = readObject(value);
  const { inputTokens, outputTokens, cacheReadInputTokens: read = 0, cacheWriteInputTokens: written = 0 } = usage;
  const hour = readArray(usage['cacheDetails'])
    .map(readObject)
    .filter(({ ttl }) => ttl === '1h')
    .reduce((sum, { inputTokens: tokens }) => sum + (isCount(tokens) ? tokens : 0), 0);
  if (![inputTokens, outputTokens, read ?? 0, written ?? 0].every(isCount)) return undefined;
  const [input, output, cached, cacheWrite] = [inputTokens, outputTokens, read ?? 0, written ?? 0] as [
    number,
    number,
    number,
    number,
  ];
  const prompt = input + cached + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: cached,
      cache_write_tokens: cacheWrite,
      ...(hour > 0 && { cache_write_1h_tokens: Math.min(hour, cacheWrite) }),
    },
  };
}

/**
 * Adds the service tier to the counts. The more expensive low-latency mode counts as a tier of its own, which has no
 * known price.
 */
function withTier(usage: Usage | undefined, { serviceTier, performanceConfig }: JsonObject): Usage | undefined {
  const isFast = readObject(performanceConfig)['latency'] === 'optimized';
  const tier = isFast ? 'latency_optimized' : readString(readObject(serviceTier)['type']);
  return usage && tier !== undefined ? { ...usage, service_tier: tier } : usage;
}

/**
 * Maps the stop reason; throws for a reason that means a failure. `called` holds the arguments of the tool calls, as
 * text.
 */
function readEnd(reason: string, isDelivered: boolean, called: readonly string[]): ChoiceEnd {
  const meaning = meaningOf(reason);
  if (meaning === undefined) return unmappedEnd(reason, isDelivered, called);
  if (typeof meaning === 'object') {
    const message = `The model stopped before the end of its response (${reason.slice(0, 40)}).`;
    throw new StreamFailure({ class: meaning.failure, message });
  }
  const finish = meaning === 'stop' && called.length > 0 ? 'tool_calls' : meaning;
  return { finish_reason: finish, ...(OWN_REASONS.has(reason) && { finish: { native: reason } }) };
}

/** A thought in the form that the vendor accepts back; undefined if it has nothing that the vendor could verify. */
function thoughtOf(
  text: string,
  signature: string | undefined,
  redacted: string | undefined,
): ReasoningDetail | undefined {
  if (redacted !== undefined) return { kind: 'encrypted', data: redacted, format: 'bedrock' };
  return signature === undefined ? undefined : { kind: 'text', text, signature, format: 'bedrock' };
}

/** Translates a response of `Converse` to the canonical shape. */
export function converseResponse(body: unknown, call: CodecCall): ChatResponse {
  const { output, stopReason, usage, message } = readObject(body);
  if (output === undefined && typeof message === 'string') throw new StreamFailure(bedrockFailure(200, body, {}));
  const content = readObject(readObject(output)['message'])['content'];
  const reason = readString(stopReason);
  if (!Array.isArray(content) || reason === undefined) throw malformed('The provider returned no message.');
  const texts: string[] = [];
  const thoughts: string[] = [];
  const details: ReasoningDetail[] = [];
  const calls: ToolCall[] = [];
  for (const { text, toolUse, reasoningContent } of content.map(readObject)) {
    if (typeof text === 'string') texts.push(text);
    if (isObject(toolUse)) calls.push(callOf(toolUse, `${call.id}_${calls.length}`));
    if (!isObject(reasoningContent)) continue;
    const { text: thought, signature } = readObject(reasoningContent['reasoningText']);
    const detail = thoughtOf(
      readString(thought) ?? '',
      readString(signature),
      readString(reasoningContent['redactedContent']),
    );
    if (typeof thought === 'string' && thought !== '') thoughts.push(thought);
    if (detail) details.push(detail);
  }
  const isDelivered = [...texts, ...thoughts].some((text) => text !== '') || details.length + calls.length > 0;
  const end = readEnd(
    reason,
    isDelivered,
    calls.map((each) => each.function.arguments),
  );
  const counted = withTier(readUsage(usage), readObject(body));
  return {
    id: call.id,
    object: 'chat.completion',
    created: call.created,
    model: call.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: texts.length > 0 ? texts.join('') : null,
          refusal: null,
          ...(calls.length > 0 && { tool_calls: calls }),
          ...(thoughts.length > 0 && { reasoning_content: thoughts.join('\n\n') }),
          ...(details.length > 0 && { reasoning_details: details }),
        },
        logprobs: null,
        ...end,
      },
    ],
    ...(counted && { usage: counted }),
  };
}

function callOf({ toolUseId, name, input }: JsonObject, fallback: string): ToolCall {
  const text = typeof input === 'string' ? input : writeJson(input ?? {});
  return {
    id: readString(toolUseId) ?? toolCallId(fallback, 64),
    type: 'function',
    function: { name: readString(name) ?? '', arguments: text },
  };
}

/** State of an open content block. */
interface OpenBlock {
  /** Index of its tool call, if any. */
  readonly tool: number | undefined;
  /** True once any input of the call was received. */
  hasInput: boolean;
  thought: string;
  signature: string | undefined;
}

/** Decodes the events of `ConverseStream`. */
export function converseStream(call: CodecCall): StreamDecoder {
  return new ConverseDecoder(call);
}

class ConverseDecoder implements StreamDecoder {
  readonly #head: ReturnType<typeof chunkHead>;
  readonly #blocks = new Map<unknown, OpenBlock>();
  /** Arguments of each call so far. */
  readonly #called: string[] = [];
  #hasContent = false;
  #hasRole = false;
  #isOver = false;
  #usage: Usage | undefined;

  constructor(call: CodecCall) {
    this.#head = chunkHead(call);
  }

  push(event: SseEvent): readonly ChatChunk[] {
    assertNoException(event);
    if (event.data.trim() === '') return [];
    const data = parseJson(event.data);
    if (!isObject(data)) throw malformed('The provider sent an event that is not JSON.');
    const index = data['contentBlockIndex'];
    switch (event.event) {
      case 'messageStart':
        return this.#emit({ content: '', refusal: null });
      case 'contentBlockStart':
        return this.#start(index, readObject(data['start'])['toolUse']);
      case 'contentBlockDelta':
        return this.#extend(index, readObject(data['delta']));
      case 'contentBlockStop':
        return this.#close(index);
      case 'messageStop':
        return this.#end(readString(data['stopReason']) ?? '');
      case 'metadata':
        this.#usage = withTier(readUsage(data['usage']), data);
        return [];
      default:
        return [];
    }
  }

  end(): { readonly chunks: readonly ChatChunk[]; readonly complete: boolean } {
    return { chunks: this.#usage ? [usageChunk(this.#head, this.#usage)] : [], complete: this.#isOver };
  }

  progress(): StreamProgress {
    if (!this.#isOver) return 'open';
    return this.#usage ? 'complete' : 'ending';
  }

  #emit(delta: ChatDelta): readonly ChatChunk[] {
    // Only usage may follow a finish reason.
    if (this.#isOver) return [];
    this.#hasContent ||= hasDelivered(delta);
    const first: ChatDelta = this.#hasRole ? {} : { role: 'assistant' };
    this.#hasRole = true;
    return [deltaChunk(this.#head, { ...first, ...delta })];
  }

  #start(index: unknown, tool: unknown): readonly ChatChunk[] {
    const place = isObject(tool) ? this.#called.push('') - 1 : undefined;
    this.#blocks.set(index, { tool: place, hasInput: false, thought: '', signature: undefined });
    if (!isObject(tool) || place === undefined) return [];
    const { id, type, function: called } = callOf({ ...tool, input: '' }, `${this.#head.id}_${place}`);
    return this.#emit({ tool_calls: [{ index: place, id, type, function: called }] });
  }

  #extend(index: unknown, { text, toolUse, reasoningContent }: JsonObject): readonly ChatChunk[] {
    if (typeof text === 'string') return text === '' ? [] : this.#emit({ content: text });
    const known = this.#blocks.get(index);
    const block = known ?? { tool: undefined, hasInput: false, thought: '', signature: undefined };
    // Only tool calls have a start event.
    if (!known) this.#blocks.set(index, block);
    if (isObject(toolUse)) {
      const input = readString(toolUse['input']) ?? '';
      if (block.tool === undefined || input === '') return [];
      block.hasInput = true;
      this.#called[block.tool] += input;
      return this.#emit({ tool_calls: [{ index: block.tool, function: { arguments: input } }] });
    }
    const { text: thought, signature, redactedContent } = readObject(reasoningContent);
    if (typeof signature === 'string') block.signature = `${block.signature ?? ''}${signature}`;
    const hidden = readString(redactedContent);
    if (hidden !== undefined)
      return this.#emit({ reasoning_details: [{ kind: 'encrypted', data: hidden, format: 'bedrock' }] });
    if (typeof thought !== 'string' || thought === '') return [];
    block.thought += thought;
    return this.#emit({ reasoning_content: thought });
  }

  #close(index: unknown): readonly ChatChunk[] {
    const block = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (!block) return [];
    // A tool call without input streams no input.
    if (block.tool !== undefined)
      return block.hasInput ? [] : this.#emit({ tool_calls: [{ index: block.tool, function: { arguments: '{}' } }] });
    const detail = thoughtOf(block.thought, block.signature, undefined);
    return detail ? this.#emit({ reasoning_details: [detail] }) : [];
  }

  #end(reason: string): readonly ChatChunk[] {
    if (this.#isOver) return [];
    const end = readEnd(reason, this.#hasContent, this.#called);
    this.#isOver = true;
    const first: ChatDelta = this.#hasRole ? {} : { role: 'assistant' };
    const chunk = deltaChunk(this.#head, first, { finish: end.finish_reason });
    return [end.finish ? { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, ...end })) } : chunk];
  }
}
