import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  type DialectInput,
  type DialectNeed,
  type DialectRequest,
  GatewayError,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  type ResponseFormat,
  readArray,
  readString,
  type ToolCall,
  type ToolChoice,
} from '../../../core/index.ts';
import {
  customArguments,
  INCLUDE_ENCRYPTED,
  namespacedName,
  SAME_FIELDS,
} from '../../formats/openai-responses/index.ts';
import { contentOf, type Findings, historyText, readContent } from './read-content.ts';
import { readToolTable, type ToolTable } from './read-tools.ts';
import { readReasoning } from './reasoning.ts';
import type { Item, MessagePlace, ResponsesBody } from './types.ts';

/** Fields that the canonical request has under the same name. */
const SAME = Object.freeze([...SAME_FIELDS, 'stream_options'] as const);

/** Fields that are read elsewhere, or mean nothing at other vendors and need not be told. */
const SILENT: ReadonlySet<string> = new Set([
  ...SAME,
  ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'text', 'reasoning', 'include', 'stream', 'store'],
  ...['previous_response_id', 'max_output_tokens', 'top_logprobs', 'background', 'conversation', 'prompt'],
  ...['client_metadata', 'generate', '__proto__'],
]);

/** Values of other fields that are the default. */
const NEUTRAL: Readonly<Record<string, unknown>> = Object.freeze({ truncation: 'disabled' });

/** What may be included that other vendors' responses can show too. */
const INCLUDABLE: ReadonlySet<string> = new Set([INCLUDE_ENCRYPTED, 'message.output_text.logprobs']);

const PLAIN_NAME = /^[\w.-]{1,64}$/;

/** A request in this format as a canonical one. What it refers to was looked up before. */
export function readRequest({ body }: DialectInput<ResponsesBody>): DialectRequest {
  if (body['background'] === true)
    throw new GatewayError(
      'invalid_request',
      'Responses in the background are not kept here. Leave `background` out, and stream.',
      {
        param: 'background',
      },
    );
  const findings: Findings = { needs: referencesOf(body), dropped: new Set() };
  const { messages, places } = readMessages(body, findings);
  if (messages.length === 0)
    throw new GatewayError('invalid_request', '`input` holds nothing that a model could respond to.', {
      param: 'input',
    });
  const table = readToolTable(body);
  const { choice, needs } = readToolChoice(body, table);
  for (const type of table.hosted) if (PLAIN_NAME.test(type)) findings.dropped.add(`tools.${type}`);
  const own = ownFields(body, findings);
  const request: ChatRequest = {
    model: body.model,
    messages,
    ...fieldsOf(body),
    ...(table.tools.length > 0 && { tools: table.tools }),
    ...(choice !== undefined && { tool_choice: choice }),
    ...(Object.keys(own).length > 0 && { dialect_fields: { responses: own } }),
  };
  return {
    request,
    needs: [...findings.needs, ...table.needs, ...needs],
    dropped: [...findings.dropped],
    place: createPlaces(places, table.places),
  };
}

/** Things in the operator's account that the body names as a whole. */
function referencesOf(body: ResponsesBody): DialectNeed[] {
  return ['conversation', 'prompt']
    .filter((name) => body[name] !== undefined && body[name] !== null)
    .map((name) => ({ kind: 'reference', name, param: name }));
}

