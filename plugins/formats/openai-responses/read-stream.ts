import {
  type ChatChunk,
  type ChatCodec,
  type ChatDelta,
  type CodecCall,
  chunkHead,
  deltaChunk,
  isObject,
  type JsonObject,
  parseJson,
  readArray,
  readCount,
  readObject,
  readString,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
  type ToolCallDelta,
  usageChunk,
} from '../../../contract/index.ts';
import {
  BETWEEN_MESSAGES,
  type ClassifyFailure,
  type CostOf,
  finishOf,
  type ReadingRules,
  readAnnotations,
  readResponse,
  readResponsesUsage,
} from './read-response.ts';
import { readReasoningItem } from './reasoning.ts';
import { calledName, callIdOf, isCall } from './tables.ts';
import type { Item } from './types.ts';

interface OpenCall {
  readonly index: number;
  /** What its arguments are: JSON text, the text of a custom tool as JSON, or that text as it is. */
  readonly kind: 'function' | 'custom as function' | 'custom';
  /** Arguments that went out so far. */
  written: string;
}

/** What was read of one stream. */
interface State {
  readonly rules: ReadingRules;
  head: ReturnType<typeof chunkHead>;
  readonly calls: Map<unknown, OpenCall>;
  /** How much text of each item of reasoning, and of each part of a message, went out. */
  readonly texts: Map<string, number>;
  hasRole: boolean;
  hasText: boolean;
  hasRefusal: boolean;
  /** Whether another message has begun, whose text is to be kept apart from that of the one before. */
  isNextMessage: boolean;
  isOver: boolean;
}

/** Decodes one stream of Responses events into canonical chunks; what only a `done` event tells is taken from there. */
export function decodeResponsesStream(call: CodecCall, rules: ReadingRules): StreamDecoder {
  const state: State = {
    rules,
    head: chunkHead(call),
    calls: new Map(),
    texts: new Map(),
    hasRole: false,
    hasText: false,
    hasRefusal: false,
    isNextMessage: false,
    isOver: false,
  };
  return {
    push({ event: name, data }: SseEvent) {
      const event = state.isOver ? undefined : parseJson(data);
      if (!isObject(event)) return [];
      const type = readString(event['type']) ?? name ?? '';
      if (type === 'error' || type === 'response.failed') throw new StreamFailure(rules.classify(failureOf(event)));
      if (type === 'response.completed' || type === 'response.incomplete')
        return readEnd(readObject(event['response']), state);
      if (type === 'response.created') state.head = headOf(readObject(event['response']), state.head);
      const delta = READERS.get(type)?.(event, state);
      return delta ? [chunkOf(delta, state)] : [];
    },
    end: () => ({ chunks: [], complete: state.isOver }),
    progress: () => (state.isOver ? 'complete' : 'open'),
  };
}

/** The body to classify: an `error` event has its fields at the top or in `error`, a failed response in its own `error`. */
function failureOf(event: JsonObject): unknown {
  const { response } = event;
  if (isObject(response)) return { error: readObject(response['error']) };
  if (isObject(event['error'])) return event;
  const { type: _type, sequence_number: _number, ...error } = event;
  return { error };
}

function headOf(response: JsonObject, head: State['head']): State['head'] {
  return {
    id: readString(response['id']) ?? head.id,
    model: readString(response['model']) ?? head.model,
    created: readCount(response['created_at']) || head.created,
  };
}

function chunkOf(delta: ChatDelta, state: State): ChatChunk {
  const first = state.hasRole ? {} : { role: 'assistant' as const };
  state.hasRole = true;
  return deltaChunk(state.head, { ...first, ...delta });
}

type ReadEvent = (event: JsonObject, state: State) => ChatDelta | undefined;

const READERS: ReadonlyMap<string, ReadEvent> = new Map<string, ReadEvent>([
  ['response.output_item.added', readAdded],
  ['response.output_item.done', readDone],
  ['response.output_text.delta', (event, state) => textDelta('content', event, state, event['delta'])],
  ['response.output_text.done', (event, state) => textDelta('content', event, state, event['text'], true)],
  ['response.refusal.delta', readRefusal],
  ['response.refusal.done', readRefusal],
  ['response.reasoning_summary_text.delta', (event, state) => textDelta('thought', event, state, event['delta'])],
  ['response.reasoning_summary_text.done', (event, state) => textDelta('thought', event, state, event['text'], true)],
  ['response.reasoning_text.delta', (event, state) => textDelta('thought', event, state, event['delta'])],
  ['response.reasoning_text.done', (event, state) => textDelta('thought', event, state, event['text'], true)],
  ['response.output_text.annotation.added', readAnnotation],
  ['response.function_call_arguments.delta', readArguments],
  ['response.function_call_arguments.done', readArguments],
  ['response.custom_tool_call_input.delta', readArguments],
  ['response.custom_tool_call_input.done', readArguments],
]);

/** The text that an event adds; of a `done` event what its deltas have not told. */
function newText(kind: string, event: JsonObject, state: State, value: unknown, isWhole: boolean): string {
  const text = readString(value) ?? '';
  const key = [kind, event['output_index'], event['content_index'], event['summary_index']].join(':');
  const before = state.texts.get(key) ?? 0;
  const added = isWhole ? text.slice(before) : text;
  state.texts.set(key, before + added.length);
  return added;
}

function textDelta(
  kind: 'content' | 'thought',
  event: JsonObject,
  state: State,
  value: unknown,
  isWhole = false,
): ChatDelta | undefined {
  const text = newText(kind, event, state, value, isWhole);
  if (text === '') return undefined;
  return kind === 'content' ? { content: separated(text, state) } : { reasoning_content: text };
}

