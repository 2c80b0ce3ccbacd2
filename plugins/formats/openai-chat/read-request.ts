import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  type DialectNeed,
  type DialectRequest,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readString,
} from '../../../core/index.ts';
import { readRelayDetails } from '../../providers/kit/index.ts';

/**
 * What goes from one format's dialect to its codecs without anybody between them reading it. From here it would go past the checks
 * of that format (tools that a vendor runs, files in the operator's account): it is left out and told.
 */
const INNER = 'dialect_fields';

/** What reading a request finds beside it. */
interface Findings {
  readonly dropped: Set<string>;
  readonly needs: DialectNeed[];
}

/** A request of this format: the canonical one but for what clients call otherwise and what they may not say. */
export function readChatRequest(body: ChatRequest): Omit<DialectRequest, 'provider'> {
  const findings: Findings = { dropped: new Set(), needs: [] };
  const { dropped, needs } = findings;
  const messages = mapSame(body.messages, (message, at) => readMessage(message, `messages[${at}]`, findings));
  const tools = body.tools ? mapOwn(body.tools, findings) : body.tools;
  if (tools) for (const [index, tool] of readArray(tools).entries()) needTool(tool, `tools[${index}]`, needs);
  const own = INNER in body ? withoutInner(body, findings) : body;
  const isSame = own === body && messages === body.messages && tools === body.tools;
  const request = isSame ? body : { ...own, messages, ...(tools !== undefined && { tools }) };
  return { request, ...(dropped.size > 0 && { dropped: [...dropped] }), ...(needs.length > 0 && { needs }) };
}

function readMessage(message: ChatMessage, at: string, findings: Findings): ChatMessage {
  let read = INNER in message ? withoutInner(message, findings) : message;
  if (read.reasoning_details || read['thinking_blocks'] !== undefined) read = readReasoning(read);
  const { content, tool_calls: calls } = read;
  const readContent = typeof content === 'object' && content !== null ? readParts(content, at, findings) : content;
  const readCalls = calls ? mapOwn(calls, findings) : calls;
  if (readContent === content && readCalls === calls) return read;
  return {
    ...read,
    ...(readContent !== undefined && { content: readContent }),
    ...(readCalls !== undefined && { tool_calls: readCalls }),
  };
}

function readParts(parts: readonly ContentPart[], at: string, findings: Findings): readonly ContentPart[] {
  return mapSame(mapOwn(parts, findings), (part, index) => readPart(part, `${at}.content[${index}]`, findings.needs));
}

/** The items that this format may say, without what is for another one. */
function mapOwn<T extends object>(items: readonly T[], findings: Findings): readonly T[] {
  const own = items.filter((item) => !('type' in item) || item.type !== 'opaque');
  if (own.length < items.length) findings.dropped.add('opaque');
  return mapSame(own.length < items.length ? own : items, (item) => withoutInner(item, findings));
}

function withoutInner<T extends object>(value: T, { dropped }: Findings): T {
  if (!(INNER in value)) return value;
  dropped.add(INNER);
  const { [INNER]: _inner, ...rest } = value;
  return rest as T;
}

/** The list with each item mapped; the same list where every item stays the same. */
function mapSame<T>(items: readonly T[], map: (item: T, index: number) => T): readonly T[] {
  const mapped = items.map(map);
  for (const [index, item] of mapped.entries()) if (item !== items[index]) return mapped;
  return items;
}

/** A tool that is not the caller's own runs with the operator's account at the vendor. */
function needTool(tool: unknown, at: string, needs: DialectNeed[]): void {
  const type = isObject(tool) ? readString(tool['type']) : undefined;
  if (type === undefined || type === 'function' || type === 'custom') return;
  needs.push({ kind: 'server tool', name: type, param: `${at}.type` });
}

/** A document: LiteLLM's clients put an address where OpenAI's put the id of a file in the operator's account. */
function readPart(part: ContentPart, at: string, needs: DialectNeed[]): ContentPart {
  const file = part.type === 'file' ? part['file'] : undefined;
  if (!isObject(file)) return part;
  const id = readString(file['file_id']);
  if (id === undefined) return part;
  if (!/^(?:https?|data):/i.test(id)) {
    needs.push({ kind: 'reference', name: 'file_id', param: `${at}.file.file_id` });
    return part;
  }
  const { file_id: _id, ...rest } = file;
  return { ...part, file: { ...rest, [/^data:/i.test(id) ? 'file_data' : 'file_url']: id } };
}

/** A message whose reasoning is in the canonical form, in whichever a client has kept it. */
function readReasoning(message: ChatMessage): ChatMessage {
  const { thinking_blocks: blocks, ...rest } = message;
  const { reasoning_details: details } = message;
  if (blocks === undefined && !readArray(details).some(isRelayed)) return message;
  const own = readArray(details).flatMap((detail) =>
    isRelayed(detail) ? readRelayDetails([detail]) : asDetail(detail),
  );
  const all = own.length > 0 ? own : readThinkingBlocks(blocks);
  const { reasoning_details: _details, ...others } = rest;
  return all.length > 0 ? { ...rest, reasoning_details: all } : others;
}

function isRelayed(detail: unknown): detail is JsonObject {
  return isObject(detail) && !('kind' in detail);
}

function asDetail(detail: unknown): readonly ReasoningDetail[] {
  return isDetail(detail) ? [detail] : [];
}

function isDetail(value: unknown): value is ReasoningDetail {
  return isObject(value) && typeof value['kind'] === 'string' && typeof value['format'] === 'string';
}

/** `thinking_blocks` of LiteLLM's clients, which are Anthropic's blocks, as details of reasoning. An unsigned one is nobody's. */
function readThinkingBlocks(value: unknown): readonly ReasoningDetail[] {
  return readArray(value).flatMap((block): readonly ReasoningDetail[] => {
    if (!isObject(block)) return [];
    const data = readString(block['data']);
    if (block['type'] === 'redacted_thinking')
      return data === undefined ? [] : [{ kind: 'encrypted', data, format: 'anthropic' }];
    const text = typeof block['thinking'] === 'string' ? block['thinking'] : '';
    const signature = readString(block['signature']);
    if (block['type'] !== 'thinking' || (text === '' && signature === undefined)) return [];
    return [
      { kind: 'text', text, ...(signature === undefined ? { format: 'none' } : { signature, format: 'anthropic' }) },
    ];
  });
}
