import { MAX_MESSAGES, type Schema } from '../../../core/index.ts';
import { snakeOf } from './spelling.ts';

/** Types and required fields of what is known, in both spellings; unknown fields, parts and tools pass. */

const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });

/** Each property by both of its names. */
const both = (properties: Readonly<Record<string, Schema>>): Schema =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) =>
      [...new Set([name, snakeOf(name)])].map((each) => [each, schema]),
    ),
  );

/** One of {@link DEFINITIONS}, which say nothing of what is no object: each is compiled once, in whatever places it stands. */
const of = (definition: string): Schema => ({ $ref: `#/$defs/${definition}` });

/** What Google's servers take as a list: a list, or its only member. */
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
  ...{ part, content, declaration, tool, calling, thinking, generation, safety, blob, file },
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

/** Of `:countTokens`: the contents alone, or the whole request that they would be sent with. */
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
