import {
  type ChatRequest,
  type DialectInput,
  type DialectRequest,
  GatewayError,
  isGatewayError,
  isObject,
  type JsonObject,
  MAX_MESSAGES,
  readArray,
  readString,
  type Schema,
  writeJson,
} from '../../../contract/index.ts';
import { invalid, knownNames, tellUnknown } from '../kit/index.ts';
import { assertNoServers } from '../kit/servers.ts';
import { isReference } from './read-contents.ts';
import { readGemini } from './read-request.ts';
import { isPacked } from './signatures.ts';
import type { GeminiPart } from './types.ts';

/**
 * Google's Interactions API. Client requests become contents of generateContent, whose reader converts them to a
 * chat. Sources: https://ai.google.dev/gemini-api/docs/interactions, its types in @google/genai 2.32.0.
 */

/** Request body. Unlike generateContent's, it has one spelling. */
export type InteractionBody = JsonObject;

/** Step of an interaction: user or model output, a thought, a call, or a result. */
export type Step = JsonObject;

const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });
const text = nullable('string');
const id = nullable('string', { maxLength: 4096 });
const parts: Schema = { type: ['array', 'object', 'string', 'null'], items: { type: 'object' }, maxItems: 2048 };

const step: Schema = {
  type: 'object',
  properties: {
    type: nullable('string', { maxLength: 64 }),
    role: nullable('string', { maxLength: 16 }),
    content: parts,
    summary: nullable('array', { items: { type: 'object' } }),
    signature: text,
    id,
    call_id: id,
    name: nullable('string', { maxLength: 256 }),
    arguments: nullable('object'),
    is_error: nullable('boolean'),
    text,
    data: text,
    uri: text,
    mime_type: text,
  },
};

export const INTERACTION_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:InteractionRequest',
  examples: [{ model: 'echo/echo', input: 'Hello there' }],
  type: 'object',
  properties: {
    model: nullable('string', { minLength: 1, maxLength: 256 }),
    agent: nullable('string', { maxLength: 256, description: 'Rejected: agents that Google runs are not supported.' }),
    input: { type: ['string', 'array', 'object', 'null'], items: step, maxItems: MAX_MESSAGES },
    previous_interaction_id: nullable('string', { maxLength: 256 }),
    system_instruction: text,
    tools: nullable('array', {
      maxItems: 1024,
      items: {
        type: 'object',
        required: ['type'],
        properties: {
          type: { type: 'string', minLength: 1, maxLength: 64 },
          name: nullable('string', { maxLength: 256 }),
          description: text,
          parameters: nullable('object'),
        },
      },
    }),
    generation_config: nullable('object', {
      properties: {
        max_output_tokens: nullable('integer', { minimum: 1, maximum: 2_147_483_647 }),
        temperature: nullable('number', { minimum: 0, maximum: 2 }),
        top_p: nullable('number', { minimum: 0, maximum: 1 }),
        seed: nullable('integer', { minimum: -2_147_483_648, maximum: 2_147_483_647 }),
        stop_sequences: nullable('array', { items: { type: 'string' }, maxItems: 16 }),
        thinking_level: nullable('string', { maxLength: 32 }),
        thinking_summaries: nullable('string', { maxLength: 32 }),
        tool_choice: { type: ['string', 'object', 'null'] },
      },
    }),
    response_format: { type: ['object', 'array', 'null'], items: { type: 'object' }, maxItems: 8 },
    response_mime_type: nullable('string', { maxLength: 128 }),
    response_modalities: nullable('array', { items: { type: 'string', maxLength: 32 }, maxItems: 8 }),
    service_tier: nullable('string', { maxLength: 64 }),
    stream: nullable('boolean'),
    store: nullable('boolean'),
    background: nullable('boolean'),
    labels: nullable('object'),
  },
});

/** Unsupported fields with the alternative for each. */
const REFUSED: Readonly<Record<string, string>> = Object.freeze({
  agent: 'is an agent that Google runs, which is not supported; use `model`',
  agent_config: 'is for agents that Google runs, which are not supported; remove it',
  background: 'is not supported, since the gateway does not run requests in the background; remove it and stream',
  cached_content: 'is stored in the operator’s account, which all callers share; send the content itself',
  continuation_token:
    'refers to an interaction outside this gateway; send `previous_interaction_id`, or all steps as `input`',
  environment: 'is a machine that Google runs, which is not supported; remove it',
  webhook_config: 'is not supported, since webhooks could call any address; remove it and wait for the response',
});

