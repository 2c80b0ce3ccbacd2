import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  type DialectInput,
  type DialectRequest,
  isObject,
  type JsonObject,
  type OpaquePart,
  readArray,
  readString,
  type Schema,
  type Tool,
  withNumbersOf,
} from '../../../contract/index.ts';
import { invalid, knownNames, tellUnknown } from '../kit/index.ts';
import { contentOf, kindOf, partsOf, readContents } from './read-contents.ts';
import { readThinking } from './tables.ts';
import {
  type ChatFields,
  checkSpelling,
  fieldOf,
  type GeminiBody,
  listOf,
  nameIn,
  othersOf,
  type Reading,
  snakeOf,
} from './types.ts';

const READ: readonly string[] = Object.freeze([
  'model',
  'contents',
  'systemInstruction',
  'tools',
  'generationConfig',
  'cachedContent',
  'serviceTier',
]);
const KNOWN: readonly string[] = Object.freeze([...READ, 'toolConfig', 'safetySettings', 'labels']);

/** Suffix of streaming paths. */
export const STREAM_METHOD = 'streamGenerateContent';

/** Reads a request of generateContent, streamGenerateContent or countTokens into the canonical form. */
export function readGemini(input: DialectInput<GeminiBody>): DialectRequest {
  const model = modelOf(input.params['model'] ?? '');
  const { body, at } = requestOf(input);
  const reading: Reading = { places: [['messages', `${at}contents`]], dropped: [], needs: [] };
  checkSpelling(body, KNOWN, at.slice(0, -1));
  checkModel(input.body, '', model);
  if (body !== input.body) checkModel(body, at, model);
  const system = readSystem(body, at, reading);
  const messages = [...system, ...readContents(body['contents'], `${at}contents`, system.length, reading)];
  if (messages.length === 0) throw invalid(`${at}contents`, 'must contain text or another part');
  const { fields, rest } = readConfig(body, at, reading);
  const toolChoice = readToolConfig(body, at, reading);
  tellNames(body, reading.dropped);
  const request: ChatRequest = {
    model,
    messages,
    ...readTools(body, at, reading),
    ...toolChoice,
    ...fields,
    ...readTier(body),
    ...readRest(body, at, rest, reading),
    ...(input.route.path.endsWith(STREAM_METHOD) && { stream: true }),
  };
  return {
    request,
    ...(reading.dropped.length > 0 && { dropped: reading.dropped }),
    ...(reading.needs.length > 0 && { needs: reading.needs }),
    place: (param) => placeOf(param, reading),
  };
}

/** Names of this format below the top level, in both spellings. Media and other parts keep theirs for codecs of this format. */
const KNOWN_NAMES = knownNames({
  content: 'role parts',
  text: 'text thought thoughtSignature thought_signature',
  functionCall: 'functionCall function_call thought thoughtSignature thought_signature',
  functionResponse: 'functionResponse function_response thought thoughtSignature thought_signature',
});

function tellNames(body: GeminiBody, dropped: string[]): void {
  for (const content of listOf(body['contents'])) {
    tellUnknown(content, 'content', KNOWN_NAMES, 'contents', dropped);
    if (isObject(content))
      for (const [part] of partsOf(content, ''))
        tellUnknown(part, kindOf(part), KNOWN_NAMES, 'contents.parts', dropped);
  }
}

/** Request inside a body: the body itself, or the wrapped request of a token count. */
function requestOf({ body, route }: DialectInput<GeminiBody>): { readonly body: GeminiBody; readonly at: string } {
  if (route.action !== 'count') return { body, at: '' };
  const name = 'generateContentRequest';
  checkSpelling(body, [name, ...KNOWN], '');
  const wrapped = fieldOf(body, name);
  if (!isObject(wrapped)) {
    if (fieldOf(body, 'contents') === undefined) throw invalid('contents', 'or `generateContentRequest` is required');
    return { body, at: '' };
  }
  if (fieldOf(body, 'contents') !== undefined)
    throw invalid('contents', 'cannot be combined with `generateContentRequest`');
  return { body: wrapped, at: `${nameIn(body, name)}.` };
}

