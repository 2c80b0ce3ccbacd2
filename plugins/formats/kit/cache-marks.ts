import { type CacheControl, type ChatMessage, type ChatRequest, isObject, readArray } from '../../../contract/index.ts';

/** As many marks as vendors take in one request. */
const MAX_MARKS = 4;

/** What carries marks: tools, parts, and the request itself, whose mark the vendor puts where it fits. */
type Owner = Readonly<Record<string, unknown>>;

/**
 * A request whose `cache_control` marks a vendor takes: at most four, none for an hour after one for five minutes, those of a message
 * on its last part. Of more than four the first stays, which conversations share, and the last three, which hold most. The same
 * request where nothing has to change.
 */
export function fitCacheMarks(input: ChatRequest): ChatRequest {
  const request = input.messages.some(hasOwnMark) ? { ...input, messages: input.messages.map(withMarkOnPart) } : input;
  const marked = ownersOf(request).filter((owner) => 'cache_control' in owner);
  if (marked.length === 0) return request;
  const valid = marked.filter((owner) => isMark(owner['cache_control']));
  const kept = valid.length > MAX_MARKS ? [...valid.slice(0, 1), ...valid.slice(1 - MAX_MARKS)] : valid;
  const marks = new Map<Owner, CacheControl>();
  let isShort = false;
  for (const owner of kept) {
    const mark = owner['cache_control'];
    if (!isMark(mark)) continue;
    const { ttl, ...short } = mark;
    marks.set(owner, isShort && ttl === '1h' ? short : mark);
    isShort ||= ttl !== '1h';
  }
  if (marked.every((owner) => marks.get(owner) === owner['cache_control'])) return request;
  return rewriteMarks(request, marks);
}

/** In the order in which a vendor reads them: tools, messages, and what it does by itself. */
function ownersOf(request: ChatRequest): readonly Owner[] {
  const parts = request.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return [...readArray(request.tools), ...parts, request].filter(isObject);
}

function isMark(value: unknown): value is CacheControl {
  return isObject(value) && value['type'] === 'ephemeral';
}

function hasOwnMark(message: ChatMessage): boolean {
  return 'cache_control' in message;
}

function withMarkOnPart(message: ChatMessage): ChatMessage {
  if (!hasOwnMark(message)) return message;
  const { cache_control: mark, ...rest } = message;
  if (!isMark(mark)) return rest;
  const { content } = message;
  if (typeof content === 'string' && content !== '')
    return { ...rest, content: [{ type: 'text', text: content, cache_control: mark }] };
  if (!Array.isArray(content) || content.length === 0) return rest;
  return { ...rest, content: content.with(-1, { cache_control: mark, ...content.at(-1) }) };
}

function rewriteMarks(request: ChatRequest, marks: ReadonlyMap<Owner, CacheControl>): ChatRequest {
  const rewrite = <T>(owner: T): T => {
    if (!isObject(owner) || !('cache_control' in owner)) return owner;
    const { cache_control: _mark, ...rest } = owner;
    const mark = marks.get(owner);
    return { ...rest, ...(mark && { cache_control: mark }) } as T;
  };
  const { tools } = request;
  return {
    ...rewrite(request),
    messages: request.messages.map((message) =>
      Array.isArray(message.content) ? { ...message, content: message.content.map(rewrite) } : message,
    ),
    ...(Array.isArray(tools) && { tools: tools.map(rewrite) }),
  };
}
