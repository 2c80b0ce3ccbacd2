import {
  type ChatResponse,
  type CodecCall,
  isCount,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readCount,
  readObject,
  readString,
  StreamFailure,
  type ToolCall,
  type UpstreamFailure,
  type Usage,
} from '../../../contract/index.ts';
import { type ChoiceEnd, unmappedEnd } from '../unmapped-end.ts';
import { readReasoningItem } from './reasoning.ts';
import { calledName, callIdOf, customArguments, INCOMPLETE, isCall } from './tables.ts';
import type { Item } from './types.ts';

/** Classifies a vendor's failure: an error body, or the `error` of a response or an event. */
export type ClassifyFailure = (body: unknown) => UpstreamFailure;

/** Returns the vendor's own cost of a call in US dollars. */
export type CostOf = (usage: JsonObject) => number | undefined;

export interface ReadingRules {
  readonly classify: ClassifyFailure;
  readonly costOf?: CostOf | undefined;
  /**
   * True to return calls of custom tools as chat's calls of type `custom`, for requests with such tools. Otherwise
   * they become calls of a function with one argument, `input`, which every format supports.
   */
  readonly keepsCustomCalls?: boolean;
}

interface Read {
  readonly order: string[];
  readonly details: ReasoningDetail[];
  readonly calls: ToolCall[];
  readonly annotations: JsonObject[];
  text: string | undefined;
  refusal: string | undefined;
}

/** Separator between the texts of two messages of one response. */
export const BETWEEN_MESSAGES = '\n\n';

/** States of an unfinished response. */
const NOT_ENDED: ReadonlySet<unknown> = new Set(['queued', 'in_progress', 'cancelled']);

/** Reads a non-streaming response into the canonical shape. */
export function readResponse(body: unknown, call: CodecCall, rules: ReadingRules): ChatResponse {
  const response = readObject(body);
  if (isObject(response['error']) || response['status'] === 'failed') throw new StreamFailure(rules.classify(body));
  if (!Array.isArray(response['output'])) throw malformed('The provider returned a response without `output`.');
  if (NOT_ENDED.has(response['status'])) throw malformed('The provider returned an unfinished response.');
  const read: Read = { order: [], details: [], calls: [], annotations: [], text: undefined, refusal: undefined };
  for (const item of response['output']) if (isObject(item)) readItem(item, read, rules);
  const { order, details, calls, annotations, text, refusal } = read;
  const called = calls.map((each) => readString(readObject(each.function)['arguments']) ?? '');
  const end = finishOf(response, called, refusal !== undefined);
  const usage = readResponsesUsage(response, rules.costOf);
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
        ...end,
        logprobs: null,
      },
    ],
    ...(usage && { usage }),
    ...(tier !== undefined && { service_tier: tier }),
  };
}

function malformed(message: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message });
}