/** Model name without the prefix in Google's paths. */
export function modelOf(name: string): string {
  return name.replace(/^(?:models|tunedModels)\//, '');
}

function checkModel(body: GeminiBody, at: string, model: string): void {
  const inside = readString(body['model']);
  if (inside !== undefined && modelOf(inside) !== model)
    throw invalid(`${at}model`, 'must be the model in the path; correct or remove it');
}

function readSystem(body: GeminiBody, at: string, reading: Reading): readonly ChatMessage[] {
  const instruction = fieldOf(body, 'systemInstruction');
  if (!isObject(instruction)) return [];
  const place = `${at}${nameIn(body, 'systemInstruction')}`;
  const parts: ContentPart[] = [];
  reading.places.push(['messages[0]', place]);
  for (const [part, where] of partsOf(instruction, place)) {
    const text = fieldOf(part, 'text');
    if (typeof text !== 'string') throw invalid(where, 'must be a text in the system instruction');
    if (text === '') continue;
    reading.places.push([`messages[0].content[${parts.length}]`, where]);
    parts.push({ type: 'text', text });
  }
  return parts.length === 0 ? [] : [{ role: 'system', content: contentOf(parts) }];
}

function readTier(body: GeminiBody): ChatFields {
  const tier = readString(fieldOf(body, 'serviceTier'));
  return tier === undefined ? {} : { service_tier: tier.toLowerCase().replace(/^service_tier_/, '') };
}

/** Fields that only Gemini understands; they are reported as dropped elsewhere. */
function readRest(body: GeminiBody, at: string, config: JsonObject, reading: Reading): ChatFields {
  const cached = readString(fieldOf(body, 'cachedContent'));
  if (cached !== undefined)
    reading.needs.push({ kind: 'reference', name: 'cachedContent', param: `${at}${nameIn(body, 'cachedContent')}` });
  const others = othersOf(body, [...READ, 'toolConfig', 'generateContentRequest']);
  reading.dropped.push(...Object.keys(others));
  const toolConfig = fieldOf(body, 'toolConfig');
  const choices = isObject(toolConfig) ? othersOf(toolConfig, ['functionCallingConfig']) : {};
  const fields = {
    ...others,
    ...(cached !== undefined && { cachedContent: cached }),
    ...(Object.keys(choices).length > 0 && { toolConfig: choices }),
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
  };
  return Object.keys(fields).length === 0 ? {} : { dialect_fields: { gemini: fields } };
}

/** Returns the caller's path for a canonical one: that of the longest enclosing canonical path. */
function placeOf(param: string, { places }: Reading): string {
  let found: readonly [string, string] | undefined;
  for (const each of places) {
    const [canonical] = each;
    const isAround =
      param === canonical || (param.startsWith(canonical) && /^[.[]/.test(param.slice(canonical.length)));
    if (isAround && canonical.length >= (found?.[0].length ?? 0)) found = each;
  }
  return found?.[1] ?? param;
}

/** Fields of `generationConfig` that are numbers or lists on both sides, by their canonical names. */
export const PLAIN_FIELDS: Readonly<Record<string, string>> = Object.freeze({
  maxOutputTokens: 'max_completion_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  stopSequences: 'stop',
  candidateCount: 'n',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  responseLogprobs: 'logprobs',
  logprobs: 'top_logprobs',
});

const FORMAT_FIELDS = ['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema'] as const;
const CONFIG_READ: readonly string[] = Object.freeze([
  ...Object.keys(PLAIN_FIELDS),
  ...FORMAT_FIELDS,
  'responseModalities',
]);
const CONFIG_KNOWN: readonly string[] = Object.freeze([...CONFIG_READ, 'thinkingConfig']);

/** Reads `generationConfig` into canonical fields; `rest` holds the Gemini-only fields. */
export function readConfig(
  body: JsonObject,
  base: string,
  reading: Reading,
): { readonly fields: ChatFields; readonly rest: JsonObject } {
  const config = fieldOf(body, 'generationConfig');
  if (!isObject(config)) return { fields: {}, rest: {} };
  const at = `${base}${nameIn(body, 'generationConfig')}`;
  checkSpelling(config, CONFIG_KNOWN, at);
  const plain = Object.entries(PLAIN_FIELDS).flatMap(([name, canonical]): [string, unknown][] => {
    const value = fieldOf(config, name);
    if (value === undefined) return [];
    reading.places.push([canonical, `${at}.${nameIn(config, name)}`]);
    return [[canonical, value]];
  });
  const rest = othersOf(config, CONFIG_READ);
  for (const name of Object.keys(rest))
    if (name !== nameIn(rest, 'thinkingConfig')) reading.dropped.push(`generationConfig.${name}`);
  return {
    fields: {
      ...Object.fromEntries(plain),
      ...readFormat(config, at, reading),
      ...readThinkingConfig(config, at, reading),
      ...readModalities(config, at, reading),
    },
    rest,
  };
}

function readFormat(config: JsonObject, at: string, reading: Reading): ChatFields {
  const name = FORMAT_FIELDS.slice(1).find((field) => fieldOf(config, field) !== undefined);
  const type = readString(fieldOf(config, 'responseMimeType'));
  reading.places.push(['response_format', `${at}.${nameIn(config, name ?? 'responseMimeType')}`]);
  if (type === 'text/x.enum')
    reading.needs.push({ kind: 'native', name: type, param: `${at}.${nameIn(config, 'responseMimeType')}` });
  if (type !== undefined && type !== 'application/json') {
    if (type !== 'text/plain' && type !== 'text/x.enum')
      throw invalid(
        `${at}.${nameIn(config, 'responseMimeType')}`,
        'must be `text/plain`, `application/json` or `text/x.enum`',
      );
    return {};
  }
  const schema = name === undefined ? undefined : fieldOf(config, name);
  if (schema === undefined) return type === undefined ? {} : { response_format: { type: 'json_object' } };
  const place = `${at}.${nameIn(config, name ?? '')}`;
  if (!isObject(schema)) throw invalid(place, 'must be a schema');
  const own = name === 'responseSchema' ? jsonSchemaOf(schema, place) : schema;
  return { response_format: { type: 'json_schema', json_schema: { name: 'response', schema: own } } };
}

function readThinkingConfig(config: JsonObject, at: string, reading: Reading): ChatFields {
  const thinking = fieldOf(config, 'thinkingConfig');
  if (!isObject(thinking)) return {};
  const place = `${at}.${nameIn(config, 'thinkingConfig')}`;
  checkSpelling(thinking, ['includeThoughts', 'thinkingBudget', 'thinkingLevel'], place);
  const effort = readThinking(thinking);
  reading.places.push(['reasoning_effort', place]);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

function readModalities(config: JsonObject, at: string, reading: Reading): ChatFields {
  const name = nameIn(config, 'responseModalities');
  const modalities = readArray(config[name]).map((each) => String(each).toLowerCase());
  reading.places.push(['modalities', `${at}.${name}`]);
  const other = modalities.find((each) => each !== 'text' && each !== 'image');
  if (other !== undefined) reading.needs.push({ kind: 'native', name: other.toUpperCase(), param: `${at}.${name}` });
  return modalities.includes('image')
    ? { modalities: modalities.filter((each) => each === 'text' || each === 'image') }
    : {};
}

const DECLARATION_FIELDS = ['name', 'description', 'parameters', 'parametersJsonSchema'] as const;

/** Reads functions as canonical tools. Google runs all other tools with the operator's account. */
export function readTools(body: JsonObject, at: string, reading: Reading): ChatFields {
  const written = fieldOf(body, 'tools');
  const tools: (Tool | OpaquePart)[] = [];
  listOf(written).forEach((item, index) => {
    if (!isObject(item)) return;
    const place = Array.isArray(written) ? `${at}tools[${index}]` : `${at}tools`;
    checkSpelling(item, ['functionDeclarations'], place);
    const declarations = fieldOf(item, 'functionDeclarations');
    listOf(declarations).forEach((declaration, position) => {
      if (!isObject(declaration)) return;
      const name = `${place}.${nameIn(item, 'functionDeclarations')}`;
      const where = Array.isArray(declarations) ? `${name}[${position}]` : name;
      reading.places.push([`tools[${tools.length}]`, where]);
      tools.push(readDeclaration(declaration, where, reading));
    });
    for (const [name, value] of Object.entries(othersOf(item, ['functionDeclarations']))) {
      reading.needs.push({ kind: 'server tool', name, param: `${place}.${name}` });
      reading.places.push([`tools[${tools.length}]`, `${place}.${name}`]);
      if (/^file_?search$/i.test(name)) reading.needs.push({ kind: 'reference', name, param: `${place}.${name}` });
      tools.push({ type: 'opaque', dialect: 'gemini', value: { [name]: value } });
    }
  });
  if (tools.length === 0) return {};
  // A codec that does not know opaque tools drops them.
  return { tools: tools as readonly Tool[] };
}

function readDeclaration(declaration: JsonObject, at: string, reading: Reading): Tool {
  const name = readString(declaration['name']) ?? '';
  const description = readString(declaration['description']);
  const schema = fieldOf(declaration, 'parametersJsonSchema');
  const parameters = fieldOf(declaration, 'parameters');
  if (schema !== undefined && !isObject(schema)) throw invalid(`${at}.parametersJsonSchema`, 'must be a JSON Schema');
  for (const other of Object.keys(othersOf(declaration, DECLARATION_FIELDS)))
    tellOnce(reading.dropped, `tools.functionDeclarations.${other}`);
  const own = schema ?? (isObject(parameters) ? jsonSchemaOf(parameters, `${at}.parameters`) : undefined);
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      ...(own !== undefined && { parameters: own }),
    },
  };
}

/** Permitted use of functions. */
export function readToolConfig(body: JsonObject, at: string, reading: Reading): ChatFields {
  const config = fieldOf(body, 'toolConfig');
  if (!isObject(config)) return {};
  const name = nameIn(body, 'toolConfig');
  checkSpelling(config, ['functionCallingConfig'], `${at}${name}`);
  const calling = fieldOf(config, 'functionCallingConfig');
  if (!isObject(calling)) return {};
  const place = `${at}${name}.${nameIn(config, 'functionCallingConfig')}`;
  reading.places.push(['tool_choice', place]);
  const mode = (readString(calling['mode']) ?? 'AUTO').toUpperCase();
  const names = readArray(fieldOf(calling, 'allowedFunctionNames')).map(String);
  if (mode === 'NONE') return { tool_choice: 'none' };
  if (mode === 'VALIDATED') tellOnce(reading.dropped, 'toolConfig.functionCallingConfig.mode');
  const must = mode === 'ANY';
  const [only] = names;
  if (only === undefined) return { tool_choice: must ? 'required' : 'auto' };
  if (must && names.length === 1) return { tool_choice: { type: 'function', function: { name: only } } };
  const tools = names.map((each) => ({ type: 'function', function: { name: each } }));
  return { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: must ? 'required' : 'auto', tools } } };
}

