import { type ChatRequest, isObject, type JsonObject } from '../../../contract/index.ts';
import { tellDropped } from './field-rules.ts';

/**
 * Names that an object of a request may have: OpenAI's, and those that formats here add, which their codecs read. `inner` has
 * the shapes of its objects.
 */
interface Shape {
  readonly names: ReadonlySet<string>;
  readonly inner?: Readonly<Record<string, Shape>>;
}

const shape = (names: string, inner?: Shape['inner']): Shape => ({
  names: new Set(names.split(' ')),
  ...(inner && { inner }),
});

/** Tools by type. A vendor's own tools pass unchanged: the operator permits them by name. */
const TOOLS: Readonly<Record<string, Shape>> = Object.freeze({
  function: shape('type function cache_control dialect_fields', {
    function: shape('name description parameters strict cache_control'),
  }),
});

const OF_PARTS = 'type annotations citations context cache_control dialect_fields prompt_cache_breakpoint';

/** Parts by type. Parts of other types pass unchanged. */
const PARTS: Readonly<Record<string, Shape>> = Object.freeze({
  text: shape(`${OF_PARTS} text`),
  refusal: shape(`${OF_PARTS} refusal`),
  image_url: shape(`${OF_PARTS} image_url`, { image_url: shape('url detail') }),
  file: shape(`${OF_PARTS} file`, { file: shape('filename file_data file_id file_url') }),
  input_audio: shape(`${OF_PARTS} input_audio`, { input_audio: shape('data format') }),
  audio_url: shape(`${OF_PARTS} audio_url`, { audio_url: shape('url') }),
  video_url: shape(`${OF_PARTS} video_url`, { video_url: shape('url') }),
});

/** Formats by type. Vendors have more of their own. */
const FORMATS: Readonly<Record<string, Shape>> = Object.freeze({
  json_schema: shape('type json_schema', { json_schema: shape('name description schema strict') }),
});

/** Removes unknown names below the top level, and adds their paths to `dropped`: `tools.x`, `messages.content.x`. */
export type DropInner = (request: ChatRequest, dropped: string[]) => ChatRequest;

/**
 * Compiles the removal of names that a vendor does not know in tools, content parts and formats. `extras` has the paths of
 * those that it knows. Returns the same request if nothing is removed.
 */
export function dropInnerOf(extras: readonly string[]): DropInner {
  const own = new Set(extras);

  function clear<T>(value: T, { names, inner }: Shape, at: string, dropped: string[]): T {
    if (!isObject(value)) return value;
    let changes: JsonObject | undefined;
    for (const name in value) {
      if (names.has(name)) {
        const below = inner?.[name];
        const member = value[name];
        const cleared = below ? clear(member, below, `${at}.${name}`, dropped) : member;
        if (cleared !== member) changes = { ...changes, [name]: cleared };
      } else if (!own.has(`${at}.${name}`)) {
        tellDropped(dropped, `${at}.${name}`);
        changes = { ...changes, [name]: undefined };
      }
    }
    if (!changes) return value;
    const entries = Object.entries({ ...(value as JsonObject), ...changes });
    return Object.fromEntries(entries.filter(([name, member]) => member !== undefined || !(name in changes))) as T;
  }

  /** Clears a value whose type has a shape. */
  function clearTyped<T>(value: T, shapes: Readonly<Record<string, Shape>>, at: string, dropped: string[]): T {
    const type = isObject(value) ? value['type'] : undefined;
    const known = typeof type === 'string' && Object.hasOwn(shapes, type) ? shapes[type] : undefined;
    return known ? clear(value, known, at, dropped) : value;
  }

  function clearList<T>(
    items: readonly T[],
    shapes: Readonly<Record<string, Shape>>,
    at: string,
    dropped: string[],
  ): readonly T[] {
    let changed: T[] | undefined;
    for (const [index, item] of items.entries()) {
      const cleared = clearTyped(item, shapes, at, dropped);
      if (cleared === item) continue;
      changed ??= [...items];
      changed[index] = cleared;
    }
    return changed ?? items;
  }

  function clearMessages(messages: ChatRequest['messages'], dropped: string[]): ChatRequest['messages'] {
    let changed: ChatRequest['messages'][number][] | undefined;
    for (let at = 0; at < messages.length; at += 1) {
      const message = messages[at];
      const content = message?.content;
      if (!message || !Array.isArray(content)) continue;
      const cleared = clearList(content, PARTS, 'messages.content', dropped);
      if (cleared === content) continue;
      changed ??= [...messages];
      changed[at] = { ...message, content: cleared };
    }
    return changed ?? messages;
  }

  return (request, dropped) => {
    const { messages, tools, response_format: format } = request;
    const cleared = clearMessages(messages, dropped);
    const ownTools = Array.isArray(tools) ? clearList(tools, TOOLS, 'tools', dropped) : tools;
    const ownFormat = clearTyped(format, FORMATS, 'response_format', dropped);
    if (cleared === messages && ownTools === tools && ownFormat === format) return request;
    return {
      ...request,
      messages: cleared,
      ...(ownTools && { tools: ownTools }),
      ...(ownFormat && { response_format: ownFormat }),
    };
  };
}
