import {
  type ChatChoice,
  type ChatChunk,
  type ChatMessage,
  type ChatRequest,
  type ChunkChoice,
  type FieldRules,
  type FinishReason,
  isObject,
  readArray,
  readObject,
  readString,
  type Tool,
  type ToolCallDelta,
  type ToolChoice,
} from '../../../core/index.ts';
import { invalid } from './content.ts';

/** What becomes of the old form at every vendor; a part of its field table. */
export const LEGACY_FUNCTIONS: FieldRules = Object.freeze({
  functions: { rule: 'emulated', note: 'Become `tools`; the response has `function_call`, as the old form has it.' },
  function_call: { rule: 'emulated', note: 'Becomes `tool_choice`.' },
});

/** Whether a request is written with `functions`, which came before `tools`: then its response is, too. */
export function isLegacy({ functions, tools }: ChatRequest): boolean {
  return readArray(functions).length > 0 && readArray(tools).length === 0;
}

/** A request with `functions`, `function_call` and the messages that go with them as tools. */
export function toolsOfFunctions(input: ChatRequest): ChatRequest {
  const { functions, function_call, ...request } = input;
  const isOld = ({ role, function_call: called }: ChatMessage): boolean => role === 'function' || isObject(called);
  const messages = input.messages.some(isOld) ? readCalls(input.messages) : input.messages;
  const own = Array.isArray(input.tools) ? input.tools : [];
  const named = new Set(own.map((tool) => readObject(readObject(tool)['function'])['name']));
  const added = readArray(functions)
    .filter((called) => !named.has(readObject(called)['name']))
    .map(toolOf);
  const tools = [...own, ...added];
  const choice = input.tool_choice ?? choiceOf(function_call);
  return {
    ...request,
    messages,
    ...(tools.length > 0 && { tools }),
    ...(choice !== undefined && tools.length > 0 && { tool_choice: choice }),
    // The old form has room for one call.
    ...(isLegacy(input) && { parallel_tool_calls: false }),
  };
}

function toolOf(called: unknown, index: number): Tool {
  const { name, description, parameters } = readObject(called);
  if (typeof name !== 'string') throw invalid(`functions[${index}].name`, 'must be a string');
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      ...(isObject(parameters) && { parameters }),
    },
  };
}

function choiceOf(value: unknown): ToolChoice | undefined {
  if (value === 'none' || value === 'auto') return value;
  const name = readString(readObject(value)['name']);
  return name === undefined ? undefined : { type: 'function', function: { name } };
}

/** Calls get ids of their place, and each result the id of the last call of its name that has none. */
function readCalls(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const open: { readonly id: string; readonly name: string }[] = [];
  return messages.map((message, index): ChatMessage => {
    const { function_call, ...rest } = message;
    if (message.role === 'function') {
      const at = open.findLastIndex(({ name }) => name === message.name);
      const [call] = at < 0 ? [] : open.splice(at, 1);
      if (!call) throw invalid(`messages[${index}]`, 'is the result of no `function_call` before it');
      return { role: 'tool', tool_call_id: call.id, content: message.content ?? '' };
    }
    if (!isObject(function_call) || message.role !== 'assistant' || message.tool_calls) return message;
    const name = readString(function_call['name']) ?? '';
    const id = `call_function_${index}`;
    open.push({ id, name });
    const text = readString(function_call['arguments']) ?? '{}';
    return { ...rest, tool_calls: [{ id, type: 'function', function: { name, arguments: text } }] };
  });
}

/** A choice whose first tool call is a `function_call`. */
export function functionChoice(choice: ChatChoice): ChatChoice {
  const { tool_calls: calls, ...message } = choice.message;
  const [call] = calls ?? [];
  if (!call) return choice;
  const { name, arguments: text } = call.function;
  return {
    ...choice,
    message: { ...message, function_call: { name, arguments: text } },
    finish_reason: functionFinish(choice.finish_reason),
  };
}

/** A chunk in the old form; undefined when it was about another call than the first. */
export function functionChunk(chunk: ChatChunk): ChatChunk | undefined {
  const choices = chunk.choices.flatMap((choice): readonly ChunkChoice[] => {
    const { tool_calls: calls, ...delta } = choice.delta;
    const reason = choice.finish_reason && functionFinish(choice.finish_reason);
    if (!calls) return [{ ...choice, finish_reason: reason }];
    const first = calls.filter(({ index }) => index === 0).map(functionDelta);
    if (first.length === 0 && Object.keys(delta).length === 0 && reason === null) return [];
    return [{ ...choice, delta: Object.assign({}, delta, ...first), finish_reason: reason }];
  });
  return choices.length === 0 && chunk.choices.length > 0 ? undefined : { ...chunk, choices };
}

function functionDelta({ function: called = {} }: ToolCallDelta): { readonly function_call: object } {
  const { name, arguments: text } = called;
  return { function_call: { ...(name !== undefined && { name }), ...(text !== undefined && { arguments: text }) } };
}

function functionFinish(reason: FinishReason): FinishReason {
  return reason === 'tool_calls' ? 'function_call' : reason;
}
