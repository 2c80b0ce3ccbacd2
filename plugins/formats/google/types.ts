import {
  type ChatRequest,
  type DialectNeed,
  type JsonObject,
  MAX_MESSAGES,
  readArray,
  type Schema,
} from '../../../contract/index.ts';
import { invalid } from '../kit/index.ts';

/**
 * Wire types of generateContent, limited to the fields used here. Source: https://ai.google.dev/api/generate-content
 */

export interface GeminiPart {
  readonly text?: string;
  /** True if the text is the model's thinking. */
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
  readonly fileData?: { readonly mimeType?: string; readonly fileUri: string };
  readonly functionCall?: { readonly id?: string; readonly name: string; readonly args: JsonObject };
  readonly functionResponse?: {
    readonly id?: string;
    readonly name: string;
    readonly response: JsonObject;
    readonly parts?: readonly GeminiPart[];
  };
}

export interface GeminiContent {
  readonly role: 'user' | 'model';
  readonly parts: readonly GeminiPart[];
}

export interface GeminiFunction {
  readonly name: string;
  readonly description: string;
  readonly parametersJsonSchema?: Schema;
}

export interface GeminiToolConfig {
  readonly functionCallingConfig: {
    readonly mode: 'AUTO' | 'NONE' | 'ANY' | 'VALIDATED';
    readonly allowedFunctionNames?: readonly string[];
  };
}

/** Thinking options of `generationConfig`. */
export interface GeminiThinking {
  readonly thinkingLevel?: string;
  readonly thinkingBudget?: number;
  readonly includeThoughts?: boolean;
}

export interface GeminiRequest {
  readonly contents: readonly GeminiContent[];
  readonly systemInstruction?: { readonly parts: readonly GeminiPart[] };
  readonly tools?: readonly { readonly functionDeclarations: readonly GeminiFunction[] }[];
  readonly toolConfig?: GeminiToolConfig;
  readonly safetySettings?: readonly unknown[];
  readonly generationConfig?: JsonObject;
  /** `cachedContents/…` */
  readonly cachedContent?: string;
}

/** Request body: checked by `schema.ts`, read field by field because each has two spellings. */
export type GeminiBody = JsonObject;

/** State of reading a request. */
export interface Reading {
  /** Canonical paths with the caller's. */
  readonly places: [canonical: string, caller: string][];
  readonly dropped: string[];
  readonly needs: DialectNeed[];
}

export type ChatFields = Partial<ChatRequest>;

/**
 * Google's servers accept every field in two spellings, `maxOutputTokens` and `max_output_tokens`. Code uses the
 * first and finds either.
 */

/** Snake_case spelling of a field name. */
export function snakeOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Spelling in which an object has a field; camelCase if it is absent. */
export function nameIn(object: JsonObject, name: string): string {
  const snake = snakeOf(name);
  return isSet(object[name]) || !isSet(object[snake]) ? name : snake;
}

/** Field in either spelling; undefined if absent or null. */
export function fieldOf(object: JsonObject, name: string): unknown {
  return object[nameIn(object, name)] ?? undefined;
}

/** Returns a list; Google's servers also accept a single object in place of a list of one. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return readArray(value);
  return isSet(value) ? [value] : [];
}

/**
 * Rejects ambiguous fields: both spellings at once, or a third one that a lenient reader might accept. Otherwise the
 * vendor could read another value than the one that was checked and priced.
 */
export function checkSpelling(object: JsonObject, known: readonly string[], at: string): void {
  const names = new Map(known.map((name) => [plain(name), name]));
  for (const written of Object.keys(object)) {
    // Names that differ only in punctuation (`_responseJsonSchema`, `responseJsonSchema`) are separate fields.
    const name = known.find((each) => written === each || written === snakeOf(each)) ?? names.get(plain(written));
    if (name === undefined || written === name) continue;
    const param = at === '' ? written : `${at}.${written}`;
    if (written !== snakeOf(name)) throw invalid(param, `must be spelled \`${name}\``);
    if (isSet(object[name]) && isSet(object[written])) throw invalid(param, `cannot be combined with \`${name}\``);
  }
}

/** Unknown fields of an object, unchanged. */
export function othersOf(object: JsonObject, known: readonly string[]): JsonObject {
  const names = new Set(known.flatMap((name) => [name, snakeOf(name)]));
  return Object.fromEntries(Object.entries(object).filter(([name, value]) => !names.has(name) && isSet(value)));
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function plain(name: string): string {
  return name.replaceAll('_', '').toLowerCase();
}

/** Types and required fields of known fields, in both spellings; unknown fields, parts and tools pass. */

const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });

/** Adds each property under both of its names. */
const both = (properties: Readonly<Record<string, Schema>>): Schema =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) =>
      [...new Set([name, snakeOf(name)])].map((each) => [each, schema]),
    ),
  );

/**
 * Reference to one of {@link DEFINITIONS}, which apply to objects only. Each is compiled once, however often it is
 * used.
 */
const of = (definition: string): Schema => ({ $ref: `#/$defs/${definition}` });

/** A list, or its only member: Google's servers accept both. */
const listed = (definition: string): Schema => ({
  type: ['array', 'object', 'null'],
  items: { type: 'object', ...of(definition) },
  ...of(definition),
});

const text = nullable('string');
const blob: Schema = { properties: both({ mimeType: text, data: text, displayName: text }) };
const file: Schema = { properties: both({ mimeType: text, fileUri: text, displayName: text }) };
const name: Schema = { type: 'string', minLength: 1, maxLength: 256 };