function tellOnce(dropped: string[], field: string): void {
  if (!dropped.includes(field)) dropped.push(field);
}

const MAX_DEPTH = 64;

/** Keywords of Google's OpenAPI schemas that contain schemas or differ from JSON Schema. */
const WORDS: Readonly<Record<string, 'schema' | 'schemas' | 'named' | 'count' | 'special'>> = Object.freeze({
  type: 'special',
  nullable: 'special',
  propertyOrdering: 'special',
  items: 'schema',
  anyOf: 'schemas',
  properties: 'named',
  minItems: 'count',
  maxItems: 'count',
  minLength: 'count',
  maxLength: 'count',
  minProperties: 'count',
  maxProperties: 'count',
});

const NAMES: ReadonlyMap<string, string> = new Map(
  Object.keys(WORDS).flatMap((word) => [
    [word, word],
    [snakeOf(word), word],
  ]),
);

/** Converts `parameters` or `responseSchema` (`type: "OBJECT"`, `nullable`, counts as text) to JSON Schema. */
export function jsonSchemaOf(schema: JsonObject, at: string, depth = 0): Schema {
  if (depth > MAX_DEPTH) throw invalid(at, `must not be nested deeper than ${MAX_DEPTH} levels`);
  const inner = (value: unknown): unknown => (isObject(value) ? jsonSchemaOf(value, at, depth + 1) : value);
  const type = readType(schema);
  const fields = Object.entries(schema).flatMap(([written, value]): (readonly [string, unknown])[] => {
    const word = NAMES.get(written);
    if (value === null || value === undefined) return [];
    if (word === undefined) return [[written, value]];
    switch (WORDS[word]) {
      case 'schema':
        return [[word, inner(value)]];
      case 'schemas':
        return [[word, readArray(value).map(inner)]];
      case 'named':
        return isObject(value) ? [[word, orderedProperties(schema, value, inner)]] : [];
      case 'count':
        return [[word, typeof value === 'string' ? Number(value) : value]];
      default:
        return [];
    }
  });
  return withNumbersOf({ ...(type !== undefined && { type }), ...Object.fromEntries(fields) }, schema);
}

/** Google's type name in lower case, with `null` added for a nullable schema. */
function readType(schema: JsonObject): unknown {
  const { type, nullable } = schema;
  const names = (Array.isArray(type) ? type : [type]).flatMap((name) =>
    typeof name === 'string' && name !== 'TYPE_UNSPECIFIED' ? [name.toLowerCase()] : [],
  );
  if (names.length === 0) return undefined;
  if (nullable === true && !names.includes('null')) names.push('null');
  return names.length === 1 ? names[0] : names;
}

/** Orders properties: `propertyOrdering` becomes the order of names in JSON. */
function orderedProperties(schema: JsonObject, properties: JsonObject, inner: (value: unknown) => unknown): JsonObject {
  const order = readArray(fieldOf(schema, 'propertyOrdering'));
  const first = order.filter((name): name is string => typeof name === 'string' && Object.hasOwn(properties, name));
  const names = new Set([...first, ...Object.keys(properties)]);
  return Object.fromEntries([...names].map((name) => [name, inner(properties[name])]));
}
