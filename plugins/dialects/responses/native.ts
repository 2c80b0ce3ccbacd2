import { createHash } from 'node:crypto';
import {
  type ChatRequest,
  type DialectEffects,
  type DialectNative,
  isObject,
  type NativeBody,
  type NativeChange,
  readArray,
  readString,
} from '../../../core/index.ts';
import { writeItems, writeTool } from '../../formats/openai-responses/index.ts';
import { writeNative } from './native-events.ts';
import { isForeign, isSealed } from './reasoning.ts';
import { nativeStream } from './stream.ts';
import type { Item, ResponsesBody } from './types.ts';

const reference = (name: string) => ({ kind: 'reference', name }) as const;
const MCP = Object.freeze({ kind: 'server tool', name: 'mcp' } as const);

/** What acts in the operator's account, in whichever item, tool or part it stands. */
const EFFECTS: DialectEffects = Object.freeze({
  ...{ file_id: reference('file_id'), file_ids: reference('file_ids') },
  ...{ container_id: reference('container_id'), vector_store_ids: reference('vector_store_ids') },
  ...{ server_url: MCP, connector_id: MCP, approval_request_id: MCP },
});

/** How responses are passed to vendors that have this API themselves. */
export const native: DialectNative<ResponsesBody> = {
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

/** Fields that are written here whatever the caller said. */
const REPLACED: ReadonlySet<string> = new Set(['model', 'stream', 'store', 'previous_response_id', 'input']);

/** The caller's body with the change; undefined for what this format cannot say. */
function patch(body: ResponsesBody, change: NativeChange): NativeBody | undefined {
  const { before, after, model, stream, scope } = change;
  if (before.stop !== after.stop) return undefined;
  const dropped = new Set<string>();
  const written: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) {
    if (name === 'model') written[name] = model;
    else if (name === 'input') written[name] = inputOf(body, change, dropped);
    // Set below, at the place where the caller had them.
    else if (name === 'stream' || name === 'store') written[name] = false;
    else if (!REPLACED.has(name)) written[name] = value;
  }
  Object.assign(written, { stream, store: false });
  const key = readString(body['prompt_cache_key']);
  if (key !== undefined) written['prompt_cache_key'] = scope(key);
  for (const [canonical, own] of PATCHES)
    if (before[canonical] !== after[canonical]) setField(written, own, after[canonical]);
  patchLimit(written, before, after);
  if (before.reasoning_effort !== after.reasoning_effort)
    written['reasoning'] = { ...body.reasoning, effort: after.reasoning_effort ?? null };
  patchOwnFields(written, before, after);
  patchTools(written, body, change, dropped);
  return { body: written, ...(dropped.size > 0 && { dropped: [...dropped] }) };
}

function setField(written: Record<string, unknown>, name: string, value: unknown): void {
  if (value === undefined || value === null) delete written[name];
  else written[name] = value;
}

function patchLimit(written: Record<string, unknown>, before: ChatRequest, after: ChatRequest): void {
  const limitOf = (request: ChatRequest) => request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const limit = limitOf(after);
  if (limit !== limitOf(before)) setField(written, 'max_output_tokens', limit);
}

/** What hooks changed of the fields that only this format has. */
function patchOwnFields(written: Record<string, unknown>, before: ChatRequest, after: ChatRequest): void {
  const [old, now] = [before, after].map(({ dialect_fields: fields }) => fields?.['responses'] ?? {});
  if (!old || !now || old === now) return;
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
    if (old[name] === now[name] || REPLACED.has(name) || name === '__proto__') continue;
    if (name === 'reasoning') written[name] = { ...(written[name] as object | undefined), ...(now[name] as object) };
    else setField(written, name, now[name]);
  }
}

/** The input with sealed texts opened, and what hooks added at either end. */
function inputOf(body: ResponsesBody, change: NativeChange, dropped: Set<string>): string | readonly Item[] {
  const { input } = body;
  const [front, back] = addedTo(change.before.messages, change.after.messages);
  if (typeof input === 'string' && front.length + back.length === 0) return input;
  const own: readonly Item[] =
    typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : readArray(input).filter(isObject);
  const patched = own.flatMap((item, index) => {
    const kept = patchItem(item, change.open);
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
  const [front, back] = addedTo(before.tools ?? [], after.tools ?? []);
  const isSame = front.length + back.length === 0 && own === given;
  if (!isSame)
    written['tools'] = [
      ...front.flatMap((tool) => writeTool(tool) ?? []),
      ...own,
      ...back.flatMap((tool) => writeTool(tool) ?? []),
    ];
}

/** The tools without those of the vendor that this caller may not have, those in a namespace too; the same list where all stay. */
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

/** What stands before and after the elements of a list that has grown at its ends. */
function addedTo<T>(before: readonly T[], after: readonly T[]): readonly [front: readonly T[], back: readonly T[]] {
  const [first] = before;
  const start = first === undefined ? 0 : Math.max(after.indexOf(first), 0);
  return [after.slice(0, start), after.slice(start + before.length)];
}

/** Items whose ids are ours, or of a response that nobody keeps: the vendor would look them up. */
const UNNAMED: ReadonlySet<string> = new Set(
  'message reasoning function_call function_call_output custom_tool_call custom_tool_call_output compaction'.split(' '),
);

/** An item as a vendor that speaks this format may get it; undefined where it is another's reasoning. */
function patchItem(item: Item, open: (sealed: string) => string | undefined): Item | undefined {
  const { id: _id, ...nameless } = item;
  const type = readString(item['type']) ?? 'message';
  const kept: Item = UNNAMED.has(type) ? nameless : item;
  const secret = readString(item['encrypted_content']);
  // Without it the vendor would look for an item that it was told not to keep.
  if (secret === undefined) return type === 'reasoning' ? undefined : withValidCall(kept);
  const opened = isSealed(secret) ? open(secret) : secret;
  if (opened === undefined || isForeign(secret)) return undefined;
  return { ...kept, encrypted_content: opened };
}

const MAX_ID = 64;
const HASH_LENGTH = 32;

/** Call ids of other vendors may be longer than this one takes; call and result get the same. */
function withValidCall(item: Item): Item {
  const id = readString(item['call_id']);
  if (id === undefined || id.length <= MAX_ID) return item;
  const hash = createHash('sha256').update(id).digest('hex').slice(0, HASH_LENGTH);
  return { ...item, call_id: `call_${hash}` };
}
