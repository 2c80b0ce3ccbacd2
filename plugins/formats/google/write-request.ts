import {
  type ChatRequest,
  type CodecCall,
  type FieldTable,
  GatewayError,
  type HttpRequest,
  isObject,
  type JsonObject,
  type NativeRow,
  readArray,
  readCount,
  readObject,
  readString,
  type Schema,
  withNumbersOf,
} from '../../../contract/index.ts';
import {
  ANSWER_TOOL,
  type AnswerFormat,
  applyFieldRules,
  type FunctionTool,
  invalid,
  mergeExtraBody,
  readAnswerFormat,
  readToolChoice,
  readTools,
  type ToolMode,
  tellDropped,
} from '../kit/index.ts';
import { GEMINI_FIELDS, type GeminiTraits, geminiTraits, readEffort, readThinking, writeThinking } from './tables.ts';
import {
  fieldOf,
  type GeminiFunction,
  type GeminiRequest,
  type GeminiThinking,
  type GeminiToolConfig,
  snakeOf,
} from './types.ts';
import { geminiContents, hasForeignReasoning, type PartRules } from './write-contents.ts';

const MAX_STOPS = 5;
const MAX_CANDIDATES = 8;

/** Vendor's own fields, also accepted in `extra_body`. */
const EXTRAS: ReadonlySet<string> = new Set([...(GEMINI_FIELDS.extras ?? []), 'google_search', 'labels']);

/** Writes a chat request for generateContent or streamGenerateContent, by the field table of the instance. */
export function geminiRequest(request: ChatRequest, call: CodecCall, table: FieldTable = GEMINI_FIELDS): HttpRequest {
  const extras: string[] = [];
  const input = withCachedContent(mergeExtraBody(withGoogle(request), (field) => EXTRAS.has(field), extras));
  const dropped = [...extras, ...applyFieldRules(input, table, 'Gemini')];
  if (hasForeignReasoning(input)) dropped.push('reasoning');
  const references = table.fields['cached_content']?.rule !== 'refused';
  const body = geminiBody(input, call, dropped, { references });
  // Without `alt=sse`, a stream is one JSON array, sent in pieces.
  const method = call.stream ? ':streamGenerateContent?alt=sse' : ':generateContent';
  const isAdded = addsThoughts(input, body);
  return {
    path: `${modelPath(call.model)}${method}`,
    body,
    ...(isAdded && { added: ADDED_THOUGHTS }),
    ...(dropped.length > 0 && { dropped }),
  };
}

const ADDED_THOUGHTS: readonly string[] = Object.freeze(['generationConfig.thinkingConfig.includeThoughts']);

/** Returns true if the caller did not send `includeThoughts` and the vendor is sent it. */
function addsThoughts(input: ChatRequest, { generationConfig }: GeminiRequest): boolean {
  const isSent = readObject(generationConfig?.['thinkingConfig'])['includeThoughts'] !== undefined;
  if (!isSent) return false;
  const own = [input['thinking_config'], ownThinking(readOwnFields(input))];
  return !own.some((config) => isObject(config) && fieldOf(config, 'includeThoughts') !== undefined);
}

/**
 * Renames the vendor's own fields to snake_case, as Google's servers accept both spellings, and flattens
 * `extra_body.google`, where Google's own OpenAI endpoint takes them.
 */
function withGoogle(request: ChatRequest): ChatRequest {
  const input = inSnakeCase(request);
  const body = input['extra_body'];
  if (!isObject(body)) return input;
  const { google, ...rest } = body;
  return { ...input, extra_body: inSnakeCase(isObject(google) ? { ...rest, ...google } : body) };
}

function inSnakeCase<T extends object>(object: T): T {
  const camelCase = Object.keys(object).filter((name) => {
    const snake = snakeOf(name);
    return snake !== name && EXTRAS.has(snake) && !Object.hasOwn(object, snake);
  });
  if (camelCase.length === 0) return object;
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [camelCase.includes(name) ? snakeOf(name) : name, value]),
  ) as T;
}