function readItem(item: Item, read: Read, rules: ReadingRules): void {
  if (item['type'] === 'reasoning') {
    for (const detail of readReasoningItem(item)) {
      read.order.push(`reasoning:${read.details.length}`);
      read.details.push(detail);
    }
  } else if (isCall(item)) {
    read.order.push(`tool:${read.calls.length}`);
    read.calls.push(readCall(item, rules));
  } else if (item['type'] === 'message') {
    if (read.text) read.text += BETWEEN_MESSAGES;
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

function readCall(item: Item, { keepsCustomCalls }: ReadingRules): ToolCall {
  const { type, input, arguments: given } = item;
  const [id, name] = [callIdOf(item), calledName(item)];
  const plain = readString(input) ?? '';
  if (type !== 'custom_tool_call')
    return { id, type: 'function', function: { name, arguments: readString(given) ?? '{}' } };
  if (!keepsCustomCalls) return { id, type: 'function', function: { name, arguments: customArguments(plain) } };
  // A kind of call that OpenAI has and the canonical types lack; it passes unchanged.
  const custom: JsonObject = { id, type: 'custom', custom: { name, input: plain } };
  return custom as JsonObject & ToolCall;
}

/** Citations in chat's form, which wraps their fields in an object. */
export function readAnnotations(list: unknown): readonly JsonObject[] {
  return readArray(list).flatMap((given) => {
    const { type, ...fields } = readObject(given);
    return type === 'url_citation' || type === 'file_citation' ? [{ type, [type]: fields }] : [];
  });
}

/** End of a response by its status and content; `called` holds the arguments of its calls, as text. */
export function finishOf(response: JsonObject, called: readonly string[], refused: boolean): ChoiceEnd {
  const status = readString(response['status']) ?? 'completed';
  const reason = readString(readObject(response['incomplete_details'])['reason']);
  const finish = { native: reason ?? status };
  if (status === 'incomplete') {
    const known = reason === undefined ? 'length' : Object.entries(INCOMPLETE).find(([name]) => name === reason)?.[1];
    // The vendor considers it a response, even without content.
    return known ? { finish_reason: known, finish } : unmappedEnd(reason ?? status, true, called);
  }
  if (status !== 'completed') return unmappedEnd(status, true, called);
  if (refused) return { finish_reason: 'content_filter', finish };
  return { finish_reason: called.length > 0 ? 'tool_calls' : 'stop', finish };
}

/** Usage of a response with canonical names; undefined for missing or invalid counts. */
export function readResponsesUsage(response: JsonObject, costOf?: CostOf): Usage | undefined {
  const { usage: value, output: items, tool_usage: tools } = response;
  if (!isObject(value)) return undefined;
  const { input_tokens: input, output_tokens: output, input_tokens_details: read } = value;
  const prompt = input ?? 0;
  const completion = output ?? 0;
  if ((input ?? output ?? null) === null || !isCount(prompt) || !isCount(completion)) return undefined;
  const { cached_tokens: cached, cache_write_tokens: written, audio_tokens: audio } = readObject(read);
  const { reasoning_tokens: reasoning, audio_tokens: spoken } = readObject(value['output_tokens_details']);
  const cost = costOf?.(value);
  const units = unitsOf(readArray(items), readObject(tools));
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      ...(isCount(cached) && { cached_tokens: cached }),
      ...(isCount(written) && written > 0 && { cache_write_tokens: written }),
      ...(isCount(audio) && audio > 0 && { audio_tokens: audio }),
    },
    ...((isCount(reasoning) || isCount(spoken)) && {
      completion_tokens_details: {
        ...(isCount(reasoning) && { reasoning_tokens: reasoning }),
        ...(isCount(spoken) && spoken > 0 && { audio_tokens: spoken }),
      },
    }),
    ...(cost !== undefined && { cost }),
    ...(units && { units }),
  };
}

/** Billing unit of each kind of vendor tool item. Source: https://developers.openai.com/api/docs/pricing */
const UNITS: ReadonlyMap<unknown, string> = new Map([
  ['web_search_call', 'web_search_requests'],
  ['file_search_call', 'file_search_requests'],
  ['code_interpreter_call', 'code_interpreter_calls'],
  ['image_generation_call', 'images'],
]);

/** Returns the billed units of a response's items, and of tools that `tool_usage` counts without an item. */
function unitsOf(items: readonly unknown[], tools: JsonObject): Usage['units'] {
  const units: Record<string, number> = {};
  for (const item of items) {
    const { type, action } = readObject(item);
    const unit = UNITS.get(type);
    // Opening a page from the results is not a search.
    const isSearch = (readString(readObject(action)['type']) ?? 'search') === 'search';
    if (unit !== undefined && isSearch) units[unit] = (units[unit] ?? 0) + 1;
  }
  const { image_gen: drawn, web_search: searched } = tools;
  if (units['images'] === undefined && Object.values(readObject(drawn)).some(isPositive)) units['images'] = 1;
  const { num_requests: searches } = readObject(searched);
  if (units['web_search_requests'] === undefined && isPositive(searches)) units['web_search_requests'] = searches;
  return Object.keys(units).length > 0 ? units : undefined;
}

function isPositive(value: unknown): value is number {
  return isCount(value) && value > 0;
}