const READ: ReadonlySet<string> = new Set([
  ...['model', 'input', 'previous_interaction_id', 'system_instruction', 'tools', 'generation_config'],
  ...['response_format', 'response_mime_type', 'response_modalities', 'service_tier', 'stream', 'store'],
  ...Object.keys(REFUSED),
]);

/** Fields of `generation_config` by their names in generateContent. */
const CONFIG: Readonly<Record<string, string>> = Object.freeze({
  max_output_tokens: 'maxOutputTokens',
  temperature: 'temperature',
  top_p: 'topP',
  seed: 'seed',
  stop_sequences: 'stopSequences',
});
const CONFIG_READ: ReadonlySet<string> = new Set([
  ...Object.keys(CONFIG),
  ...['thinking_level', 'thinking_summaries', 'tool_choice'],
]);

/** Google's service tiers that have another name elsewhere. */
const TIERS: Readonly<Record<string, string>> = Object.freeze({ standard: 'default' });

/** Returns true if the caller wants to read the model's thoughts. */
export function wantsSummaries({ generation_config: config }: InteractionBody): boolean {
  return isObject(config) && config['thinking_summaries'] === 'auto';
}

/** Reads a request for an interaction into a canonical one. The interaction that it continues was looked up before. */
export function readInteraction(input: DialectInput<InteractionBody>): DialectRequest {
  const { body } = input;
  for (const [name, words] of Object.entries(REFUSED)) if ((body[name] ?? false) !== false) throw invalid(name, words);
  const { model, system_instruction: system } = body;
  if (typeof model !== 'string') throw invalid('model', 'is required');
  const reading: Reading = { places: [], dropped: droppedOf(body) };
  tellNames(body, reading.dropped);
  const contents = contentsOf(body['input'] ?? undefined, reading);
  const tools = toolsOf(body, reading);
  const generated = {
    contents,
    ...(typeof system === 'string' && system !== '' && { systemInstruction: { parts: [{ text: system }] } }),
    ...tools,
    generationConfig: { ...configOf(body, reading), ...formatOf(body, reading) },
  };
  reading.places.push(['messages', 'input'], ['contents', 'input'], ['systemInstruction', 'system_instruction']);
  const read = readAtPlaces(reading, () => readGemini({ ...input, body: generated, params: { model } }));
  const { dialect_fields: _own, ...request } = read.request;
  const needs = (read.needs ?? []).map((need) => ({ ...need, param: placeOf(need.param, reading) }));
  // Only this field written here is dropped by the reader of generateContent.
  if (read.dropped?.some((name) => name.startsWith('toolConfig')))
    reading.dropped.push('generation_config.tool_choice');
  return {
    request: { ...request, ...tierOf(body), ...(body['stream'] === true && { stream: true }) } as ChatRequest,
    ...(reading.dropped.length > 0 && { dropped: reading.dropped }),
    ...(needs.length > 0 && { needs }),
    place: (param) => placeOf(read.place?.(param) ?? param, reading),
  };
}

/** Names of this format below the top level. */
const NAMES = knownNames({
  user_input: 'type content id role',
  model_output: 'type content id role',
  thought: 'type id summary signature',
  function_call: 'type id name arguments signature',
  function_result: 'type id call_id name result is_error signature',
  text: 'type text annotations',
  image: 'type data uri mime_type',
  audio: 'type data uri mime_type',
  document: 'type data uri mime_type',
  video: 'type data uri mime_type',
  function: 'type name description parameters',
});

function tellNames({ input, tools }: InteractionBody, dropped: string[]): void {
  for (const { step: own, contents } of placedSteps(input)) {
    tellUnknown(own, readString(own['type']) ?? '', NAMES, 'input', dropped);
    for (const [content] of contents)
      tellUnknown(content, readString(content['type']) ?? '', NAMES, 'input.content', dropped);
  }
  for (const tool of readArray(tools)) tellUnknown(tool, 'function', NAMES, 'tools', dropped);
}

/** State of reading: paths of generateContent with the caller's, and dropped fields. */
interface Reading {
  readonly places: [own: string, caller: string][];
  readonly dropped: string[];
}

