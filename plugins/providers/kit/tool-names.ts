import { createHash } from 'node:crypto';
import {
  type ChatChoice,
  type ChatChunk,
  type ChatMessage,
  type ChatRequest,
  isObject,
  type JsonObject,
  readArray,
} from '../../../core/index.ts';

/** What every vendor takes as the name of a tool. */
export const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

const MAX_NAME = 64;
const HASH_LENGTH = 8;

/** Names of tools that a vendor refuses, and what they are called there. */
export interface ToolNames {
  /** The request with every name as the vendor takes it. */
  rename(request: ChatRequest): ChatRequest;
  /** A choice of the response with the caller's names. */
  restoreChoice(choice: ChatChoice): ChatChoice;
  /** A chunk with the caller's names: a codec's chunks name a call once, and whole. */
  restoreChunk(chunk: ChatChunk): ChatChunk;
}

/** Those of a request's names that `valid` does not match; undefined when there is none. */
export function findToolNames(names: ReadonlySet<string>, valid: RegExp): ToolNames | undefined {
  const refused = [...names].filter((name) => !valid.test(name));
  if (refused.length === 0) return undefined;
  const taken = new Set(names);
  const sent = new Map<string, string>();
  for (const name of refused) {
    const clean = cleanName(name, valid);
    const free = taken.has(clean) ? hashedName(clean, name) : clean;
    taken.add(free);
    sent.set(name, free);
  }
  const told = new Map([...sent].map(([name, free]) => [free, name]));
  return {
    rename: (request) => renameAll(request, (name) => sent.get(name) ?? name),
    restoreChoice: (choice) => restoreChoice(choice, told),
    restoreChunk: (chunk) => restoreChunk(chunk, told),
  };
}

function cleanName(name: string, valid: RegExp): string {
  const clean = name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME);
  return valid.test(clean) ? clean : `_${clean}`.slice(0, MAX_NAME);
}

function hashedName(clean: string, name: string): string {
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH);
  return `${clean.slice(0, MAX_NAME - HASH_LENGTH - 1)}_${hash}`;
}

type Rename = (name: string) => string;

function renameAll(request: ChatRequest, rename: Rename): ChatRequest {
  const { tools, tool_choice: choice, messages } = request;
  return {
    ...request,
    ...(Array.isArray(tools) && { tools: tools.map((tool) => renameFunction(tool, rename)) }),
    ...(isObject(choice) && { tool_choice: renameChoice(choice, rename) }),
    messages: messages.map((message) => renameMessage(message, rename)),
  };
}

function renameChoice<T extends JsonObject>(choice: T, rename: Rename): T {
  const { allowed_tools: allowed } = choice;
  const renamed = renameFunction(choice, rename);
  if (!isObject(allowed)) return renamed;
  const tools = readArray(allowed['tools']).map((tool) => (isObject(tool) ? renameFunction(tool, rename) : tool));
  return { ...renamed, allowed_tools: { ...allowed, tools } };
}

function renameMessage(message: ChatMessage, rename: Rename): ChatMessage {
  const { tool_calls: calls, name, role } = message;
  const isNamed = role === 'tool' && typeof name === 'string';
  if (!Array.isArray(calls) && !isNamed) return message;
  return {
    ...message,
    ...(Array.isArray(calls) && { tool_calls: calls.map((call) => renameFunction(call, rename)) }),
    ...(isNamed && { name: rename(name) }),
  };
}

/** A tool, call or choice with another name for its function. */
function renameFunction<T extends object>(item: T, rename: Rename): T {
  const called = 'function' in item ? item.function : undefined;
  if (!isObject(called) || typeof called['name'] !== 'string') return item;
  return { ...item, function: { ...called, name: rename(called['name']) } };
}

function restoreChoice(choice: ChatChoice, told: ReadonlyMap<string, string>): ChatChoice {
  const calls = choice.message.tool_calls;
  if (!calls) return choice;
  const restored = calls.map((call) => renameFunction(call, (name) => told.get(name) ?? name));
  return { ...choice, message: { ...choice.message, tool_calls: restored } };
}

function restoreChunk(chunk: ChatChunk, told: ReadonlyMap<string, string>): ChatChunk {
  if (!chunk.choices.some(({ delta }) => delta.tool_calls)) return chunk;
  const choices = chunk.choices.map((choice) => {
    const calls = choice.delta.tool_calls;
    if (!calls) return choice;
    const restored = calls.map((call) => renameFunction(call, (name) => told.get(name) ?? name));
    return { ...choice, delta: { ...choice.delta, tool_calls: restored } };
  });
  return { ...chunk, choices };
}