function geminiBody(input: ChatRequest, call: CodecCall, dropped: string[], rules: PartRules): GeminiRequest {
  const traits = geminiTraits(call.model);
  const plan = planTools(input, traits, dropped);
  const own = readOwnFields(input);
  const thinkingConfig = thinkingOf(input, traits, dropped, ownThinking(own));
  const safetySettings = readSafety(input);
  const cachedContent = readString(input['cached_content']);
  const mediaResolution = readString(input['media_resolution']);
  const { thinking_config: _, ...ownConfig } = own.generationConfig;
  const generationConfig = {
    ...ownConfig,
    ...sampling(input, traits, dropped),
    ...plan.format,
    ...readModalities(input),
    ...(mediaResolution && { mediaResolution }),
    ...(thinkingConfig && { thinkingConfig }),
  };
  const functions = plan.functions.length > 0 ? [{ functionDeclarations: plan.functions }] : [];
  const toolConfig = { ...own.toolConfig, ...(functions.length > 0 && plan.toolConfig) };
  return {
    ...own.top,
    ...geminiContents(input.messages, traits, plan.instruction, rules),
    ...(functions.length > 0 && { tools: functions }),
    ...(Object.keys(toolConfig).length > 0 && { toolConfig }),
    ...(safetySettings.length > 0 && { safetySettings }),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...(cachedContent && { cachedContent }),
  } as GeminiRequest;
}

/** `/models/x`, or the model's own path if it has one (`tunedModels/x`). */
export function modelPath(model: string): string {
  const segments = (model.includes('/') ? model : `models/${model}`).split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    throw invalid('model', 'is not the name of a model');
  }
  return `/${segments.map(encodeURIComponent).join('/')}`;
}

/**
 * Thinking options of `generationConfig`; undefined means the model's default. `own` is the value of a caller of
 * Gemini's format. It is sent unchanged, unless a hook has set another effort.
 */
function thinkingOf(
  input: ChatRequest,
  traits: GeminiTraits,
  dropped: string[],
  own: JsonObject | undefined,
): GeminiThinking | undefined {
  const field = thinkingField(input);
  if (field) return field;
  const effort = readEffort(input);
  if (own && readThinking(own) === effort) return own;
  const fitted = effort && writeThinking(effort, traits);
  if (effort && effort !== 'none' && !fitted) dropped.push('reasoning_effort');
  const include = own && fieldOf(own, 'includeThoughts');
  const includeThoughts = typeof include === 'boolean' ? include : fitted && effort !== 'none';
  return own || fitted ? { ...fitted, ...(includeThoughts !== undefined && { includeThoughts }) } : undefined;
}

/** Vendor's own `thinking_config`; Google's OpenAI endpoint accepts it in `extra_body.google`. */
function thinkingField(input: ChatRequest): GeminiThinking | undefined {
  const config = input['thinking_config'];
  if (!isObject(config)) return undefined;
  const level = fieldOf(config, 'thinkingLevel');
  const budget = fieldOf(config, 'thinkingBudget');
  const include = fieldOf(config, 'includeThoughts');
  return {
    ...(typeof level === 'string' && { thinkingLevel: level }),
    ...(typeof budget === 'number' && { thinkingBudget: budget }),
    ...(typeof include === 'boolean' && { includeThoughts: include }),
  };
}

function sampling(input: ChatRequest, traits: GeminiTraits, dropped: string[]): JsonObject {
  const { temperature, top_p, seed, frequency_penalty, presence_penalty, n, logprobs, top_logprobs } = input;
  const maxOutputTokens = input.max_completion_tokens ?? input.max_tokens;
  const stops = readStops(input.stop);
  const topK = input['top_k'];
  if (typeof n === 'number' && n > MAX_CANDIDATES) throw invalid('n', `must be at most ${MAX_CANDIDATES}`);
  const penalties = {
    frequencyPenalty: frequency_penalty || undefined,
    presencePenalty: presence_penalty || undefined,
  };
  const candidateCount = n === 1 ? undefined : (n ?? undefined);
  if (!traits.penalties && penalties.frequencyPenalty) dropped.push('frequency_penalty');
  if (!traits.penalties && penalties.presencePenalty) dropped.push('presence_penalty');
  if (!traits.candidates && candidateCount) dropped.push('n');
  return compact({
    maxOutputTokens,
    temperature,
    topP: top_p,
    topK: typeof topK === 'number' ? topK : undefined,
    seed,
    ...(traits.penalties && penalties),
    ...(traits.candidates && { candidateCount }),
    stopSequences: stops.length > 0 ? stops : undefined,
    responseLogprobs: logprobs || undefined,
    logprobs: (logprobs && top_logprobs) || undefined,
  });
}

