import {
  type ChatMessage,
  type ChatRequest,
  type DialectContext,
  type DialectEffects,
  type DialectNative,
  type DialectNativeStream,
  isObject,
  type JsonObject,
  type NativeBody,
  type NativeChange,
  parseExact,
  parseJson,
  readArray,
  readObject,
  readString,
  type SseEvent,
  type Tool,
  writeJson,
} from '../../../contract/index.ts';
import { parseArguments, tellDropped, textOf } from '../kit/index.ts';
import { addedTo, changesOf, limitOf } from '../native-change.ts';
import { anthropicCallId, anthropicTraits } from './tables.ts';
import {
  addedThinking,
  fitThinking,
  isThinkingBlock,
  openThinking,
  sealBlock,
  takesThinking,
  writeThinking,
} from './thinking.ts';
import type { Block, MessagesMessage, MessagesRequest, MessagesTool } from './types.ts';
import { toolsNamed } from './write-contents.ts';
import { failFrame } from './write-stream.ts';

/** Fields that refer to a file in the operator's account, in any block, such as a document in a tool result. */
const EFFECTS: DialectEffects = Object.freeze({ file_id: { kind: 'reference', name: 'file_id' } });

/**
 * Passthrough of this format to providers that support it: the caller's own body, and the vendor's own message and
 * events.
 */
export const MESSAGES_NATIVE: DialectNative<MessagesRequest> = Object.freeze({
  headers: ['anthropic-version', 'anthropic-beta'],
  effects: EFFECTS,
  patch,
  write: (body: unknown, { seal }: DialectContext<MessagesRequest>) => sealMessage(body, seal),
  stream: passOn,
});

/**
 * Applies a change to the caller's body and keeps its field order; undefined if the format cannot express the change.
 */
function patch(body: MessagesRequest, change: NativeChange): NativeBody | undefined {
  const dropped: string[] = [];
  const messages = patchMessages(body, change, dropped);
  const fields = messages && patchFields(body, change, dropped);
  if (!fields) return undefined;
  const merged = Object.entries({ ...body, ...fields, ...messages });
  const patched = Object.fromEntries(merged.filter(([, value]) => value !== undefined && value !== null));
  return {
    body: patched,
    ...addedThinking(body.thinking, patched['thinking']),
    ...(dropped.length > 0 && { dropped }),
  };
}

/** Seals the signatures of thinking in a vendor's message; returns the same message if it has none. */
function sealMessage(message: unknown, seal: DialectContext['seal']): unknown {
  const content = readObject(message)['content'];
  const blocks = readArray(content).map((block) => sealBlock(block, seal));
  return isObject(message) && blocks.some((block, at) => block !== readArray(content)[at])
    ? { ...message, content: blocks }
    : message;
}

function passOn({ seal }: DialectContext<MessagesRequest>): DialectNativeStream {
  /** Signatures by block index. They arrive in pieces and are sealed at the end of the block. */
  const signatures = new Map<unknown, string>();
  let isStopped = false;
  return {
    push({ event, data }: SseEvent) {
      const value = data.includes('content_block_start') ? parseExact(data) : parseJson(data);
      if (!isObject(value)) return '';
      const { type, index } = value;
      isStopped ||= type === 'message_stop';
      const { type: kind, signature } = readObject(value['delta']);
      if (kind === 'signature_delta') {
        signatures.set(index, (signatures.get(index) ?? '') + String(signature ?? ''));
        return '';
      }
      const sealed = sealEvent(value, seal);
      // An unchanged event keeps its text, unless that has several lines.
      const text = sealed === value && !data.includes('\n') ? data : writeJson(sealed);
      const own = frameOf(event ?? readString(type) ?? '', text);
      const complete = type === 'content_block_stop' ? signatures.get(index) : undefined;
      if (!complete) return own;
      signatures.delete(index);
      const delta = { type: 'signature_delta', signature: seal(complete) };
      return frameOf('content_block_delta', JSON.stringify({ type: 'content_block_delta', index, delta })) + own;
    },
    // If the provider sent its own last event, the stream has already ended.
    end: () => (isStopped ? '' : frameOf('message_stop', '{"type":"message_stop"}')),
    fail: failFrame,
  };
}

/** Fields with signatures, by event. */
const SEALED_FIELD: Readonly<Record<string, string>> = Object.freeze({
  message_start: 'message',
  content_block_start: 'content_block',
});

function sealEvent(event: JsonObject, seal: DialectContext['seal']): JsonObject {
  const field = SEALED_FIELD[readString(event['type']) ?? ''];
  if (field === undefined) return event;
  const value = event[field];
  const sealed = field === 'message' ? sealMessage(value, seal) : sealBlock(value, seal);
  return sealed === value ? event : { ...event, [field]: sealed };
}