function droppedOf(body: InteractionBody): string[] {
  const config = isObject(body['generation_config']) ? body['generation_config'] : {};
  const unread = (object: JsonObject, known: ReadonlySet<string>, at: string): string[] =>
    Object.entries(object).flatMap(([name, value]) =>
      known.has(name) || (value ?? undefined) === undefined || !/^\w{1,64}$/.test(name) ? [] : [at + name],
    );
  return [...unread(body, READ, ''), ...unread(config, CONFIG_READ, 'generation_config.')];
}

/** Returns the caller's path for the longest generateContent path that is a prefix of `param`. */
function placeOf(param: string, { places }: Reading): string {
  const [own, caller] = places.reduce<readonly [string, string]>(
    (found, each) => (param.startsWith(each[0]) && each[0].length > found[0].length ? each : found),
    ['', ''],
  );
  return own === '' ? param : caller;
}

/** Maps errors of the generateContent reader to the caller's paths. */
function readAtPlaces<T>(reading: Reading, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!isGatewayError(error) || error.param === undefined) throw error;
    const param = placeOf(error.param, reading);
    throw new GatewayError(error.code, error.message.replaceAll(error.param, param), { param });
  }
}

/** Step with its contents and their paths. */
interface PlacedStep {
  readonly step: Step;
  readonly at: string;
  readonly contents: readonly (readonly [JsonObject, string])[];
}

const CONTENTS: ReadonlySet<unknown> = new Set(['text', 'image', 'audio', 'document', 'video']);

/** Yields an input as steps. A text or contents are user input; turns of an older form keep their role. */
function* placedSteps(input: unknown): Generator<PlacedStep> {
  if (typeof input === 'string')
    yield {
      step: userStep([{ type: 'text', text: input }]),
      at: 'input',
      contents: [[{ text: input, type: 'text' }, 'input']],
    };
  let said: [JsonObject, string][] = [];
  const items = Array.isArray(input) ? input : isObject(input) ? [input] : [];
  const closed = (): PlacedStep[] => {
    const [first] = said;
    const contents = said;
    said = [];
    return first ? [{ step: userStep(contents.map(([content]) => content)), at: first[1], contents }] : [];
  };
  for (const [index, item] of items.entries()) {
    if (!isObject(item)) continue;
    const at = Array.isArray(input) ? `input[${index}]` : 'input';
    if (CONTENTS.has(item['type'])) {
      said.push([item, at]);
      continue;
    }
    yield* closed();
    const { role, ...turn } = item;
    const isTurn = typeof role === 'string' && item['type'] === undefined;
    const own = isTurn ? { ...turn, type: role === 'model' ? 'model_output' : 'user_input' } : item;
    yield { step: own, at, contents: placedContents(own['content'], `${at}.content`) };
  }
  yield* closed();
}

function userStep(content: readonly JsonObject[]): Step {
  return { type: 'user_input', content };
}

function placedContents(content: unknown, at: string): readonly (readonly [JsonObject, string])[] {
  if (typeof content === 'string') return [[{ type: 'text', text: content }, at]];
  if (isObject(content)) return [[content, at]];
  return Array.isArray(content)
    ? content.flatMap((part: unknown, index) => (isObject(part) ? [[part, `${at}[${index}]`] as const] : []))
    : [];
}

/** Steps of an input, as they are stored. */
export function stepsOf(input: unknown): readonly Step[] {
  return [...placedSteps(input)].map(({ step: one }) => one);
}

interface Content {
  readonly role: 'user' | 'model';
  readonly parts: GeminiPart[];
}

/** Contents for generateContent; consecutive steps of one role are one content. */
function contentsOf(input: unknown, reading: Reading): readonly Content[] {
  const contents: Content[] = [];
  const add = (role: Content['role'], part: GeminiPart, at: string): void => {
    const before = contents.at(-1);
    const last = before?.role === role ? before : { role, parts: [] };
    if (last !== before) contents.push(last);
    reading.places.push([`contents[${contents.length - 1}].parts[${last.parts.length}]`, at]);
    if (last.parts.length === 0) reading.places.push([`contents[${contents.length - 1}]`, at]);
    last.parts.push(part);
  };
  for (const placed of placedSteps(input)) addStep(placed, add, reading, contents);
  if (contents.length === 0) throw invalid('input', 'must contain text or other content');
  return contents;
}

type AddPart = (role: Content['role'], part: GeminiPart, at: string) => void;