/** Text of a message, kept apart from that of an earlier message of the same response. */
function separated(text: string, state: State): string {
  const between = state.isNextMessage ? BETWEEN_MESSAGES : '';
  state.isNextMessage = false;
  state.hasText = true;
  return between + text;
}

function readRefusal(event: JsonObject, state: State): ChatDelta | undefined {
  const isWhole = event['delta'] === undefined;
  const text = newText('refusal', event, state, isWhole ? event['refusal'] : event['delta'], isWhole);
  if (text === '') return undefined;
  state.hasRefusal = true;
  return { refusal: text };
}

function readAnnotation(event: JsonObject): ChatDelta | undefined {
  const annotations = readAnnotations([event['annotation']]);
  return annotations.length > 0 ? { annotations } : undefined;
}

function readAdded(event: JsonObject, state: State): ChatDelta | undefined {
  const item = readObject(event['item']);
  if (item['type'] === 'message') state.isNextMessage = state.hasText;
  return isCall(item) ? { tool_calls: [openCall(event, item, state)] } : undefined;
}

function openCall({ output_index: at }: JsonObject, item: Item, { calls, rules }: State): ToolCallDelta {
  const isCustom = item['type'] === 'custom_tool_call';
  const kind = !isCustom ? 'function' : rules.keepsCustomCalls ? 'custom' : 'custom as function';
  const call: OpenCall = { index: calls.size, kind, written: '' };
  calls.set(at, call);
  const [id, name] = [callIdOf(item), calledName(item)];
  // Arguments in the first event are those that deltas go on to bring, or all there are: `done` says which.
  if (kind !== 'custom') return { index: call.index, id, type: 'function', function: { name, arguments: '' } };
  // The kind is not one of the canonical types; it passes as it is.
  const custom: JsonObject = { id, type: 'custom', custom: { name, input: '' } };
  return { ...custom, index: call.index };
}

const CUSTOM_OPENING = '{"input":"';
const CUSTOM_END = '"}';

function readArguments(event: JsonObject, state: State): ChatDelta | undefined {
  const call = state.calls.get(event['output_index']);
  if (!call) return undefined;
  const delta = readString(event['delta']);
  if (delta !== undefined) return write(call, call.kind === 'custom as function' ? customDelta(call, delta) : delta);
  const all = allArguments(call, event);
  return all === undefined ? undefined : write(call, all.slice(call.written.length));
}

/** A piece of plain input as a piece of the JSON text that has it. */
function customDelta({ written }: OpenCall, delta: string): string {
  return (written === '' ? CUSTOM_OPENING : '') + JSON.stringify(delta).slice(1, -1);
}

function allArguments({ kind }: OpenCall, { input, arguments: given }: JsonObject): string | undefined {
  if (kind === 'function') return readString(given);
  if (kind === 'custom' || typeof input !== 'string') return readString(input);
  return CUSTOM_OPENING + JSON.stringify(input).slice(1, -1) + CUSTOM_END;
}

function write(call: OpenCall, text: string): ChatDelta | undefined {
  if (text === '') return undefined;
  call.written += text;
  const { index } = call;
  return {
    tool_calls: [
      call.kind === 'custom' ? { index, custom: { input: text } } : { index, function: { arguments: text } },
    ],
  };
}

/** The end of an item: what its other events left out, and what the vendor needs back of its reasoning. */
function readDone(event: JsonObject, state: State): ChatDelta | undefined {
  const item = readObject(event['item']);
  if (item['type'] === 'reasoning') {
    const details = readReasoningItem(item);
    const isTold = [...state.texts.keys()].some((key) => key.startsWith(`thought:${String(event['output_index'])}:`));
    const text = isTold ? '' : details.flatMap((detail) => detail.text ?? []).join('\n\n');
    if (details.length === 0) return undefined;
    return { ...(text !== '' && { reasoning_content: text }), reasoning_details: details };
  }
  if (item['type'] === 'message') return readMissing(event, item, state);
  if (!isCall(item)) return undefined;
  const opened = state.calls.has(event['output_index']) ? undefined : openCall(event, item, state);
  const rest =
    item['status'] === 'incomplete' ? undefined : readArguments({ ...event, ...item, delta: undefined }, state);
  return opened ? { tool_calls: [opened, ...(rest?.tool_calls ?? [])] } : rest;
}

/** Text of a message that came in no other event. */
function readMissing(event: JsonObject, item: JsonObject, state: State): ChatDelta | undefined {
  const texts = readArray(item['content']).map((part, index) => {
    const { type, text } = readObject(part);
    return type === 'output_text' ? newText('content', { ...event, content_index: index }, state, text, true) : '';
  });
  const content = texts.join('');
  return content === '' ? undefined : { content: separated(content, state) };
}

function readEnd(response: JsonObject, state: State): readonly ChatChunk[] {
  state.isOver = true;
  state.head = headOf(response, state.head);
  const called = [...state.calls.values()].map(({ kind, written }) => (kind === 'custom' ? '' : written));
  const end = finishOf(response, called, state.hasRefusal);
  const usage = readResponsesUsage(response, state.rules.costOf);
  const { choices, ...last } = deltaChunk(state.head, state.hasRole ? {} : { role: 'assistant' }, {
    finish: end.finish_reason,
  });
  const tier = readString(response['service_tier']);
  return [
    {
      ...last,
      choices: choices.map((choice) => ({ ...choice, ...end })),
      ...(tier !== undefined && { service_tier: tier }),
    },
    ...(usage ? [usageChunk(state.head, usage)] : []),
  ];
}

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