/** A name with a line break would add a second field to the frame. */
function frameOf(event: string, data: string): string {
  const name = event.replace(/[\r\n]/g, '');
  return `${name === '' ? '' : `event: ${name}\n`}data: ${data}\n\n`;
}

/** Fields with prices unknown to the gateway; values without an extra cost are kept. */
const UNPRICED: Readonly<Record<string, unknown>> = Object.freeze({ speed: 'standard' });

/** Fields set by a change; an undefined field is removed. Returns undefined if the format cannot express the change. */
function patchFields(body: MessagesRequest, change: NativeChange, dropped: string[]): JsonObject | undefined {
  const { before, after, stream } = change;
  // Thinking options depend on the model, so the provider's codec writes them.
  if (before.reasoning_effort !== after.reasoning_effort) return undefined;
  const tools = patchTools(body, before, after);
  if (!tools) return undefined;
  const isChanged = (field: string): boolean => before[field] !== after[field];
  if (isChanged('metadata')) tellDropped(dropped, 'metadata');
  const unpriced = Object.keys(UNPRICED).filter((name) => (body[name] ?? UNPRICED[name]) !== UNPRICED[name]);
  dropped.push(...unpriced);
  return {
    model: change.model,
    ...patchThinking(body, change, dropped),
    ...(isChanged('temperature') && { temperature: after.temperature }),
    ...(isChanged('top_p') && { top_p: after.top_p }),
    ...(isChanged('stop') && { stop_sequences: typeof after.stop === 'string' ? [after.stop] : after.stop }),
    ...(isChanged('user') && { metadata: patchUser(body, after) }),
    ...(isChanged('service_tier') && { service_tier: after.service_tier === 'default' ? 'standard_only' : undefined }),
    ...patchOwn(before, after),
    ...(isObject(body.metadata) && Object.keys(body.metadata).length === 0 && { metadata: undefined }),
    ...Object.fromEntries(unpriced.map((name) => [name, undefined])),
    ...(tools !== body.tools && tools.length > 0 && { tools }),
    ...((stream || 'stream' in body) && { stream: stream ? true : undefined }),
  };
}

/** Sets the new output limit, and adapts thinking to it and to the model. */
function patchThinking(body: MessagesRequest, { before, after, model }: NativeChange, dropped: string[]): JsonObject {
  const limit = limitOf(after);
  const limited = limit === limitOf(before) ? {} : { max_tokens: limit };
  const { thinking: own, output_config: config } = body;
  const traits = anthropicTraits(model);
  const isNew = 'max_tokens' in limited;
  if (!isObject(own) || (!isNew && takesThinking(own, traits))) return limited;
  const { thinking, effort } = fitThinking(own, config, traits, limit ?? Number.POSITIVE_INFINITY, dropped);
  const hasOther = effort !== undefined && effort !== readObject(config)['effort'];
  return {
    ...limited,
    ...(thinking !== own && { thinking }),
    ...(hasOther && { output_config: { ...readObject(config), effort } }),
  };
}

function patchUser({ metadata }: MessagesRequest, { user }: ChatRequest): JsonObject | undefined {
  const { user_id: _user, ...rest } = readObject(metadata);
  const patched = { ...rest, ...(typeof user === 'string' && { user_id: user }) };
  return Object.keys(patched).length > 0 ? patched : undefined;
}

/** Changes of fields that only this format has. Beta names are sent in a header instead. */
function patchOwn(before: ChatRequest, after: ChatRequest): JsonObject {
  const changes = changesOf(before.dialect_fields?.['messages'], after.dialect_fields?.['messages']);
  return Object.fromEntries(changes.filter(([name]) => name !== 'betas' && name !== 'metadata'));
}

/**
 * Adds tools of hooks. Without any tools, declares those that the conversation has called: the vendor rejects calls
 * of undeclared tools.
 */
function patchTools(
  body: MessagesRequest,
  before: ChatRequest,
  after: ChatRequest,
): MessagesRequest['tools'] | undefined {
  const own = body.tools ?? [];
  const [front, behind] = addedTo(before.tools, after.tools);
  if (front.length + behind.length === 0) return own.length > 0 ? own : toolsNamed(calledNames(body));
  const written = [...front.map(writeTool), ...own, ...behind.map(writeTool)];
  return written.every((tool) => tool !== undefined) ? written : undefined;
}

function writeTool(tool: Tool): MessagesTool | undefined {
  const { function: called } = tool;
  // Hooks in JavaScript may set any type.
  const type: string = tool.type;
  if (type !== 'function') return undefined;
  const { name, description, parameters } = called;
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: { type: 'object', properties: {}, ...parameters },
  };
}

function calledNames({ messages }: MessagesRequest): readonly string[] {
  return messages.flatMap(({ role, content }) =>
    role === 'assistant' && typeof content !== 'string'
      ? content.flatMap(({ type, name }) => (type === 'tool_use' && typeof name === 'string' ? [name] : []))
      : [],
  );
}

