import type { ChatMessage, ContentPart, JsonObject, TextPart } from '../../../contract/index.ts';
import { isObject, parseExact, writeJson } from '../../../contract/index.ts';
import { invalid, type Located, readParts, textOf } from './content.ts';

/** Validated tool call of the history. */
export interface CalledTool {
  readonly id: string;
  readonly name: string;
  /** JSON text as written by the model, which may be invalid. */
  readonly arguments: string;
  /** Original call, including vendor fields. */
  readonly source: JsonObject;
  readonly at: string;
}

export interface ToolResult {
  readonly call: CalledTool;
  readonly parts: readonly Located<ContentPart>[];
  readonly message: ChatMessage;
}

export type Turn =
  | { readonly kind: 'user'; readonly parts: readonly Located<ContentPart>[]; readonly message: ChatMessage }
  | {
      readonly kind: 'assistant';
      readonly parts: readonly Located<ContentPart>[];
      readonly calls: readonly CalledTool[];
      readonly message: ChatMessage;
    }
  /** All results of the preceding assistant turn, in the order of its calls. */
  | { readonly kind: 'results'; readonly results: readonly ToolResult[] };

export interface Conversation {
  /** System and developer texts at any position, in order. */
  readonly system: readonly Located<TextPart>[];
  readonly turns: readonly Turn[];
}

/**
 * Reads messages for vendors that keep instructions apart and pair tool calls with results strictly. Like OpenAI,
 * throws `invalid_request` for a call without its result or a result without its call.
 */
export function readConversation(messages: readonly ChatMessage[]): Conversation {
  const system: Located<TextPart>[] = [];
  const turns: Turn[] = [];
  for (let index = 0; index < messages.length; index += 1) {
    const message = messages[index];
    if (!message) continue;
    const at = `messages[${index}]`;
    const parts = readParts(message.content, `${at}.content`);
    if (message.role === 'system' || message.role === 'developer') system.push(...parts.map(asSystemText));
    else if (message.role === 'user') turns.push({ kind: 'user', parts, message });
    else if (message.role === 'tool') {
      throw invalid(at, 'is a tool result without a matching entry in `tool_calls` of the preceding assistant message');
    } else {
      const calls = readCalls(message, at);
      turns.push({ kind: 'assistant', parts: [...parts, ...refusalOf(message, parts, at)], calls, message });
      if (calls.length === 0) continue;
      const last = index + countResults(messages, index + 1);
      turns.push({ kind: 'results', results: pairResults(calls, messages, index + 1, last) });
      index = last;
    }
  }
  return { system, turns };
}

/** Arguments of a call as an object. Any other value is kept under `arguments`, so that nothing is lost. */
export function parseArguments(text: string): JsonObject {
  if (text.trim() === '') return {};
  const value = parseExact(text);
  return isObject(value) ? value : { arguments: value ?? text };
}

function asSystemText({ value, at }: Located<ContentPart>): Located<TextPart> {
  if (textOf(value) === undefined) throw invalid(`${at}.type`, 'must be `text` in a system message');
  return { value: value as TextPart, at };
}

function refusalOf(message: ChatMessage, parts: readonly unknown[], at: string): readonly Located<ContentPart>[] {
  if (parts.length > 0 || typeof message.refusal !== 'string' || message.refusal === '') return [];
  return [{ value: { type: 'text', text: message.refusal }, at: `${at}.refusal` }];
}

function readCalls(message: ChatMessage, at: string): readonly CalledTool[] {
  const calls: unknown = message.tool_calls ?? [];
  if (!Array.isArray(calls)) throw invalid(`${at}.tool_calls`, 'must be an array');
  const seen = new Set<string>();
  return calls.map((source: unknown, index) => {
    const path = `${at}.tool_calls[${index}]`;
    const called = isObject(source) ? source['function'] : undefined;
    if (!isObject(source) || !isObject(called)) throw invalid(path, 'must be a call of a `function`');
    const { id } = source;
    const { name, arguments: text } = called;
    if (typeof id !== 'string' || id === '') throw invalid(`${path}.id`, 'must be a string');
    if (seen.has(id)) throw invalid(`${path}.id`, 'repeats the id of another call in the same message');
    seen.add(id);
    if (typeof name !== 'string' || name === '') throw invalid(`${path}.function.name`, 'must be a string');
    return { id, name, arguments: argumentText(text), source, at: path };
  });
}

function argumentText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : writeJson(value);
}

function countResults(messages: readonly ChatMessage[], from: number): number {
  let end = from;
  while (messages[end]?.role === 'tool') end += 1;
  return end - from;
}

function pairResults(
  calls: readonly CalledTool[],
  messages: readonly ChatMessage[],
  first: number,
  last: number,
): readonly ToolResult[] {
  const called = new Map(calls.map((call) => [call.id, call]));
  const byId = new Map<string, ToolResult>();
  for (let index = first; index <= last; index += 1) {
    const message = messages[index];
    const at = `messages[${index}]`;
    const call = called.get(message?.tool_call_id ?? '');
    if (!message || !call) throw invalid(`${at}.tool_call_id`, 'matches no call of the preceding assistant message');
    if (byId.has(call.id)) throw invalid(`${at}.tool_call_id`, 'repeats the result of a call');
    byId.set(call.id, { call, parts: readParts(message.content, `${at}.content`), message });
  }
  return calls.map((call) => {
    const result = byId.get(call.id);
    if (!result) throw invalid(`${call.at}.id`, 'has no result; add a `tool` message for every call after it');
    return result;
  });
}