function addStep(
  { step: one, at, contents }: PlacedStep,
  add: AddPart,
  { dropped }: Reading,
  all: readonly Content[],
): void {
  const type = readString(one['type']) ?? '';
  const signature = readString(one['signature']);
  const signed = signature === undefined || signature === '' ? {} : { thoughtSignature: signature };
  if (type === 'user_input' || type === 'model_output')
    for (const [content, place] of contents)
      add(type === 'user_input' ? 'user' : 'model', partOf(content, place), place);
  else if (type === 'thought') {
    const summary = (Array.isArray(one['summary']) ? one['summary'] : [])
      .map((part: unknown) => (isObject(part) ? (readString(part['text']) ?? '') : ''))
      .join('');
    // A signature after a text belongs to that text.
    const before = all.at(-1)?.role === 'model' ? all.at(-1)?.parts.at(-1) : undefined;
    const isOfText =
      summary === '' && before?.text !== undefined && before.thought !== true && !isPacked(signature ?? '');
    if (summary !== '' || signature)
      add('model', { text: summary, ...(!isOfText && { thought: true }), ...signed }, at);
  } else if (type === 'function_call') {
    const { id: own, name, arguments: args } = one;
    if (typeof name !== 'string' || name === '') throw invalid(`${at}.name`, 'must name the function');
    const called = { name, args: isObject(args) ? args : {}, ...(typeof own === 'string' && { id: own }) };
    add('model', { functionCall: called, ...signed }, at);
  } else if (type === 'function_result') add('user', { functionResponse: resultOf(one, at) }, at);
  else addOther(one, type, at, add, dropped);
}

/** Maximum length of the text in place of a step that only Google's servers accept. */
const MAX_TEXT = 4096;

function addOther(one: Step, type: string, at: string, add: AddPart, dropped: string[]): void {
  const { signature: _signature, ...shown } = one;
  const reported = writeJson(shown);
  // Results of Google's tools are not the model's words, so guardrails check them.
  if (type !== '' && reported.length <= MAX_TEXT) add(/_result$/.test(type) ? 'user' : 'model', { text: reported }, at);
  else dropped.push(`input.${/^\w{1,48}$/.test(type) ? type : 'unknown'}`);
}

function resultOf(one: Step, at: string): NonNullable<GeminiPart['functionResponse']> {
  const { call_id: callId, name, result, is_error: isError } = one;
  const contents = Array.isArray(result) ? placedContents(result, `${at}.result`) : [];
  const words = contents.flatMap(([content]) =>
    content['type'] === 'text' ? (readString(content['text']) ?? '') : [],
  );
  const media = contents
    .filter(([content]) => content['type'] !== 'text')
    .map(([content, place]) => partOf(content, place));
  const output = Array.isArray(result) ? words.join('\n') : (result ?? '');
  return {
    name: readString(name) ?? '',
    ...(typeof callId === 'string' && { id: callId }),
    response: { [isError === true ? 'error' : 'output']: output },
    ...(media.length > 0 && { parts: media }),
  };
}

/** Converts a content of the caller to a part. */
function partOf(content: JsonObject, at: string): GeminiPart {
  const { type, text: words, data, uri, mime_type: mime } = content;
  if (type === 'text' || (type === undefined && typeof words === 'string')) return { text: readString(words) ?? '' };
  if (!CONTENTS.has(type)) throw invalid(`${at}.type`, 'must be text, image, audio, document or video');
  const mimeType = readString(mime);
  if (typeof data === 'string' && data !== '') {
    if (mimeType === undefined) throw invalid(`${at}.mime_type`, 'must name the type of the data');
    return { inlineData: { mimeType, data } };
  }
  if (typeof uri !== 'string' || uri === '')
    throw invalid(`${at}.data`, 'must be the data in base64, or `uri` must be its address');
  const part = {
    fileData: { fileUri: uri, mimeType: mimeType ?? `${type === 'document' ? 'application' : String(type)}/*` },
  };
  if (isReference(part))
    throw invalid(
      `${at}.uri`,
      'is stored in the operator’s account, which all callers share; send the content as `data`',
    );
  return part;
}