/**
 * Adapts messages to the provider. Its own thinking is opened, other thinking dropped, call ids are made valid, and
 * messages of hooks are added at either end. Undefined if the format cannot express an addition.
 */
function patchMessages(
  body: MessagesRequest,
  { before, after, open }: NativeChange,
  dropped: string[],
): JsonObject | undefined {
  const own = body.messages.flatMap((message) => cleanMessage(message, open, dropped));
  const isSame = own.length === body.messages.length && own.every((one, at) => one === body.messages[at]);
  const [front, behind] = addedTo(before.messages, after.messages).map((added) => writeAdded(added, open));
  if (!front || !behind) return undefined;
  const messages = [...front.messages, ...own, ...behind.messages];
  return {
    ...((!isSame || messages.length > own.length) && { messages }),
    ...(front.system.length + behind.system.length > 0 && {
      system: [...front.system, ...systemBlocks(body), ...behind.system],
    }),
  };
}

function systemBlocks({ system }: MessagesRequest): readonly Block[] {
  if (typeof system === 'string') return system === '' ? [] : [{ type: 'text', text: system }];
  return system ?? [];
}

/** Removes other vendors' thinking and makes ids valid; returns no message if nothing remains. */
function cleanMessage(
  message: MessagesMessage,
  open: NativeChange['open'],
  dropped: string[],
): readonly MessagesMessage[] {
  const { content } = message;
  if (typeof content === 'string') return [message];
  const blocks = content.flatMap((block) => {
    const restored = isThinkingBlock(block) ? openThinking(block, open) : withValidId(block);
    if (!restored) tellDropped(dropped, 'reasoning');
    return restored ?? [];
  });
  if (blocks.length === content.length && blocks.every((block, at) => block === content[at])) return [message];
  return blocks.length === 0 ? [] : [{ ...message, content: blocks }];
}

function withValidId(block: Block): Block {
  const field = block.type === 'tool_use' ? 'id' : block.type === 'tool_result' ? 'tool_use_id' : '';
  const id = block[field];
  if (typeof id !== 'string') return block;
  const valid = anthropicCallId(id);
  return valid === id ? block : { ...block, [field]: valid };
}

interface Added {
  readonly system: readonly Block[];
  readonly messages: readonly MessagesMessage[];
}

/** Converts added messages: texts of the system, the user and the assistant, and calls of tools with their results. */
function writeAdded(added: readonly ChatMessage[], open: NativeChange['open']): Added | undefined {
  const system: Block[] = [];
  const messages: { readonly role: string; readonly content: Block[] }[] = [];
  for (const message of added) {
    const { role, content, tool_calls: calls = [] } = message;
    const blocks = textsOf(content);
    if (!blocks || (calls.length > 0 && role !== 'assistant')) return undefined;
    const last = messages.at(-1);
    if (role === 'tool') {
      const result = writeResult(message, blocks);
      // The vendor wants the results of one turn in one message.
      if (last?.content[0]?.type === 'tool_result') last.content.push(result);
      else messages.push({ role: 'user', content: [result] });
    } else if (calls.length > 0) messages.push({ role, content: writeCalls(message, blocks, open) });
    else if (blocks.length === 0) return undefined;
    else if (role === 'system' || role === 'developer') system.push(...blocks);
    else if (role === 'user' || role === 'assistant') messages.push({ role, content: [...blocks] });
    else return undefined;
  }
  return { system, messages };
}

function writeResult({ tool_call_id: id, is_error: isError }: ChatMessage, content: readonly Block[]): Block {
  const result = { type: 'tool_result', tool_use_id: anthropicCallId(id ?? ''), content };
  return isError === true ? { ...result, is_error: true } : result;
}

/** Writes a turn with calls: thinking that this deployment may have, texts, calls. */
function writeCalls(
  { reasoning_details: details = [], tool_calls: calls = [] }: ChatMessage,
  texts: readonly Block[],
  open: NativeChange['open'],
): Block[] {
  const thinking = details.flatMap(
    (detail) =>
      openThinking(
        writeThinking(detail, (data) => data),
        open,
      ) ?? [],
  );
  const uses = calls.map(({ id, function: { name, arguments: args } }) => ({
    type: 'tool_use',
    id: anthropicCallId(id),
    name,
    input: parseArguments(args),
  }));
  return [...thinking, ...texts, ...uses];
}

function textsOf(content: ChatMessage['content']): readonly Block[] | undefined {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  const texts = (content ?? []).map((part) => (isObject(part) ? textOf(part) : undefined));
  return texts.every((text) => text !== undefined) ? texts.map((text) => ({ type: 'text', text })) : undefined;
}
