import { type ChatRequest, isObject, type JsonObject, readArray } from '../../../core/index.ts';
import {
  ANSWER_TOOL,
  type AnswerFormat,
  type FunctionTool,
  invalid,
  readAnswerFormat,
  readToolChoice,
  readTools,
  type ToolMode,
  tellDropped,
} from '../kit/index.ts';
import type { GeminiTraits } from './models.ts';
import { geminiSchema } from './schema.ts';
import type { GeminiFunction, GeminiToolConfig } from './types.ts';

const JSON_INSTRUCTION =
  'When you answer in text, the text must be one valid JSON object and nothing else: no prose, no code fence.';

/** How tools and answer format are asked for together. */
export interface ToolPlan {
  readonly functions: readonly GeminiFunction[];
  readonly toolConfig?: GeminiToolConfig;
  /** For `generationConfig`. */
  readonly format: JsonObject;
  /** A system text that stands in for a format which cannot be asked for. */
  readonly instruction?: string;
}

/**
 * Plans tools and answer format as one. Models before Gemini 3 refuse a JSON format beside tools, and no model takes it
 * beside a forced call, where it has no use: the answer is a call then.
 */
export function planTools(sent: ChatRequest, traits: GeminiTraits, dropped: string[]): ToolPlan {
  const input = withoutOpaque(sent, dropped);
  const tools = readTools(input);
  const choice = readToolChoice(input, tools);
  const wanted = readAnswerFormat(input);
  const functions = tools.map((tool) => declare(tool, dropped));
  if (tools.length === 0) return { functions: [], format: geminiFormat(wanted, dropped) };
  const plan = { functions, toolConfig: toolConfig(choice, tools), format: {} };
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

/** An object without properties is refused as a schema; leaving it out says the same. */
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

function toolConfig(choice: ToolMode, tools: readonly FunctionTool[]): GeminiToolConfig {
  const allowed = choice.only && { allowedFunctionNames: choice.only };
  if (choice.mode === 'none') return { functionCallingConfig: { mode: 'NONE' } };
  if (choice.mode === 'required') return { functionCallingConfig: { mode: 'ANY', ...allowed } };
  // VALIDATED is AUTO that holds calls to their schema, and the only non-forcing mode that takes a list of names.
  const validated = choice.only !== undefined || tools.some(({ strict }) => strict);
  return { functionCallingConfig: { mode: validated ? 'VALIDATED' : 'AUTO', ...allowed } };
}

/**
 * A request without tools of other formats. One that Gemini runs itself costs the operator money, and who may use it is checked where
 * Gemini's own format is read; here nobody knows where it came from.
 */
function withoutOpaque(input: ChatRequest, dropped: string[]): ChatRequest {
  const isOpaque = (tool: unknown): tool is JsonObject => isObject(tool) && tool['type'] === 'opaque';
  const tools = readArray(input.tools);
  if (!tools.some(isOpaque)) return input;
  for (const [at, tool] of tools.entries())
    if (isOpaque(tool) && tool['dialect'] === 'gemini')
      throw invalid(`tools[${at}]`, 'is a tool that Gemini runs itself: it goes there in Gemini’s own format only');
  tellDropped(dropped, 'tools');
  const { tools: _, tool_choice: choice, ...rest } = input;
  const functions = (input.tools ?? []).filter((tool) => !isOpaque(tool));
  if (functions.length === 0) return rest;
  return { ...rest, tools: functions, ...(choice !== undefined && { tool_choice: choice }) };
}
