import { type ChatMessage, isObject, type JsonObject, type NativeChange, type Tool } from '../../../core/index.ts';
import { readParts, textOf } from '../../providers/kit/index.ts';
import { fieldOf, listOf } from './spelling.ts';
import type { GeminiBody } from './types.ts';

/** What was added to a list at its ends, when every old member kept its identity; undefined when it changed in another way. */
function addedTo<T>(
  before: readonly T[],
  after: readonly T[],
): { readonly first: readonly T[]; readonly last: readonly T[] } | undefined {
  const [head] = before;
  const start = head === undefined ? after.length : after.indexOf(head);
  if (start < 0 || before.some((item, at) => after[start + at] !== item)) return undefined;
  return { first: after.slice(0, start), last: after.slice(start + before.length) };
}

/**
 * Messages that hooks added: instructions go in front of the caller's, turns of plain text before or behind the caller's contents.
 * Undefined when one of them cannot be said like that; the call is translated then.
 */
export function patchMessages(
  body: GeminiBody,
  { before, after }: Pick<NativeChange, 'before' | 'after'>,
): { readonly contents?: unknown; readonly systemInstruction?: JsonObject } | undefined {
  if (before.messages === after.messages) return {};
  const added = addedTo(before.messages, after.messages);
  if (!added) return undefined;
  const system = added.first.filter(isSystem);
  const first = contentsOf(added.first.filter((message) => !isSystem(message)));
  const last = contentsOf(added.last);
  const instructions = textsOf(system);
  if (!first || !last || !instructions) return undefined;
  // A turn in front of the caller's system text would come behind it.
  const own = fieldOf(body, 'systemInstruction');
  const isMoved = first.length > 0 || last.length > 0;
  return {
    ...(isMoved && { contents: [...first, ...listOf(fieldOf(body, 'contents')), ...last] }),
    ...(instructions.length > 0 && {
      systemInstruction: isObject(own)
        ? { ...own, parts: [...instructions, ...listOf(own['parts'])] }
        : { parts: instructions },
    }),
  };
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

function contentsOf(messages: readonly ChatMessage[]): readonly JsonObject[] | undefined {
  const contents = messages.map((message) => {
    const parts = textsOf([message]);
    const isPlain = (message.role === 'user' || message.role === 'assistant') && !message.tool_calls;
    return isPlain && parts ? { role: message.role === 'user' ? 'user' : 'model', parts } : undefined;
  });
  return contents.includes(undefined) ? undefined : contents.filter((content) => content !== undefined);
}

function textsOf(messages: readonly ChatMessage[]): readonly JsonObject[] | undefined {
  const texts = messages.flatMap(({ content }) => readParts(content, 'messages').map(({ value }) => textOf(value)));
  return texts.includes(undefined) ? undefined : texts.map((text) => ({ text }));
}

/** Functions that hooks added, as tools of their own beside the caller's. */
export function patchTools(
  body: GeminiBody,
  { before, after }: Pick<NativeChange, 'before' | 'after'>,
): { readonly tools?: unknown } | undefined {
  if (before.tools === after.tools) return {};
  const added = addedTo(before.tools ?? [], after.tools ?? []);
  // A tool of another kind has no function, whatever its type here says.
  if (!added || [...added.first, ...added.last].some((tool) => !isObject(tool['function']))) return undefined;
  return { tools: [...declare(added.first), ...listOf(fieldOf(body, 'tools')), ...declare(added.last)] };
}

function declare(tools: readonly Tool[]): readonly JsonObject[] {
  if (tools.length === 0) return [];
  const functionDeclarations = tools.map(({ function: { name, description, parameters } }) => ({
    name,
    ...(description !== undefined && { description }),
    ...(parameters !== undefined && { parametersJsonSchema: parameters }),
  }));
  return [{ functionDeclarations }];
}