const part: Schema = {
  properties: both({
    text,
    thought: nullable('boolean'),
    thoughtSignature: text,
    inlineData: nullable('object', of('blob')),
    fileData: nullable('object', of('file')),
    functionCall: nullable('object', {
      required: ['name'],
      properties: { id: nullable('string', { maxLength: 4096 }), name, args: nullable('object') },
    }),
    functionResponse: nullable('object', {
      properties: {
        id: nullable('string', { maxLength: 4096 }),
        name: text,
        response: {},
        parts: nullable('array', { items: { type: 'object' } }),
      },
    }),
  }),
};

const content: Schema = {
  properties: { role: { enum: ['user', 'model', 'function', 'tool', '', null] }, parts: listed('part') },
};

const tool: Schema = { properties: both({ functionDeclarations: listed('declaration') }) };

const declaration: Schema = {
  required: ['name'],
  properties: both({ name, description: text, parameters: nullable('object'), parametersJsonSchema: {} }),
};

const calling: Schema = {
  properties: both({
    mode: { enum: ['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED', 'auto', 'any', 'none', 'validated', null] },
    allowedFunctionNames: nullable('array', { items: { type: 'string' }, maxItems: 1024 }),
  }),
};

const penalty = nullable('number', { minimum: -2, maximum: 2 });

const thinking: Schema = {
  properties: both({
    includeThoughts: nullable('boolean'),
    thinkingBudget: nullable('integer', { minimum: -1, maximum: 2_147_483_647 }),
    thinkingLevel: nullable('string', { maxLength: 32 }),
  }),
};

const generation: Schema = {
  properties: both({
    maxOutputTokens: nullable('integer', { minimum: 1, maximum: 2_147_483_647 }),
    temperature: nullable('number', { minimum: 0, maximum: 2 }),
    topP: nullable('number', { minimum: 0, maximum: 1 }),
    topK: nullable('number', { minimum: 0 }),
    stopSequences: nullable('array', { items: { type: 'string' }, maxItems: 16 }),
    candidateCount: nullable('integer', { minimum: 1, maximum: 128 }),
    responseMimeType: text,
    responseSchema: nullable('object'),
    responseJsonSchema: {},
    thinkingConfig: nullable('object', of('thinking')),
    seed: nullable('integer', { minimum: -2_147_483_648, maximum: 2_147_483_647 }),
    responseLogprobs: nullable('boolean'),
    logprobs: nullable('integer', { minimum: 0, maximum: 20 }),
    presencePenalty: penalty,
    frequencyPenalty: penalty,
    responseModalities: nullable('array', { items: { type: 'string' }, maxItems: 8 }),
    speechConfig: nullable('object'),
    mediaResolution: text,
  }),
};

const safety: Schema = { properties: { category: text, threshold: text } };

const DEFINITIONS: Readonly<Record<string, Schema>> = {
  part,
  content,
  declaration,
  tool,
  calling,
  thinking,
  generation,
  safety,
  blob,
  file,
};

const PROPERTIES: Readonly<Record<string, Schema>> = both({
  model: nullable('string', { maxLength: 256 }),
  contents: { ...listed('content'), minItems: 1, maxItems: MAX_MESSAGES },
  systemInstruction: nullable('object', { properties: { role: text, parts: listed('part') } }),
  tools: listed('tool'),
  toolConfig: nullable('object', {
    properties: both({ functionCallingConfig: nullable('object', of('calling')) }),
  }),
  generationConfig: nullable('object', of('generation')),
  safetySettings: listed('safety'),
  cachedContent: text,
  labels: nullable('object'),
  serviceTier: nullable('string', { maxLength: 64 }),
}) as Readonly<Record<string, Schema>>;

const example = { contents: [{ role: 'user', parts: [{ text: 'Hello there' }] }] };

export const GENERATE_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:GenerateContentRequest',
  examples: [example],
  type: 'object',
  required: ['contents'],
  properties: PROPERTIES,
  $defs: DEFINITIONS,
});

const { contents: _, ...OTHERS } = PROPERTIES;
const counted: Schema = { properties: PROPERTIES };

/** Body of `:countTokens`: contents alone, or the complete request that they belong to. */
export const COUNT_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:CountTokensRequest',
  examples: [example],
  type: 'object',
  properties: {
    ...OTHERS,
    contents: listed('content'),
    ...both({ generateContentRequest: nullable('object', of('counted')) }),
  },
  $defs: { ...DEFINITIONS, counted },
});

export const GENERATE_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:GenerateContentResponse',
  type: 'object',
  required: ['candidates', 'modelVersion', 'responseId'],
  properties: {
    candidates: {
      type: 'array',
      items: {
        type: 'object',
        required: ['content', 'finishReason', 'index'],
        properties: {
          content: { type: 'object', ...of('content') },
          finishReason: { type: 'string' },
          index: { type: 'integer' },
        },
      },
    },
    usageMetadata: {
      type: 'object',
      properties: {
        promptTokenCount: { type: 'integer' },
        candidatesTokenCount: { type: 'integer' },
        thoughtsTokenCount: { type: 'integer' },
        cachedContentTokenCount: { type: 'integer' },
        totalTokenCount: { type: 'integer' },
      },
    },
    modelVersion: { type: 'string' },
    responseId: { type: 'string' },
  },
  $defs: { part, content, blob, file },
});

export const COUNT_RESPONSE: Schema = Object.freeze({
  type: 'object',
  required: ['totalTokens'],
  properties: { totalTokens: { type: 'integer' } },
});
