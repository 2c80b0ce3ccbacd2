import { createHash } from 'node:crypto';
import {
  type ChatRequest,
  type DialectEffects,
  type DialectNative,
  type DialectNativeStream,
  isObject,
  type JsonObject,
  type NativeBody,
  type NativeChange,
  parseJson,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';
import { addedTo, changesOf, limitOf } from '../native-change.ts';
import { foreignCompaction, isTrigger, summaryOf } from './compaction.ts';
import { errorEvent, failedError } from './errors.ts';
import { isForeign, isSealed } from './reasoning.ts';
import { FORMAT, inputItems, pricedCache } from './tables.ts';
import type { Item, ResponsesBody, ResponsesEvent } from './types.ts';
import { writeItems, writeTool } from './write-request.ts';
import { type ResponsesContext, responseId, responseObject } from './write-response.ts';
import { type EventWriter, streamOf } from './write-stream.ts';

const reference = (name: string) => ({ kind: 'reference', name }) as const;
const MCP = Object.freeze({ kind: 'server tool', name: 'mcp' } as const);

/** Fields that affect the operator's account, in any item, tool or part. */
const EFFECTS: DialectEffects = Object.freeze({
  file_id: reference('file_id'),
  file_ids: reference('file_ids'),
  container_id: reference('container_id'),
  vector_store_ids: reference('vector_store_ids'),
  server_url: MCP,
  connector_id: MCP,
  approval_request_id: MCP,
});

/** Passthrough of responses to vendors with this API. */
export const RESPONSES_NATIVE: DialectNative<ResponsesBody> = {
  headers: ['openai-beta'],
  effects: EFFECTS,
  patch,
  write: writeNative,
  stream: nativeStream,
};

/** Canonical fields that a hook may have changed, with their names here. */
const PATCHES: readonly (readonly [canonical: string, own: string])[] = Object.freeze([
  ['temperature', 'temperature'],
  ['top_p', 'top_p'],
  ['user', 'user'],
  ['metadata', 'metadata'],
  ['service_tier', 'service_tier'],
]);

/** Fields that are replaced, whatever the caller sent. */
const REPLACED: ReadonlySet<string> = new Set(['model', 'stream', 'store', 'previous_response_id', 'input']);

/** Applies a change to the caller's body; undefined if this format cannot express it. */
function patch(body: ResponsesBody, change: NativeChange): NativeBody | undefined {
  const { before, after, model, stream, scope } = change;
  if (before.stop !== after.stop) return undefined;
  const dropped = new Set<string>();
  const written: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) {
    if (name === 'model') written[name] = model;
    else if (name === 'input') written[name] = inputOf(body, change, dropped);
    // Set below, in the caller's field order.
    else if (name === 'stream' || name === 'store') written[name] = false;
    else if (!REPLACED.has(name)) written[name] = value;
  }
  Object.assign(written, { stream, store: false });
  const key = readString(body['prompt_cache_key']);
  if (key !== undefined) written['prompt_cache_key'] = scope(key);
  for (const [canonical, own] of PATCHES)
    if (before[canonical] !== after[canonical]) setField(written, own, after[canonical]);
  const limit = limitOf(after);
  if (limit !== limitOf(before)) setField(written, 'max_output_tokens', limit);
  if (before.reasoning_effort !== after.reasoning_effort)
    written['reasoning'] = { ...body.reasoning, effort: after.reasoning_effort ?? null };
  patchOwnFields(written, before, after);
  const cache = pricedCache(written['prompt_cache_options']);
  if (cache !== written['prompt_cache_options']) {
    written['prompt_cache_options'] = cache;
    dropped.add('prompt_cache_options.ttl');
  }
  patchTools(written, body, change, dropped);
  return { body: written, ...(dropped.size > 0 && { dropped: [...dropped] }) };
}

function setField(written: Record<string, unknown>, name: string, value: unknown): void {
  if (value === undefined || value === null) delete written[name];
  else written[name] = value;
}

