import {
  type ChatRequest,
  type DialectInput,
  type DialectNeed,
  type DialectRequest,
  GatewayError,
  isObject,
  type JsonObject,
  type ResponseFormat,
  readArray,
  readString,
  type ToolChoice,
} from '../../../contract/index.ts';
import { knownNames, tellUnknown } from '../kit/index.ts';
import { endsInTrigger, withoutForm } from './compaction.ts';
import { type Findings, type MessagePlace, readMessages } from './read-messages.ts';
import { readToolTable, type ToolTable } from './read-tools.ts';
import { calledName, FORMAT, INCLUDE_ENCRYPTED, isSet, SAME_FIELDS } from './tables.ts';
import type { ResponsesBody } from './types.ts';

/** Fields with the same name in the canonical request. */
const SAME = Object.freeze([...SAME_FIELDS, 'stream_options'] as const);

/** Fields that are read elsewhere, or have no meaning at other vendors and need no report. */
const SILENT: ReadonlySet<string> = new Set([
  ...SAME,
  ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'text', 'reasoning', 'include', 'stream', 'store'],
  ...['previous_response_id', 'max_output_tokens', 'top_logprobs', 'background', 'conversation', 'prompt'],
  ...['client_metadata', 'generate', '__proto__'],
]);

/** Default values of other fields. */
const NEUTRAL: Readonly<Record<string, unknown>> = Object.freeze({ truncation: 'disabled' });

/** Values of `include` that other vendors' responses also support. */
const INCLUDABLE: ReadonlySet<string> = new Set([INCLUDE_ENCRYPTED, 'message.output_text.logprobs']);

const PLAIN_NAME = /^[\w.-]{1,64}$/;

/** Reads a request of this format into the canonical form. Responses that it refers to were looked up before. */
export function readResponsesRequest({ body: sent }: DialectInput<ResponsesBody>): DialectRequest {
  const compacts = endsInTrigger(sent);
  const body = compacts ? withoutForm(sent) : sent;
  if (body['background'] === true)
    throw new GatewayError(
      'invalid_request',
      'Background responses are not supported. Remove `background` and stream.',
      {
        param: 'background',
      },
    );
  const findings: Findings = { needs: referencesOf(body), dropped: new Set() };
  const { messages, places } = readMessages(body, findings);
  if (messages.length === (compacts ? 1 : 0))
    throw new GatewayError(
      'invalid_request',
      '`input` must contain a message or another item that a model can respond to.',
      {
        param: 'input',
      },
    );
  const table = readToolTable(sent);
  const { choice, needs } = readToolChoice(body, table);
  for (const type of table.hosted) if (PLAIN_NAME.test(type)) findings.dropped.add(`tools.${type}`);
  for (const name of unknownNames(body)) findings.dropped.add(name);
  const own = ownFields(body, findings);
  const request: ChatRequest = {
    model: body.model,
    messages,
    ...fieldsOf(body),
    // A summary needs no tools.
    ...(table.tools.length > 0 && !compacts && { tools: table.tools }),
    ...(choice !== undefined && !compacts && { tool_choice: choice }),
    ...(Object.keys(own).length > 0 && { dialect_fields: { [FORMAT]: own } }),
  };
  return {
    request,
    needs: [...findings.needs, ...table.needs, ...needs],
    dropped: [...findings.dropped],
    place: createPlaces(places, table.places),
  };
}

/** Names of this format below the top level. Items of other types are read as a whole. */
const NAMES = knownNames({
  message: 'type role content id status phase',
  function_call: 'type id call_id name namespace arguments status',
  custom_tool_call: 'type id call_id name namespace input status',
  function_call_output: 'type id call_id name output status',
  custom_tool_call_output: 'type id call_id name output status',
  input_text: 'type text',
  output_text: 'type text annotations logprobs',
  text: 'type text annotations logprobs',
  refusal: 'type refusal',
  input_image: 'type image_url file_id detail',
  input_file: 'type file_id file_data file_url filename detail',
  input_audio: 'type input_audio',
  function: 'type name description parameters strict',
  custom: 'type name description format',
});

function unknownNames({ input, tools }: ResponsesBody): readonly string[] {
  const dropped: string[] = [];
  const tell = (items: unknown, at: string, usual = ''): void => {
    for (const item of readArray(items).filter(isObject)) {
      const { type, content, output } = item;
      tellUnknown(item, readString(type) ?? usual, NAMES, at, dropped);
      if (Array.isArray(content)) tell(content, `${at}.content`);
      if (Array.isArray(output)) tell(output, `${at}.output`);
    }
  };
  tell(input, 'input', 'message');
  tell(tools, 'tools');
  return dropped;
}

/** Resources of the operator's account that the body refers to. */
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

function responseFormat(format: Readonly<Record<string, unknown>>): ResponseFormat | undefined {
  const { type, ...definition } = format;
  if (type === 'json_object') return { type };
  if (type !== 'json_schema') return undefined;
  const reported = Object.entries(definition).filter(([, value]) => isSet(value));
  return { type, json_schema: { name: 'response', schema: {}, ...Object.fromEntries(reported) } };
}

/** Fields that only vendors of this format know, for codecs and hooks; reported as dropped at other targets. */
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

/** Suffixes of canonical paths that differ in this format. */
const ENDS: readonly (readonly [canonical: RegExp, own: string])[] = Object.freeze([
  [/^\.image_url(\.url)?$/, '.image_url'],
  [/^\.image_url\.detail$/, '.detail'],
  [/^\.file\./, '.'],
  [/^\.function\./, '.'],
]);

const MESSAGE = /^messages\[(\d+)\](?:\.(content|tool_calls)(?:\[(\d+)\])?)?(.*)$/;
const TOOL = /^tools\[(\d+)\](.*)$/;

/** Maps a path of the canonical request to the caller's body. */
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
 * Tool choice with canonical names. A vendor tool is required if the choice names one, or if it requires a tool and
 * only vendor tools remain. Any other vendor would respond to a different request.
 */
function readToolChoice({ tool_choice: choice }: ResponsesBody, { tools, hosted }: ToolTable): ReadChoice {
  if (choice === undefined || choice === null) return { needs: [] };
  if (typeof choice === 'string') {
    if (choice === 'required' && tools.length === 0 && hosted.length > 0) return onlyThere(hosted[0] ?? choice);
    // Vendors reject any tool choice without tools, even a neutral one.
    if (tools.length === 0 && choice !== 'required') return { needs: [] };
    return { choice: choice as ToolChoice, needs: [] };
  }
  if (choice['type'] === 'allowed_tools') return readAllowed(choice);
  const name = choiceName(choice);
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
    const name = choiceName(tool);
    return name === undefined ? [] : [functionChoice(name)];
  });
  if (tools.length === 0) return onlyThere(readString(named[0]?.['type']) ?? 'allowed_tools');
  const mode = choice['mode'] === 'required' ? 'required' : 'auto';
  return { choice: { type: 'allowed_tools', allowed_tools: { mode, tools } }, needs: [] };
}

function functionChoice(name: string): { readonly type: 'function'; readonly function: { readonly name: string } } {
  return { type: 'function', function: { name } };
}

function choiceName(tool: JsonObject): string | undefined {
  const { type, name } = tool;
  return typeof name === 'string' && (type === 'function' || type === 'custom') ? calledName(tool) : undefined;
}
