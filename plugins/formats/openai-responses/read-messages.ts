import {
  type ChatMessage,
  type ContentPart,
  type DialectNeed,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type ToolCall,
  writeJson,
} from '../../../contract/index.ts';
import { COMPACT_PROMPT, endsInTrigger, summaryOf } from './compaction.ts';
import { readReasoning } from './reasoning.ts';
import {
  calledName,
  callIdOf,
  customArguments,
  FORMAT,
  namespacedName,
  TOOL_SEARCH,
  TOOL_SEARCH_OUTPUT,
} from './tables.ts';
import type { Item, ResponsesBody } from './types.ts';

/** Results of reading a body, in addition to messages. */
export interface Findings {
  readonly needs: DialectNeed[];
  readonly dropped: Set<string>;
}

interface ReadParts {
  readonly parts: readonly ContentPart[];
  /** Path of each part. */
  readonly places: readonly string[];
  readonly refusal?: string;
}

const DETAILS: ReadonlySet<unknown> = new Set(['auto', 'low', 'high']);

/** Content of a message or of a tool output: a text, or parts. */
function readContent(content: unknown, at: string): ReadParts {
  if (typeof content === 'string') return { parts: [{ type: 'text', text: content }], places: [at] };
  const parts: ContentPart[] = [];
  const places: string[] = [];
  const refusals: string[] = [];
  for (const [index, part] of readArray(content).entries()) {
    if (!isObject(part)) continue;
    const place = `${at}[${index}]`;
    if (part['type'] === 'refusal') refusals.push(readString(part['refusal']) ?? '');
    else {
      parts.push(readPart(part));
      places.push(place);
    }
  }
  return { parts, places, ...(refusals.length > 0 && { refusal: refusals.join('') }) };
}

function readPart(part: JsonObject): ContentPart {
  const { type, text, detail } = part;
  if (type === 'input_text' || type === 'output_text' || type === 'text')
    return { type: 'text', text: readString(text) ?? '' };
  if (type === 'input_image' && typeof part['image_url'] === 'string') {
    const wanted = detail === 'original' ? 'high' : detail;
    return {
      type: 'image_url',
      image_url: { url: part['image_url'], ...(DETAILS.has(wanted) && { detail: String(wanted) }) },
    };
  }
  // LangChain writes images in its older form as chat does.
  if (type === 'image_url' && typeof readObject(part['image_url'])['url'] === 'string')
    return { type: 'image_url', image_url: readObject(part['image_url']) };
  if (type === 'input_file' && (typeof part['file_data'] === 'string' || typeof part['file_url'] === 'string'))
    return { type: 'file', file: pickStrings(part, ['filename', 'file_data', 'file_url']) };
  if (type === 'input_audio') return { type: 'input_audio', input_audio: readObject(part['input_audio']) };
  return { type: 'opaque', dialect: FORMAT, value: part };
}

