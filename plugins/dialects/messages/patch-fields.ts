import {
  type ChatRequest,
  isObject,
  type JsonObject,
  type NativeChange,
  readObject,
  type Tool,
} from '../../../core/index.ts';
import type { MessagesRequest, MessagesTool } from './types.ts';

/** The provider's least budget of thinking. */
const MIN_BUDGET = 1024;

/** Fields at a price that the gateway does not know; a value that costs nothing more stays. */
const UNPRICED: Readonly<Record<string, unknown>> = Object.freeze({ speed: 'standard', inference_geo: undefined });

/** The fields that a change sets; undefined takes one away. The whole is undefined where a change cannot be said. */
export function patchFields(body: MessagesRequest, change: NativeChange, dropped: string[]): JsonObject | undefined {
  const { before, after, model, stream } = change;
  // What thinks how much depends on the model: the provider's codec knows.
  if (before.reasoning_effort !== after.reasoning_effort) return undefined;
  const tools = patchTools(body, before, after);
  if (!tools) return undefined;
  const isChanged = (field: string): boolean => before[field] !== after[field];
  if (isChanged('metadata')) dropped.push('metadata');
  return {
    model,
    ...patchLimit(body, before, after, dropped),
    ...(isChanged('temperature') && { temperature: after.temperature }),
    ...(isChanged('top_p') && { top_p: after.top_p }),
    ...(isChanged('stop') && { stop_sequences: typeof after.stop === 'string' ? [after.stop] : after.stop }),
    ...(isChanged('user') && { metadata: patchUser(body, after) }),
    ...(isChanged('service_tier') && { service_tier: after.service_tier === 'default' ? 'standard_only' : undefined }),
    ...patchOwn(before, after),
    ...(isObject(body.metadata) && Object.keys(body.metadata).length === 0 && { metadata: undefined }),
    ...leaveOut(body, dropped),
    ...(tools !== body.tools && { tools }),
    ...((stream || 'stream' in body) && { stream: stream ? true : undefined }),
  };
}

/** A new limit of output; thinking that would use all of it up gets less. */
function patchLimit(body: MessagesRequest, before: ChatRequest, after: ChatRequest, dropped: string[]): JsonObject {
  const limitOf = ({ max_completion_tokens: limit, max_tokens: old }: ChatRequest) => limit ?? old ?? undefined;
  const limit = limitOf(after);
  if (limit === limitOf(before)) return {};
  const { thinking } = body;
  const budget = readObject(thinking)['budget_tokens'];
  if (!isObject(thinking) || limit === undefined || typeof budget !== 'number' || budget < limit)
    return { max_tokens: limit };
  if (limit - 1 >= MIN_BUDGET) return { max_tokens: limit, thinking: { ...thinking, budget_tokens: limit - 1 } };
  dropped.push('thinking');
  return { max_tokens: limit, thinking: { type: 'disabled' } };
}

function patchUser({ metadata }: MessagesRequest, { user }: ChatRequest): JsonObject | undefined {
  const { user_id: _user, ...rest } = readObject(metadata);
  const patched = { ...rest, ...(typeof user === 'string' && { user_id: user }) };
  return Object.keys(patched).length > 0 ? patched : undefined;
}

/** Changes of the fields that only this format has. Names of betas are a header. */
function patchOwn(before: ChatRequest, after: ChatRequest): JsonObject {
  const [old, own] = [readObject(before.dialect_fields?.['messages']), readObject(after.dialect_fields?.['messages'])];
  if (old === own) return {};
  const names = [...new Set([...Object.keys(old), ...Object.keys(own)])];
  const changed = names.filter((name) => name !== 'betas' && name !== 'metadata' && old[name] !== own[name]);
  return Object.fromEntries(changed.map((name) => [name, own[name]]));
}

function leaveOut(body: MessagesRequest, dropped: string[]): JsonObject {
  const unpriced = Object.keys(UNPRICED).filter((name) => {
    const value = body[name];
    return value !== undefined && value !== null && value !== UNPRICED[name];
  });
  dropped.push(...unpriced);
  return Object.fromEntries(unpriced.map((name) => [name, undefined]));
}

/**
 * The tools with those that a hook added at either end. Without any, those that the conversation has called: the provider refuses
 * calls of tools that it is not told of.
 */
function patchTools(
  body: MessagesRequest,
  before: ChatRequest,
  after: ChatRequest,
): MessagesRequest['tools'] | undefined {
  const own = body.tools ?? [];
  const [old, all] = [before.tools ?? [], after.tools ?? []];
  if (old === all || all.length === old.length) return own.length > 0 ? own : calledTools(body);
  const [first] = old;
  const start = first ? all.indexOf(first) : 0;
  const added = (tools: readonly Tool[]) => tools.map(writeTool);
  const [front, behind] = [added(all.slice(0, start)), added(all.slice(start + old.length))];
  const written = [...front, ...own, ...behind];
  return written.every((tool) => tool !== undefined) ? written : undefined;
}

function writeTool(tool: Tool): MessagesTool | undefined {
  const { type, function: called } = tool;
  if (type !== 'function') return undefined;
  const { name, description, parameters } = called;
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: { type: 'object', properties: {}, ...parameters },
  };
}

function calledTools({ messages }: MessagesRequest): readonly MessagesTool[] {
  const names = messages.flatMap(({ role, content }) =>
    role === 'assistant' && typeof content !== 'string'
      ? content.flatMap(({ type, name }) => (type === 'tool_use' && typeof name === 'string' ? [name] : []))
      : [],
  );
  return [...new Set(names)].map((name) => ({ name, input_schema: { type: 'object', properties: {} } }));
}