function compact(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function readStops(stop: ChatRequest['stop']): readonly string[] {
  const stops = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text !== '');
  if (stops.length > MAX_STOPS) throw invalid('stop', `must have at most ${MAX_STOPS} texts for this provider`);
  return stops;
}

function readSafety(input: ChatRequest): readonly JsonObject[] {
  return readArray(input['safety_settings']).map((setting, index) => {
    const { category, threshold } = isObject(setting) ? setting : {};
    if (typeof category === 'string' && typeof threshold === 'string') return { category, threshold };
    throw invalid(`safety_settings[${index}]`, 'must be an object with `category` and `threshold`');
  });
}

function readModalities(input: ChatRequest): JsonObject {
  const modalities = readArray(input['modalities']);
  const unknown = modalities.find((modality) => modality !== 'text' && modality !== 'image');
  if (unknown !== undefined) throw invalid('modalities', 'may contain only `text` and `image` for this provider');
  return modalities.includes('image')
    ? { responseModalities: modalities.map((name) => String(name).toUpperCase()) }
    : {};
}

/**
 * Passthrough is available for every Gemini model. `references` allows callers to name files in the operator's
 * account.
 */
export function nativeRow(
  model: string,
  stream: boolean,
  rules: Pick<NativeRow, 'references' | 'body'>,
): Readonly<Record<string, NativeRow>> {
  const path = modelPath(model);
  return {
    gemini: {
      path: path + (stream ? ':streamGenerateContent?alt=sse' : ':generateContent'),
      count: {
        path: `${path}:countTokens`,
        body: ({ store: _store, ...body }: JsonObject) => body,
        response: (body) => readCount(readObject(body)['totalTokens']),
      },
      ...rules,
    },
  };
}

/**
 * Fields written from the canonical request. They are not copied from the caller's fields, because only the canonical
 * values were checked and priced.
 */
const WRITTEN: ReadonlySet<string> = new Set(
  (
    'model contents systeminstruction tools toolconfig generationconfig cachedcontent labels servicetier stream maxoutputtokens temperature ' +
    'topp topk stopsequences candidatecount seed frequencypenalty presencepenalty responselogprobs logprobs responsemimetype ' +
    'responseschema responsejsonschema responsemodalities functioncallingconfig'
  ).split(' '),
);

/** Fields of a caller of Gemini's own format that the canonical request cannot express. */
export interface OwnFields {
  readonly top: JsonObject;
  readonly generationConfig: JsonObject;
  readonly toolConfig: JsonObject;
}

export function readOwnFields({ dialect_fields: fields }: ChatRequest): OwnFields {
  const own = readObject(fields?.['gemini']);
  const config = own['generationConfig'] ?? own['generation_config'];
  return {
    top: unwritten(own),
    generationConfig: unwritten(readObject(config)),
    toolConfig: unwritten(readObject(own['toolConfig'] ?? own['tool_config'])),
  };
}

/** Moves the cached content of a Gemini-format request to the field that the field table checks. */
export function withCachedContent(input: ChatRequest): ChatRequest {
  const own = readObject(input.dialect_fields?.['gemini']);
  const cached = own['cachedContent'] ?? own['cached_content'];
  return cached === undefined || isSet(input['cached_content']) ? input : { ...input, cached_content: cached };
}

/** `thinkingConfig` of a caller of the native format. */
export function ownThinking({ generationConfig }: OwnFields): JsonObject | undefined {
  const thinking = generationConfig['thinkingConfig'] ?? generationConfig['thinking_config'];
  return isObject(thinking) ? thinking : undefined;
}

function unwritten(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([name, value]) => isSet(value) && !WRITTEN.has(name.replaceAll('_', '').toLowerCase()),
    ),
  );
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

const JSON_INSTRUCTION =
  'When you answer in text, the text must be one valid JSON object and nothing else: no prose, no code fence.';

/** Tools and response format of a request, planned together. */
export interface ToolPlan {
  readonly functions: readonly GeminiFunction[];
  readonly toolConfig?: GeminiToolConfig;
  /** Fields for `generationConfig`. */
  readonly format: JsonObject;
  /** System text in place of an unsupported format. */
  readonly instruction?: string;
}

/**
 * Plans tools and response format together. Models before Gemini 3 reject a JSON format together with tools. No model
 * accepts it with a forced call, where the response is a call anyway.
 */
