import { type ChatRequest, isObject, readArray, readObject, readString, type Schema } from '../../../core/index.ts';
import {
  ANSWER_TOOL,
  type AnswerFormat,
  type Conversation,
  type FunctionTool,
  invalid,
  readAnswerFormat,
  readToolChoice,
  readTools,
  type ToolMode,
  tellDropped,
} from '../kit/index.ts';
import { cacheControlOf, ownValue } from './blocks.ts';
import type { AnthropicTraits } from './models.ts';
import { fitsStrictly, isToolSchema, strictSchema } from './schema.ts';
import type { AnthropicTool, AnthropicToolChoice, OtherTool, OutputConfig } from './types.ts';

const ANY_OBJECT: Schema = { type: 'object', properties: {} };
const JSON_INSTRUCTION =
  'When you answer in text, the text must be one valid JSON object and nothing else: no prose, no code fence.';

/** The tools that are functions, and those of the vendor's own; those of other formats are left out. */
function splitTools(
  input: ChatRequest,
  dropped: string[],
): { readonly functions: ChatRequest; readonly others: readonly OtherTool[] } {
  const isOpaque = (tool: unknown): boolean => isObject(tool) && tool['type'] === 'opaque';
  const opaque = readArray(input.tools).filter(isOpaque);
  if (opaque.length === 0) return { functions: input, others: [] };
  const others = opaque.flatMap((tool) => ownValue(tool) ?? []);
  if (others.length < opaque.length) tellDropped(dropped, 'tools');
  return { functions: { ...input, tools: (input.tools ?? []).filter((tool) => !isOpaque(tool)) }, others };
}

/** A tool of the vendor's own, for a choice that names it. */
function asNamed(tool: OtherTool): FunctionTool {
  return { name: readString(tool['name']) ?? '', strict: false, source: tool, at: 'tools' };
}

/** How tools and answer format are asked for together. */
export interface ToolPlan {
  readonly tools: readonly (AnthropicTool | OtherTool)[];
  readonly choice?: AnthropicToolChoice;
  readonly format?: OutputConfig['format'];
  /** A system text that stands in for what cannot be asked for. */
  readonly instruction?: string;
}

/** Plans tools, tool choice and answer format as one; adds what is not held to `dropped`. */
export function planTools(
  input: ChatRequest,
  conversation: Conversation,
  traits: AnthropicTraits,
  dropped: string[],
): ToolPlan {
  const { functions, others } = splitTools(input, dropped);
  const tools = readTools(functions);
  const choice = readToolChoice(input, [...tools, ...others.map(asNamed)]);
  const declared = [
    ...tools.filter(({ name }) => isOffered(name, choice)).map((tool) => declare(tool, traits, dropped)),
    ...others,
  ];
  const plan: ToolPlan = {
    tools: declared.length > 0 ? declared : replayedTools(conversation),
    ...chosen(choice, declared, traits, dropped),
  };
  const wanted = readAnswerFormat(input);
  // Beside a call that must be made, a format has no use.
  if (wanted.kind === 'text' || choice.mode === 'required') return withParallel(plan, input);
  return withParallel(withFormat(plan, wanted, choice, traits), input);
}

/** The vendor has no list of allowed tools, so others are left out; beside one that is named they stay. */
function isOffered(name: string, { mode, only }: ToolMode): boolean {
  const isNamed = mode === 'required' && only?.length === 1;
  return only === undefined || isNamed || only.includes(name);
}

function declare(tool: FunctionTool, traits: AnthropicTraits, dropped: string[]): AnthropicTool {
  const schema = { ...ANY_OBJECT, ...tool.parameters };
  if (!isToolSchema(schema)) {
    throw invalid(`${tool.at}.function.parameters`, 'must be an object schema without a choice at its root');
  }
  const strict = tool.strict && traits.jsonSchema && fitsStrictly(schema);
  if (tool.strict && !strict) tellDropped(dropped, 'tools.strict');
  return {
    ...readObject(readObject(tool.source['dialect_fields'])['messages']),
    name: tool.name,
    ...(tool.description && { description: tool.description }),
    input_schema: strict ? strictSchema(schema) : schema,
    ...(strict && { strict }),
    ...cacheControlOf({ ...cacheControlOf(tool.source['function']), ...cacheControlOf(tool.source) }),
  };
}

/** The vendor refuses tool calls in the history of a request that declares no tools. */
function replayedTools({ turns }: Conversation): readonly AnthropicTool[] {
  const calls = turns.flatMap((turn) => (turn.kind === 'assistant' ? turn.calls : []));
  return [...new Set(calls.map(({ name }) => name))].map((name) => ({ name, input_schema: ANY_OBJECT }));
}

function chosen(
  { mode, only }: ToolMode,
  tools: readonly unknown[],
  traits: AnthropicTraits,
  dropped: string[],
): Pick<ToolPlan, 'choice' | 'instruction'> {
  if (tools.length === 0 || mode === 'none') return { choice: { type: 'none' } };
  if (mode === 'auto') return { choice: { type: 'auto' } };
  const [name] = only ?? [];
  const single = only?.length === 1 && name !== undefined;
  if (traits.forcedTools) return { choice: single ? { type: 'tool', name } : { type: 'any' } };
  dropped.push('tool_choice');
  const which = single ? `the tool \`${name}\`` : 'one of your tools';
  return { choice: { type: 'auto' }, instruction: `You must answer by calling ${which}. Do not answer in text.` };
}

function withFormat(
  plan: ToolPlan,
  wanted: Exclude<AnswerFormat, { kind: 'text' }>,
  { mode }: ToolMode,
  traits: AnthropicTraits,
): ToolPlan {
  if (wanted.kind === 'json') return instructed(plan, JSON_INSTRUCTION);
  const { schema, description } = wanted;
  if (traits.jsonSchema && fitsStrictly(schema)) {
    return { ...plan, format: { type: 'json_schema', schema: strictSchema(schema) } };
  }
  if (!traits.forcedTools || !isToolSchema(schema)) {
    return instructed(plan, `${JSON_INSTRUCTION} It must conform to this JSON Schema:\n${JSON.stringify(schema)}`);
  }
  const tool: AnthropicTool = {
    name: ANSWER_TOOL,
    description: description ?? 'Gives the final answer to the user. Call it when no other tool is needed.',
    input_schema: { type: 'object', ...schema },
  };
  const free = mode === 'auto' && plan.choice?.type === 'auto';
  return {
    ...plan,
    tools: [...plan.tools, tool],
    choice: free ? { type: 'any' } : { type: 'tool', name: ANSWER_TOOL },
  };
}

function instructed(plan: ToolPlan, text: string): ToolPlan {
  return { ...plan, instruction: plan.instruction ? `${plan.instruction} ${text}` : text };
}

function withParallel(plan: ToolPlan, input: ChatRequest): ToolPlan {
  if (plan.tools.length === 0) {
    const { choice: _choice, ...rest } = plan;
    return rest;
  }
  if (input.parallel_tool_calls !== false || !plan.choice || plan.choice.type === 'none') return plan;
  return { ...plan, choice: { ...plan.choice, disable_parallel_tool_use: true } };
}
