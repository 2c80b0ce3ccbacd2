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
  /** Form of its arguments: JSON text, text of a custom tool as JSON, or that text itself. */
  readonly kind: 'function' | 'custom as function' | 'custom';
  /** Arguments emitted so far. */
  written: string;
}

/** State of a stream. */
interface State {
  readonly rules: ReadingRules;
  head: ReturnType<typeof chunkHead>;
  readonly calls: Map<unknown, OpenCall>;
  /** Length of the text emitted so far, by reasoning item and message part. */
  readonly texts: Map<string, number>;
  hasRole: boolean;
  hasText: boolean;
  hasRefusal: boolean;
  /** True if another message has started, whose text must be separated from the previous one. */
  isNextMessage: boolean;
  isOver: boolean;
}

/** Decodes a stream of Responses events into canonical chunks; data that only a `done` event has is read from there. */
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

/**
 * Body to classify. An `error` event has its fields at the top level or in `error`, a failed response in its own
 * `error`.
 */
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

/** New text of an event; for a `done` event, the text that its deltas did not contain. */
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

/** Text of a message, separated from that of an earlier message of the same response. */
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
  // Arguments in the first event either precede those of the deltas or are complete; `done` shows which.
  if (kind !== 'custom') return { index: call.index, id, type: 'function', function: { name, arguments: '' } };
  // The canonical types lack this kind; it passes unchanged.
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

/** Converts a piece of plain input to a piece of the JSON text that contains it. */
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

/** End of an item: adds data missing from its other events, and reasoning data that the vendor requires back. */
function readDone(event: JsonObject, state: State): ChatDelta | undefined {
  const item = readObject(event['item']);
  if (item['type'] === 'reasoning') {
    const details = readReasoningItem(item);
    const isReported = [...state.texts.keys()].some((key) =>
      key.startsWith(`thought:${String(event['output_index'])}:`),
    );
    const text = isReported ? '' : details.flatMap((detail) => detail.text ?? []).join('\n\n');
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

/** Text of a message that no other event contained. */
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
 * Reads responses of vendors with OpenAI's Responses API. Throws only `StreamFailure`. `keepsCustomCalls` is for
 * requests whose custom tools were sent to the vendor as such. Otherwise their calls become calls of functions with
 * one argument, `input`. https://developers.openai.com/api/reference/resources/responses/streaming-events
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