export function planTools(sent: ChatRequest, traits: GeminiTraits, dropped: string[]): ToolPlan {
  const input = withoutOpaque(sent, dropped);
  const tools = readTools(input);
  const choice = readToolChoice(input, tools);
  const wanted = readAnswerFormat(input);
  const functions = tools.map((tool) => declare(tool, dropped));
  if (tools.length === 0) return { functions: [], format: geminiFormat(wanted, dropped) };
  const plan = { functions, toolConfig: writeToolConfig(choice, tools), format: {} };
  if (wanted.kind === 'text' || choice.mode === 'required') return plan;
  if (choice.mode === 'none') return { functions: [], format: geminiFormat(wanted, dropped) };
  if (traits.jsonWithTools) return { ...plan, format: geminiFormat(wanted, dropped) };
  if (wanted.kind === 'json') return { ...plan, instruction: JSON_INSTRUCTION };
  const names = [...(choice.only ?? tools.map(({ name }) => name)), ANSWER_TOOL];
  return {
    functions: [...functions, declareFormat(wanted, dropped)],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: names } },
    format: {},
  };
}

function geminiFormat(wanted: AnswerFormat, dropped: string[]): JsonObject {
  if (wanted.kind === 'text') return {};
  if (wanted.kind === 'json') return { responseMimeType: 'application/json' };
  return {
    responseMimeType: 'application/json',
    responseJsonSchema: geminiSchema(wanted.schema, 'response_format.schema', dropped),
  };
}

function declare(tool: FunctionTool, dropped: string[]): GeminiFunction {
  if (!/^[A-Za-z_]/.test(tool.name)) {
    throw invalid(`${tool.at}.function.name`, 'must begin with a letter or an underscore for this provider');
  }
  const parameters = tool.parameters && geminiSchema(tool.parameters, 'tools.parameters', dropped);
  return {
    name: tool.name,
    description: tool.description ?? '',
    ...(parameters && !takesNothing(parameters) && { parametersJsonSchema: parameters }),
  };
}

/** Vendors reject an object schema without properties; omitting it is equivalent. */
function takesNothing(schema: Readonly<Record<string, unknown>>): boolean {
  const { properties, additionalProperties } = schema;
  const isEmpty = typeof properties !== 'object' || properties === null || Object.keys(properties).length === 0;
  const closed = additionalProperties === undefined || additionalProperties === false;
  return isEmpty && closed && !('$ref' in schema) && !('anyOf' in schema) && !('oneOf' in schema);
}

function declareFormat(wanted: Extract<AnswerFormat, { kind: 'schema' }>, dropped: string[]): GeminiFunction {
  return {
    name: ANSWER_TOOL,
    description: wanted.description ?? 'Gives the final answer to the user. Call it when no other function is needed.',
    parametersJsonSchema: geminiSchema(wanted.schema, 'response_format.schema', dropped),
  };
}

function writeToolConfig(choice: ToolMode, tools: readonly FunctionTool[]): GeminiToolConfig {
  const allowed = choice.only && { allowedFunctionNames: choice.only };
  if (choice.mode === 'none') return { functionCallingConfig: { mode: 'NONE' } };
  if (choice.mode === 'required') return { functionCallingConfig: { mode: 'ANY', ...allowed } };
  // VALIDATED is AUTO with calls held to their schema, and the only non-forcing mode that accepts a list of names.
  const validated = choice.only !== undefined || tools.some(({ strict }) => strict);
  return { functionCallingConfig: { mode: validated ? 'VALIDATED' : 'AUTO', ...allowed } };
}

/**
 * Removes tools of other formats. A tool that Gemini runs costs the operator money. Permission is checked where
 * Gemini's own format is read; here its origin is unknown.
 */
function withoutOpaque(input: ChatRequest, dropped: string[]): ChatRequest {
  const isOpaque = (tool: unknown): tool is JsonObject => isObject(tool) && tool['type'] === 'opaque';
  const tools = readArray(input.tools);
  if (!tools.some(isOpaque)) return input;
  for (const [at, tool] of tools.entries())
    if (isOpaque(tool) && tool['dialect'] === 'gemini')
      throw invalid(`tools[${at}]`, 'is a tool that Gemini runs; it is supported only in Gemini’s own format');
  tellDropped(dropped, 'tools');
  const { tools: _, tool_choice: choice, ...rest } = input;
  const functions = (input.tools ?? []).filter((tool) => !isOpaque(tool));
  if (functions.length === 0) return rest;
  return { ...rest, tools: functions, ...(choice !== undefined && { tool_choice: choice }) };
}