function fieldsOf(body: ResponsesBody): JsonObject {
  const { text, reasoning, include, top_logprobs: top, stream } = body;
  const format = text?.format ? responseFormat(text.format) : undefined;
  const same = SAME.flatMap((name) => (isSet(body[name]) ? [[name, body[name]] as const] : []));
  return {
    ...Object.fromEntries(same),
    ...(stream === true && { stream }),
    ...(isSet(body.max_output_tokens) && { max_completion_tokens: body.max_output_tokens }),
    ...(format && { response_format: format }),
    ...(isSet(text?.verbosity) && { verbosity: text?.verbosity }),
    ...(isSet(reasoning?.effort) && { reasoning_effort: reasoning?.effort }),
    ...(include?.includes('message.output_text.logprobs') && { logprobs: true }),
    ...(typeof top === 'number' && top > 0 && { logprobs: true, top_logprobs: top }),
  };
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function responseFormat(format: Readonly<Record<string, unknown>>): ResponseFormat | undefined {
  const { type, ...definition } = format;
  if (type === 'json_object') return { type };
  if (type !== 'json_schema') return undefined;
  const told = Object.entries(definition).filter(([, value]) => isSet(value));
  return { type, json_schema: { name: 'response', schema: {}, ...Object.fromEntries(told) } };
}

/** Fields that only vendors of this format know, for codecs and hooks; told where a target is another one. */
function ownFields(body: ResponsesBody, { dropped }: Findings): JsonObject {
  const own: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) {
    if (SILENT.has(name) || !isSet(value)) continue;
    own[name] = value;
    if (value !== NEUTRAL[name] && PLAIN_NAME.test(name)) dropped.add(name);
  }
  const { effort: _effort, ...reasoning } = body.reasoning ?? {};
  if (Object.values(reasoning).some(isSet)) own['reasoning'] = reasoning;
  if (body.include?.some((name) => !INCLUDABLE.has(name))) dropped.add('include');
  return own;
}

const FIELDS: readonly (readonly [canonical: string, own: string])[] = Object.freeze([
  ['max_completion_tokens', 'max_output_tokens'],
  ['max_tokens', 'max_output_tokens'],
  ['reasoning_effort', 'reasoning.effort'],
  ['response_format.json_schema', 'text.format'],
  ['response_format', 'text.format'],
  ['verbosity', 'text.verbosity'],
]);

/** Ends of canonical places that this format writes otherwise. */
const ENDS: readonly (readonly [canonical: RegExp, own: string])[] = Object.freeze([
  [/^\.image_url(\.url)?$/, '.image_url'],
  [/^\.image_url\.detail$/, '.detail'],
  [/^\.file\./, '.'],
  [/^\.function\./, '.'],
]);

const MESSAGE = /^messages\[(\d+)\](?:\.(content|tool_calls)(?:\[(\d+)\])?)?(.*)$/;
const TOOL = /^tools\[(\d+)\](.*)$/;

/** Finds where a place of the canonical request stands in the caller's body. */
function createPlaces(messages: readonly MessagePlace[], tools: readonly string[]): (param: string) => string {
  return (param) => {
    const [, at, list, index, rest = ''] = MESSAGE.exec(param) ?? [];
    if (at !== undefined) {
      const place = messages[Number(at)];
      if (!place) return param;
      const places = list === 'tool_calls' ? place.calls : place.parts;
      const inner = list === undefined ? undefined : places[Number(index ?? 0)];
      return inner === undefined ? place.at + rest : inner + ending(rest);
    }
    const [, tool, after = ''] = TOOL.exec(param) ?? [];
    if (tool !== undefined) return (tools[Number(tool)] ?? `tools[${tool}]`) + ending(after);
    const field = FIELDS.find(([canonical]) => param === canonical || param.startsWith(`${canonical}.`));
    return field ? field[1] + param.slice(field[0].length) : param;
  };
}

function ending(rest: string): string {
  const found = ENDS.find(([canonical]) => canonical.test(rest));
  return found ? rest.replace(found[0], found[1]) : rest;
}

interface ReadChoice {
  readonly choice?: ToolChoice;
  readonly needs: readonly DialectNeed[];
}

/**
 * The tool choice, by canonical names. One that names a tool of the vendor, or wants some tool where only the vendor's are left,
 * needs a vendor that has them: without them the response would not be to what was requested.
 */
function readToolChoice({ tool_choice: choice }: ResponsesBody, { tools, hosted }: ToolTable): ReadChoice {
  if (choice === undefined || choice === null) return { needs: [] };
  if (typeof choice === 'string') {
    if (choice === 'required' && tools.length === 0 && hosted.length > 0) return onlyThere(hosted[0] ?? choice);
    // Vendors refuse a choice without tools, also one that says nothing.
    if (tools.length === 0 && choice !== 'required') return { needs: [] };
    return { choice: choice as ToolChoice, needs: [] };
  }
  if (choice['type'] === 'allowed_tools') return readAllowed(choice);
  const name = calledName(choice);
  return name === undefined
    ? onlyThere(readString(choice['type']) ?? 'tool')
    : { choice: functionChoice(name), needs: [] };
}

