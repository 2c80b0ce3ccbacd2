import {
  type CacheControl,
  type ChatMessage,
  type ChatRequest,
  isObject,
  type JsonObject,
  readArray,
  readObject,
} from '../../../contract/index.ts';

/** Maximum number of marks that vendors accept in a request. */
const MAX_MARKS = 4;

/** Object that carries a mark: a tool, a part, or the request itself, whose mark the vendor places. */
type Owner = Readonly<Record<string, unknown>>;

/**
 * Returns a request whose `cache_control` marks a vendor accepts; the same request if nothing changes. It has at most
 * four marks, with no 1-hour mark after a 5-minute one. The mark of a message moves to its last part, unless the writer
 * places it (`keepsMessages`). Of more than four marks, the first stays, which conversations share, and the last three,
 * which cover most.
 */
export function fitCacheMarks(input: ChatRequest, keepsMessages = false): ChatRequest {
  const request =
    !keepsMessages && input.messages.some(hasOwnMark)
      ? { ...input, messages: input.messages.map(withMarkOnPart) }
      : input;
  const marked = ownersOf(request).filter((owner) => 'cache_control' in owner);
  if (marked.length === 0) return request;
  const marks = fitMarks(marked.filter((owner) => isMark(owner['cache_control'])));
  if (marked.every((owner) => marks.get(owner) === owner['cache_control'])) return request;
  return rewriteMarks(request, marks);
}

/** Valid marks that remain, by owner. */
function fitMarks(valid: readonly Owner[]): ReadonlyMap<Owner, CacheControl> {
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
  return marks;
}

/** A body of the Messages API with the marks that {@link fitCacheMarks} leaves; the same body if all remain. */
export function fitMarksOfBody<T extends object>(body: T): T {
  const { tools, system, messages } = body as JsonObject;
  const contents = readArray(messages).map((message) => readObject(message)['content']);
  const owners = [...markedBlocks(tools), ...markedBlocks(system), ...contents.flatMap(markedBlocks)];
  if (isMark((body as JsonObject)['cache_control'])) owners.push(body as Owner);
  const marks = fitMarks(owners);
  if (owners.every((owner) => marks.get(owner) === owner['cache_control'])) return body;
  const fitOne = <V>(owner: V): V =>
    isObject(owner) && isMark(owner['cache_control']) ? withMark(owner, marks) : owner;
  const fitBlocks = (blocks: unknown): unknown =>
    Array.isArray(blocks)
      ? blocks.map((block: unknown) => {
          const fitted = fitOne(block);
          return isObject(fitted) && Array.isArray(fitted['content'])
            ? { ...fitted, content: fitBlocks(fitted['content']) }
            : fitted;
        })
      : blocks;
  const fittedMessages = readArray(messages).map((message) =>
    isObject(message) ? { ...message, content: fitBlocks(message['content']) } : message,
  );
  return {
    ...fitOne(body),
    ...(tools !== undefined && { tools: fitBlocks(tools) }),
    ...(system !== undefined && { system: fitBlocks(system) }),
    messages: fittedMessages,
  };
}

/** Blocks with a mark, those within results of tools first, as the vendor reads them. */
function markedBlocks(blocks: unknown): readonly Owner[] {
  return readArray(blocks)
    .filter(isObject)
    .flatMap((block) => [
      ...(Array.isArray(block['content']) ? markedBlocks(block['content']) : []),
      ...(isMark(block['cache_control']) ? [block] : []),
    ]);
}

function withMark<T>(owner: T, marks: ReadonlyMap<Owner, CacheControl>): T {
  const { cache_control: _mark, ...rest } = owner as Owner;
  const mark = marks.get(owner as Owner);
  return { ...rest, ...(mark && { cache_control: mark }) } as T;
}

/** In the order in which a vendor reads them: tools, messages, automatic caching. */
function ownersOf(request: ChatRequest): readonly Owner[] {
  const parts = request.messages.flatMap((message) => [
    ...(Array.isArray(message.content) ? message.content : []),
    message,
  ]);
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
  const rewrite = <T>(owner: T): T => (isObject(owner) && 'cache_control' in owner ? withMark(owner, marks) : owner);
  const { tools } = request;
  return {
    ...rewrite(request),
    messages: request.messages.map((message) => {
      const { content } = message;
      const own = rewrite(message);
      return Array.isArray(content) ? { ...own, content: content.map(rewrite) } : own;
    }),
    ...(Array.isArray(tools) && { tools: tools.map(rewrite) }),
  };
}