/**
 * JSON Schema keywords that `responseJsonSchema` and `parametersJsonSchema` accept; any other is a 400. Source:
 * https://ai.google.dev/api/generate-content#GenerationConfig
 */
const KEPT: ReadonlySet<string> = new Set(
  (
    '$id $ref $anchor type format title description enum minItems maxItems minimum maximum required ' +
    'propertyOrdering additionalProperties items prefixItems anyOf oneOf properties $defs'
  ).split(' '),
);

/** Keywords that do not constrain a value, so dropping them is not reported. */
const SILENT: ReadonlySet<string> = new Set(
  '$schema $comment default examples example deprecated readOnly writeOnly const definitions nullable allOf'.split(' '),
);

const MAX_DEPTH = 64;

/** Converts a schema to Gemini's subset. Names of dropped constraints are added to `dropped` after `prefix`. */
export function geminiSchema(schema: Schema, prefix: string, dropped: string[], depth = 0): Schema {
  if (depth > MAX_DEPTH) {
    throw new GatewayError('invalid_request', `The schema is nested deeper than ${MAX_DEPTH} levels. Flatten it.`, {
      param: prefix,
    });
  }
  const clean = (value: unknown): unknown => (isObject(value) ? geminiSchema(value, prefix, dropped, depth + 1) : {});
  const cleanAll = (values: unknown): Schema =>
    Object.fromEntries(Object.entries(readObject(values)).map(([name, value]) => [name, clean(value)]));
  const drop = (word: string): void => tellDropped(dropped, `${prefix}.${word}`);

  const merged = mergeAllOf(schema);
  const result: JsonObject = {};
  for (const [word, value] of Object.entries(merged)) {
    if (word === '$ref') result[word] = String(value).replace('#/definitions/', '#/$defs/');
    else if (word === 'enum' || word === 'const') Object.assign(result, literals(word, value, merged, drop));
    else if (word === 'properties') result[word] = cleanAll(value);
    else if (word === '$defs' || word === 'definitions')
      result['$defs'] = { ...readObject(result['$defs']), ...readObject(cleanAll(value)) };
    else if (word === 'items' || (word === 'additionalProperties' && isObject(value))) result[word] = clean(value);
    else if (word === 'anyOf' || word === 'oneOf' || word === 'prefixItems') result[word] = readArray(value).map(clean);
    else if (KEPT.has(word)) result[word] ??= value;
    else if (!SILENT.has(word)) drop(word);
  }
  if (merged['nullable'] === true && merged['type'] !== undefined) result['type'] = withNull(merged['type']);
  return '$ref' in result ? onlyReference(result) : withNumbersOf(result, merged);
}

/** Next to a `$ref`, only keywords with a dollar sign are allowed. */
function onlyReference(schema: JsonObject): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([word]) => word.startsWith('$')));
}

/** `allOf` is not supported: its members are merged into the schema, with properties and `required` joined. */
function mergeAllOf(schema: Schema): Schema {
  const members = readArray(schema['allOf']).filter(isObject);
  if (members.length === 0) return schema;
  const merged: JsonObject = {};
  const properties: JsonObject = {};
  const required = new Set<unknown>();
  for (const member of [schema, ...members]) {
    withNumbersOf(Object.assign(merged, member), member);
    Object.assign(properties, readObject(member['properties']));
    for (const name of readArray(member['required'])) required.add(name);
  }
  return Object.assign(merged, {
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.size > 0 && { required: [...required] }),
  });
}

/** `enum` supports only strings and numbers: null moves into the type, and enums of booleans are dropped. */
function literals(word: string, value: unknown, schema: Schema, drop: (word: string) => void): JsonObject {
  const values = word === 'const' ? [value] : readArray(value);
  const named = values.filter((item) => typeof item === 'string' || typeof item === 'number');
  const nullable = values.includes(null);
  if (named.length + (nullable ? 1 : 0) < values.length) {
    drop(word);
    return values.every((item) => typeof item === 'boolean') ? { type: 'boolean' } : {};
  }
  if (named.length === 0) return { type: 'null' };
  return { enum: named, ...(nullable && schema['type'] !== undefined && { type: withNull(schema['type']) }) };
}

function withNull(type: unknown): readonly unknown[] {
  const types = Array.isArray(type) ? type : type === undefined ? [] : [type];
  return types.includes('null') ? types : [...types, 'null'];
}