/** Changes by hooks to fields that only this format has. */
function patchOwnFields(written: Record<string, unknown>, before: ChatRequest, after: ChatRequest): void {
  const [old, now] = [before, after].map(({ dialect_fields: fields }) => fields?.[FORMAT]);
  for (const [name, value] of changesOf(old, now)) {
    if (REPLACED.has(name)) continue;
    if (name === 'reasoning') written[name] = { ...readObject(written[name]), ...readObject(value) };
    else setField(written, name, value);
  }
}

/** Input with opened sealed texts, and with messages of hooks at either end. */
function inputOf(body: ResponsesBody, change: NativeChange, dropped: Set<string>): string | readonly Item[] {
  const { input } = body;
  const [front, back] = addedTo(change.before.messages, change.after.messages);
  if (typeof input === 'string' && front.length + back.length === 0) return input;
  const items = inputItems(input);
  const patched = items.flatMap((item, index) => {
    // The vendor accepts only a final trigger. The result of an earlier one follows it in the input.
    if (isTrigger(item) && index < items.length - 1) return [];
    const kept = patchItem(item, change.open, `input[${index}]`);
    if (!kept) dropped.add('input.reasoning');
    if (!Array.isArray(kept?.['tools'])) return kept ? [kept] : [];
    return [{ ...kept, tools: allowedTools(kept['tools'], `input[${index}].tools`, change, dropped) }];
  });
  return [
    ...front.flatMap((message) => writeItems(message)),
    ...patched,
    ...back.flatMap((message) => writeItems(message)),
  ];
}

function patchTools(
  written: Record<string, unknown>,
  body: ResponsesBody,
  change: NativeChange,
  dropped: Set<string>,
): void {
  const { before, after } = change;
  const given = readArray(body.tools);
  const own = allowedTools(given, 'tools', change, dropped);
  const [front, back] = addedTo(before.tools, after.tools);
  const isSame = front.length + back.length === 0 && own === given;
  if (!isSame)
    written['tools'] = [
      ...front.flatMap((tool) => writeTool(tool) ?? []),
      ...own,
      ...back.flatMap((tool) => writeTool(tool) ?? []),
    ];
}

/** Removes vendor tools that this caller may not use, also in namespaces; returns the same list if all stay. */
function allowedTools(tools: unknown, at: string, change: NativeChange, dropped: Set<string>): readonly unknown[] {
  const { without = [] } = change;
  const own = readArray(tools);
  const allowed = own.flatMap((tool, index) => {
    const place = `${at}[${index}]`;
    const inner = isObject(tool) ? tool['tools'] : undefined;
    if (without.includes(place)) {
      dropped.add(`tools.${(isObject(tool) ? readString(tool['type']) : undefined) ?? 'unknown'}`);
      return [];
    }
    if (!isObject(tool) || !Array.isArray(inner)) return [tool];
    const kept = allowedTools(inner, `${place}.tools`, change, dropped);
    return kept === inner ? [tool] : [{ ...tool, tools: kept }];
  });
  return allowed.length === own.length && allowed.every((tool, index) => tool === own[index]) ? own : allowed;
}

/** Items whose ids belong to the gateway, or to a response that is not stored: the vendor would look them up. */
const UNNAMED: ReadonlySet<string> = new Set([
  'message',
  'reasoning',
  'compaction',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'tool_search_call',
  'tool_search_output',
]);

/** Adapts an item for a vendor of this format; undefined for another vendor's reasoning. */
function patchItem(item: Item, open: (sealed: string) => string | undefined, at: string): Item | undefined {
  const { id: _id, ...nameless } = item;
  const type = readString(item['type']) ?? 'message';
  const kept: Item = UNNAMED.has(type) ? nameless : item;
  const secret = readString(item['encrypted_content']);
  const summary = type === 'compaction' ? summaryOf(item) : undefined;
  if (summary !== undefined) return { type: 'message', role: 'user', content: [{ type: 'input_text', text: summary }] };
  // Without encrypted content, the vendor would look for an item that it did not store.
  if (secret === undefined) return type === 'reasoning' ? undefined : withValidCall(kept);
  const opened = isSealed(secret) ? open(secret) : secret;
  // Without the item, the earlier conversation is lost.
  if (opened === undefined && type === 'compaction') throw foreignCompaction(at);
  if (opened === undefined || isForeign(secret)) return undefined;
  return { ...kept, encrypted_content: opened };
}