/** Functions and the permitted use of them. */
function toolsOf({ tools, generation_config: config }: InteractionBody, reading: Reading): JsonObject {
  assertNoServers(tools);
  const functionDeclarations = (Array.isArray(tools) ? tools : []).map((tool: unknown, index) => {
    const { type, name, description, parameters } = isObject(tool) ? tool : {};
    if (type !== 'function')
      throw invalid(
        `tools[${index}]`,
        'is a tool that Google runs; it is supported only by `models/{model}:generateContent`',
      );
    if (typeof name !== 'string' || name === '') throw invalid(`tools[${index}].name`, 'must name the function');
    reading.places.push([`tools[0].functionDeclarations[${index}]`, `tools[${index}]`]);
    return { name, description, parametersJsonSchema: parameters };
  });
  const choice = isObject(config) ? config['tool_choice'] : undefined;
  const { allowed_tools: allowed } = isObject(choice) ? choice : {};
  const { mode = isObject(choice) ? undefined : choice, tools: names } = isObject(allowed) ? allowed : {};
  reading.places.push(['toolConfig', 'generation_config.tool_choice']);
  if (typeof mode === 'string' && !/^(?:auto|any|none|validated)$/.test(mode))
    throw invalid('generation_config.tool_choice', 'must be auto, any, none or validated');
  const calling = {
    ...(typeof mode === 'string' && { mode: mode.toUpperCase() }),
    ...(Array.isArray(names) && { allowedFunctionNames: names.map(String) }),
  };
  if (functionDeclarations.length === 0) return {};
  const hasChoice = Object.keys(calling).length > 0;
  return { tools: [{ functionDeclarations }], ...(hasChoice && { toolConfig: { functionCallingConfig: calling } }) };
}

function configOf({ generation_config: config }: InteractionBody, reading: Reading): JsonObject {
  if (!isObject(config)) return {};
  const fields = Object.entries(CONFIG).flatMap(([own, theirs]): [string, unknown][] => {
    reading.places.push([`generationConfig.${theirs}`, `generation_config.${own}`]);
    return (config[own] ?? undefined) === undefined ? [] : [[theirs, config[own]]];
  });
  const level = readString(config['thinking_level']);
  reading.places.push(['generationConfig.thinkingConfig', 'generation_config.thinking_level']);
  return {
    ...Object.fromEntries(fields),
    ...(level !== undefined && { thinkingConfig: { thinkingLevel: level } }),
  };
}

/** Requested response format: text, JSON, a JSON schema, or images. */
function formatOf(body: InteractionBody, reading: Reading): JsonObject {
  const { response_format: format, response_mime_type: mime, response_modalities: modalities } = body;
  reading.places.push(['generationConfig.response', 'response_format'], ['response_format', 'response_format']);
  const wanted = Array.isArray(modalities) ? modalities.map((each) => String(each).toLowerCase()) : [];
  const other = wanted.find((each) => each !== 'text' && each !== 'image');
  if (other !== undefined) throw invalid('response_modalities', 'may contain only `text` and `image`');
  let type = readString(mime);
  let schema: unknown;
  for (const each of Array.isArray(format) ? format : [format]) {
    if (!isObject(each)) continue;
    const { type: kind, mime_type: own, schema: given } = each;
    if (kind === 'image') wanted.push('image');
    else if (kind === 'audio' || kind === 'video')
      throw invalid('response_format', 'may request only texts and images');
    else if (kind === 'text' && (given !== undefined || own !== undefined || Object.keys(each).length === 1)) {
      type = readString(own) ?? (isObject(given) ? 'application/json' : type);
      schema = given ?? schema;
      // Older form: the schema itself.
    } else schema = each;
  }
  if (schema !== undefined && schema !== null && !isObject(schema))
    throw invalid('response_format', 'must have a schema that is an object');
  const isJson = isObject(schema) || type === 'application/json';
  return {
    ...((type !== undefined || isJson) && { responseMimeType: isJson ? 'application/json' : type }),
    ...(isObject(schema) && { responseJsonSchema: schema }),
    ...(wanted.includes('image') && { responseModalities: ['TEXT', 'IMAGE'] }),
  };
}

function tierOf({ service_tier: tier }: InteractionBody): JsonObject {
  if (typeof tier !== 'string') return {};
  if (tier === 'deferred')
    throw invalid('service_tier', 'must not be `deferred`; the gateway does not run requests in the background');
  return { service_tier: Object.hasOwn(TIERS, tier) ? TIERS[tier] : tier };
}