function onlyThere(name: string): ReadChoice {
  return { needs: [{ kind: 'native', name, param: 'tool_choice' }] };
}

function readAllowed(choice: JsonObject): ReadChoice {
  const named = readArray(choice['tools']).filter(isObject);
  const tools = named.flatMap((tool) => {
    const name = calledName(tool);
    return name === undefined ? [] : [functionChoice(name)];
  });
  if (tools.length === 0) return onlyThere(readString(named[0]?.['type']) ?? 'allowed_tools');
  const mode = choice['mode'] === 'required' ? 'required' : 'auto';
  return { choice: { type: 'allowed_tools', allowed_tools: { mode, tools } }, needs: [] };
}

function functionChoice(name: string): { readonly type: 'function'; readonly function: { readonly name: string } } {
  return { type: 'function', function: { name } };
}

function calledName(tool: JsonObject): string | undefined {
  const { type, namespace } = tool;
  const name = readString(tool['name']);
  if (name === undefined || (type !== 'function' && type !== 'custom')) return undefined;
  return namespacedName(readString(namespace), name);
}

interface ReadMessages {
  readonly messages: ChatMessage[];
  readonly places: MessagePlace[];
}

/** What an assistant did between two messages of others: items of this format, one message of chat's. */
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
  /** Reasoning that belongs to the item after it. */
  pending: readonly ReasoningDetail[];
}

/** The messages that a body's instructions and input come to. */
function readMessages(body: ResponsesBody, findings: Findings): ReadMessages {
  const reader: Reader = { messages: [], places: [], findings, turn: undefined, pending: [] };
  const { instructions, input } = body;
  if (typeof instructions === 'string' && instructions !== '')
    add(reader, { role: 'system', content: instructions }, 'instructions', ['instructions']);
  if (typeof input === 'string') add(reader, { role: 'user', content: input }, 'input', ['input']);
  else
    for (const [index, item] of readArray(input).entries())
      if (isObject(item)) readItem(reader, item, `input[${index}]`);
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
  // Its tools were read with the others.
  additional_tools: () => {},
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
  const id = readString(item['call_id']) ?? readString(item['id']) ?? '';
  const name = namespacedName(readString(item['namespace']), readString(item['name']) ?? '');
  const text = type === 'custom_tool_call' ? customArguments(textOf(input)) : textOf(given) || '{}';
  turn.order.push(`tool:${turn.calls.length}`);
  turn.calls.push({ id, type: 'function', function: { name, arguments: text } });
  turn.callPlaces.push(at);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

function addResult(reader: Reader, item: Item, at: string): void {
  const { output } = item;
  const isPlain = typeof output === 'string' || Array.isArray(output);
  const { parts, places } = readContent(isPlain ? output : textOf(output), `${at}.output`);
  const id = readString(item['call_id']) ?? '';
  add(reader, { role: 'tool', tool_call_id: id, content: contentOf(parts) }, at, places);
}

/** What tools of a vendor did, for models that do not have them: told as text where it is short. */
function addHistory(reader: Reader, item: Item, type: string, at: string): void {
  const text = type === 'compaction' || type === 'item_reference' ? undefined : historyText(item);
  if (text === undefined) reader.findings.dropped.add(`input.${plainName(type)}`);
  else if (/_(output|response)$/.test(type)) add(reader, { role: 'user', content: text }, at, [at]);
  else addPart(turnFor(reader, at), { type: 'text', text }, at);
}

/** Names that are told go into a header. */
function plainName(type: string): string {
  return /^[\w.-]{1,48}$/.test(type) ? type : 'unknown';
}

/** The turn that an assistant's item belongs to, with the reasoning before it; `isOther` tells that a new one begins with it. */
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
  // Reasoning that led to nothing: vendors refuse it without what follows, or read it as a turn of its own.
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
    ...(phase !== undefined && { dialect_fields: { responses: { phase } } }),
  };
  const isSilent = parts.length === 0 && (calls.length > 0 || refusal !== undefined);
  return { role: 'assistant', content: isSilent ? null : contentOf(parts), ...fields };
}