function pickStrings(part: JsonObject, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = readString(part[name]);
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

/** Converts parts to canonical content: a single plain text becomes a string. */
function contentOf(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const [first] = parts;
  if (first === undefined) return '';
  const isText = parts.length === 1 && first.type === 'text' && Object.keys(first).length === 2;
  return isText ? String(first['text']) : parts;
}

/** Maximum text length of an item of another kind. */
const MAX_TEXT = 4096;

/** Result of a vendor tool as text, for models without that tool; undefined if it is too long. */
function historyText(item: Item): string | undefined {
  const { id: _id, encrypted_content: _secret, ...rest } = item;
  const text = writeJson(rest);
  return Buffer.byteLength(text) <= MAX_TEXT ? text : undefined;
}

/** Path of a canonical message in the caller's body, with those of its parts and calls. */
export interface MessagePlace {
  readonly at: string;
  readonly parts: readonly string[];
  readonly calls: readonly string[];
}

interface ReadMessages {
  readonly messages: ChatMessage[];
  readonly places: MessagePlace[];
}

/** Assistant items between two messages of others, which form one chat message. */
interface Turn {
  readonly at: string;
  readonly parts: ContentPart[];
  readonly partPlaces: string[];
  readonly calls: ToolCall[];
  readonly callPlaces: string[];
  readonly details: ReasoningDetail[];
  readonly order: string[];
  refusal?: string;
  phase?: string;
}

interface Reader extends ReadMessages {
  readonly findings: Findings;
  turn: Turn | undefined;
  /** Reasoning that belongs to the next item. */
  pending: readonly ReasoningDetail[];
}

/** Reads instructions and input of a body as messages. */
export function readMessages(body: ResponsesBody, findings: Findings): ReadMessages {
  const reader: Reader = { messages: [], places: [], findings, turn: undefined, pending: [] };
  const { instructions, input } = body;
  if (typeof instructions === 'string' && instructions !== '')
    add(reader, { role: 'system', content: instructions }, 'instructions', ['instructions']);
  if (typeof input === 'string') add(reader, { role: 'user', content: input }, 'input', ['input']);
  else
    for (const [index, item] of readArray(input).entries())
      if (isObject(item)) readItem(reader, item, `input[${index}]`);
  if (endsInTrigger(body)) add(reader, { role: 'user', content: COMPACT_PROMPT }, 'input', ['input']);
  endTurn(reader);
  return reader;
}

function add(reader: Reader, message: ChatMessage, at: string, parts: readonly string[] = []): void {
  endTurn(reader);
  reader.messages.push(message);
  reader.places.push({ at, parts, calls: [] });
}

type ReadItem = (reader: Reader, item: Item, at: string) => void;

const READERS: Readonly<Record<string, ReadItem>> = Object.freeze({
  message: readMessage,
  reasoning(reader, item) {
    reader.pending = [...reader.pending, ...readReasoning(item)];
  },
  function_call: addCall,
  custom_tool_call: addCall,
  function_call_output: addResult,
  custom_tool_call_output: addResult,
  tool_search_call(reader, item, at) {
    if (item['execution'] === 'client') addCall(reader, { ...item, name: TOOL_SEARCH }, at);
    else addHistory(reader, item, 'tool_search_call', at);
  },
  tool_search_output(reader, item, at) {
    if (item['execution'] === 'client') addFound(reader, item, at);
    else addHistory(reader, item, TOOL_SEARCH_OUTPUT, at);
  },
  // Its tools were read with the others.
  additional_tools: () => {},
  compaction(reader, item, at) {
    const summary = summaryOf(item);
    if (summary === undefined) reader.findings.needs.push({ kind: 'native', name: 'compaction', param: at });
    else add(reader, { role: 'user', content: summary }, at, [at]);
  },
  // A trigger at the end of the input is read separately. The results of earlier ones follow them.
  compaction_trigger: () => {},
});

function readItem(reader: Reader, item: Item, at: string): void {
  const type = readString(item['type']) ?? 'message';
  const read = Object.hasOwn(READERS, type) ? READERS[type] : undefined;
  if (read) read(reader, item, at);
  else addHistory(reader, item, type, at);
}

function readMessage(reader: Reader, item: Item, at: string): void {
  const { parts, places, refusal } = readContent(item['content'], `${at}.content`);
  const { role } = item;
  if (role !== 'assistant') {
    const known = role === 'system' || role === 'developer' ? role : 'user';
    add(reader, { role: known, content: contentOf(parts) }, at, places);
    return;
  }
  const turn = turnFor(reader, at, (open) => open.parts.length > 0 && open.calls.length === 0);
  for (const [index, part] of parts.entries()) addPart(turn, part, places[index] ?? at);
  if (refusal !== undefined) turn.refusal = (turn.refusal ?? '') + refusal;
  const phase = readString(item['phase']);
  if (phase !== undefined) turn.phase = phase;
}

function addPart(turn: Turn, part: ContentPart, place: string): void {
  turn.order.push(`content:${turn.parts.length}`);
  turn.parts.push(part);
  turn.partPlaces.push(place);
}

function addCall(reader: Reader, item: Item, at: string): void {
  const turn = turnFor(reader, at);
  const { type, input, arguments: given } = item;
  const text = type === 'custom_tool_call' ? customArguments(textOf(input)) : textOf(given) || '{}';
  turn.order.push(`tool:${turn.calls.length}`);
  turn.calls.push({ id: callIdOf(item), type: 'function', function: { name: calledName(item), arguments: text } });
  turn.callPlaces.push(at);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : writeJson(value);
}

function addResult(reader: Reader, item: Item, at: string): void {
  const { output } = item;
  const isPlain = typeof output === 'string' || Array.isArray(output);
  const { parts, places } = readContent(isPlain ? output : textOf(output), `${at}.output`);
  const id = readString(item['call_id']) ?? '';
  add(reader, { role: 'tool', tool_call_id: id, content: contentOf(parts) }, at, places);
}

/** Adds the result of a search of the caller: names and descriptions. The tools are among those of the request. */
function addFound(reader: Reader, item: Item, at: string): void {
  const found = readArray(item['tools'])
    .filter(isObject)
    .flatMap((tool) => describe(tool));
  const content = writeJson({ tools: found });
  add(reader, { role: 'tool', tool_call_id: readString(item['call_id']) ?? '', content }, at, [`${at}.tools`]);
}

function describe(tool: JsonObject, namespace?: string): readonly JsonObject[] {
  const { type, name, description, tools } = tool;
  if (type === 'namespace' && namespace === undefined)
    return readArray(tools)
      .filter(isObject)
      .flatMap((each) => describe(each, readString(name)));
  const full = namespacedName(namespace, readString(name) ?? String(type));
  return [{ name: full, ...(typeof description === 'string' && { description }) }];
}

/** Adds results of vendor tools as text if they are short, for models without these tools. */
function addHistory(reader: Reader, item: Item, type: string, at: string): void {
  const text = type === 'item_reference' ? undefined : historyText(item);
  if (text === undefined) reader.findings.dropped.add(`input.${plainName(type)}`);
  else if (/_(output|response)$/.test(type)) add(reader, { role: 'user', content: text }, at, [at]);
  else addPart(turnFor(reader, at), { type: 'text', text }, at);
}

/** Restricts a reported name to characters that are valid in a header. */
function plainName(type: string): string {
  return /^[\w.-]{1,48}$/.test(type) ? type : 'unknown';
}

/** Turn of an assistant's item, with the reasoning before it; `isOther` returns true if the item starts a new turn. */
function turnFor(reader: Reader, at: string, isOther: (open: Turn) => boolean = () => false): Turn {
  const { pending } = reader;
  if (reader.turn && isOther(reader.turn)) {
    reader.pending = [];
    endTurn(reader);
  }
  reader.turn ??= { at, parts: [], partPlaces: [], calls: [], callPlaces: [], details: [], order: [] };
  addDetails(reader.turn, pending);
  reader.pending = [];
  return reader.turn;
}

function addDetails(turn: Turn, details: readonly ReasoningDetail[]): void {
  for (const detail of details) {
    turn.order.push(`reasoning:${turn.details.length}`);
    turn.details.push(detail);
  }
}

function endTurn(reader: Reader): void {
  const { turn, pending } = reader;
  reader.turn = undefined;
  reader.pending = [];
  // Reasoning without a following item: vendors reject it, or read it as a separate turn.
  if (!turn) {
    if (pending.length > 0) reader.findings.dropped.add('input.reasoning');
    return;
  }
  addDetails(turn, pending);
  reader.messages.push(messageOf(turn));
  reader.places.push({ at: turn.at, parts: turn.partPlaces, calls: turn.callPlaces });
}

const RANK: Readonly<Record<string, number>> = Object.freeze({ reasoning: 0, content: 1, tool: 2 });

function messageOf({ parts, calls, details, order, refusal, phase }: Turn): ChatMessage {
  const ranks = order.map((place) => RANK[place.split(':')[0] ?? ''] ?? 0);
  const isUsual = ranks.every((rank, at) => at === 0 || rank >= (ranks[at - 1] ?? 0));
  const thoughts = details.flatMap(({ text }) => text ?? []).join('\n\n');
  const fields: JsonObject = {
    ...(refusal !== undefined && { refusal }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(thoughts !== '' && { reasoning_content: thoughts }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(!isUsual && { order }),
    ...(phase !== undefined && { dialect_fields: { [FORMAT]: { phase } } }),
  };
  const isSilent = parts.length === 0 && (calls.length > 0 || refusal !== undefined);
  return { role: 'assistant', content: isSilent ? null : contentOf(parts), ...fields };
}