const MAX_ID = 64;
const HASH_LENGTH = 32;

/** Shortens call ids of other vendors that exceed the limit; call and result get the same id. */
function withValidCall(item: Item): Item {
  const id = readString(item['call_id']);
  if (id === undefined || id.length <= MAX_ID) return item;
  const hash = createHash('sha256').update(id).digest('hex').slice(0, HASH_LENGTH);
  return { ...item, call_id: `call_${hash}` };
}

/** Unchanged event of a vendor. */
interface Sent {
  readonly data: string;
}

const TERMINAL: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/**
 * Adapts a vendor's complete response for the caller. Encrypted content is sealed, and changes to the request are
 * reversed.
 */
function writeNative(body: unknown, context: ResponsesContext): unknown {
  if (!isObject(body)) return body;
  const own = context.input.body;
  return {
    ...body,
    ...('prompt_cache_key' in body && { prompt_cache_key: own['prompt_cache_key'] ?? null }),
    ...('previous_response_id' in body && { previous_response_id: own.previous_response_id ?? null }),
    ...('store' in body && { store: own.store ?? true }),
    ...(Array.isArray(body['output']) && { output: body['output'].map((item) => sealItem(item, context)) }),
  };
}

function sealItem(item: unknown, { seal }: ResponsesContext): unknown {
  const data = isObject(item) ? readString(item['encrypted_content']) : undefined;
  return data === undefined ? item : { ...(item as Item), encrypted_content: seal(data) };
}

/** Events of a vendor of this format, renumbered. */
function createNativeEvents(context: ResponsesContext): EventWriter<Sent> {
  let sequence = 0;
  let isOver = false;
  let begun: JsonObject | undefined;
  let last: JsonObject | undefined;
  let whole: unknown;
  const items = new Map<number, Item>();

  function number(event: JsonObject): ResponsesEvent {
    const { type, ...rest } = event;
    return { type: readString(type) ?? 'message', ...rest, sequence_number: sequence++ };
  }

  function rewrite(event: JsonObject): JsonObject {
    const { item, response, output_index: index } = event;
    const sealed = sealItem(item, context);
    if (isObject(sealed) && typeof index === 'number') items.set(index, sealed);
    return {
      ...event,
      ...('item' in event && { item: sealed }),
      ...('response' in event && { response: writeNative(response, context) }),
    };
  }

  return {
    push({ data }) {
      const parsed = isOver ? undefined : parseJson(data);
      if (!isObject(parsed)) return [];
      const event = rewrite(parsed);
      const { type, response } = event;
      if (isObject(response)) begun = response;
      if (!TERMINAL.has(type)) return [number(event)];
      // Sent once the response is stored: a following request may refer to it immediately.
      isOver = true;
      last = event;
      return [];
    },
    end() {
      if (!last) return [];
      whole = last['response'];
      return [number(last)];
    },
    fail(error) {
      isOver = true;
      const { model } = context.request;
      const output = [...items].sort(([a], [b]) => a - b).map(([, item]) => incomplete(item));
      const started =
        begun ?? responseObject(context, { id: responseId(context), model, status: 'in_progress', output: [] });
      const response = { ...started, status: 'failed', error: failedError(error), output };
      const opening = begun ? [] : [number({ type: 'response.created', response: started })];
      return [
        ...opening,
        number({ type: 'error', ...errorEvent(error) }),
        number({ type: 'response.failed', response }),
      ];
    },
    response: () => whole,
  };
}

/** Marks an unfinished item as incomplete. */
function incomplete(item: Item): Item {
  return item['status'] === 'in_progress' ? { ...item, status: 'incomplete' } : item;
}

/** Stream of a vendor of this format. */
function nativeStream(context: ResponsesContext): DialectNativeStream {
  return streamOf(createNativeEvents(context));
}
