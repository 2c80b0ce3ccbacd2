import { type ChatMessage, type ChatRequest, isObject, type JsonObject } from '../../../contract/index.ts';
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

const OF_PARTS =
  'type annotations citations context cache_control dialect_fields extra_content prompt_cache_breakpoint';

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

/** Calls in messages by type. The last four names are those of other formats, which codecs read or remove. */
const CALLS: Readonly<Record<string, Shape>> = Object.freeze({
  function: shape('id type function index cache_control dialect_fields extra_content provider_specific_fields', {
    function: shape('name arguments thought_signature'),
  }),
});

/** Tool choices by type. */
const CHOICES: Readonly<Record<string, Shape>> = Object.freeze({
  function: shape('type function', { function: shape('name') }),
});

const STREAM_OPTIONS = shape('include_usage');

/** Message fields that vendors of OpenAI's format know. */
export const MESSAGE_FIELDS: readonly string[] = Object.freeze(
  'role content name tool_calls tool_call_id refusal function_call audio prefix'.split(' '),
);

/** Message fields of other formats, or of responses that clients send back. Codecs read or remove them. */
export const FORMAT_FIELDS: ReadonlySet<string> = new Set(
  `annotations cache_control dialect_fields is_error opaque order reasoning reasoning_content reasoning_details
  thinking_blocks`.split(/\s+/),
);

/** Message fields of responses whose loss is reported if a vendor has no place for them. */
export const RESPONSE_FIELDS: readonly string[] = Object.freeze([
  'extra_content',
  'images',
  'provider_specific_fields',
]);

/** Removes unknown names below the top level, and adds their paths to `dropped`: `tools.x`, `messages.content.x`. */
export type DropInner = (request: ChatRequest, dropped: string[]) => ChatRequest;

/**
 * Compiles the removal of names that a vendor does not know in messages, tools, formats and stream options. `extras` has the
 * paths of those that it knows. `lacks` has the message fields without a place in the vendor's format; without it, the codec
 * removes unknown message fields itself. Returns the same request if nothing is removed.
 */
export function dropInnerOf(extras: readonly string[], lacks?: readonly string[]): DropInner {
  const own = new Set(extras);
  const ofMessages = [...MESSAGE_FIELDS, ...FORMAT_FIELDS, ...RESPONSE_FIELDS].filter((name) => !lacks?.includes(name));
  const message = lacks && shape(ofMessages.join(' '));

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

  function clearMessage(given: ChatMessage, dropped: string[]): ChatMessage {
    const known = message ? clear(given, message, 'messages', dropped) : given;
    const { content, tool_calls: calls } = known;
    const ownContent = Array.isArray(content) ? clearList(content, PARTS, 'messages.content', dropped) : content;
    const ownCalls = Array.isArray(calls) ? clearList(calls, CALLS, 'messages.tool_calls', dropped) : calls;
    if (ownContent === content && ownCalls === calls) return known;
    return {
      ...known,
      ...(ownContent !== undefined && { content: ownContent }),
      ...(ownCalls && { tool_calls: ownCalls }),
    };
  }

  function clearMessages(messages: ChatRequest['messages'], dropped: string[]): ChatRequest['messages'] {
    let changed: ChatRequest['messages'][number][] | undefined;
    for (let at = 0; at < messages.length; at += 1) {
      const given = messages[at];
      if (!given) continue;
      const cleared = clearMessage(given, dropped);
      if (cleared === given) continue;
      changed ??= [...messages];
      changed[at] = cleared;
    }
    return changed ?? messages;
  }

  return (request, dropped) => {
    const { messages, tools, tool_choice: choice, response_format: format, stream_options: options } = request;
    const cleared = clearMessages(messages, dropped);
    const ownTools = Array.isArray(tools) ? clearList(tools, TOOLS, 'tools', dropped) : tools;
    const ownFormat = clearTyped(format, FORMATS, 'response_format', dropped);
    const ownChoice = clearTyped(choice, CHOICES, 'tool_choice', dropped);
    const ownOptions = options && clear(options, STREAM_OPTIONS, 'stream_options', dropped);
    const isSame = cleared === messages && ownTools === tools && ownFormat === format;
    if (isSame && ownChoice === choice && ownOptions === options) return request;
    return {
      ...request,
      messages: cleared,
      ...(ownTools && { tools: ownTools }),
      ...(ownFormat && { response_format: ownFormat }),
      ...(ownChoice && { tool_choice: ownChoice }),
      ...(ownOptions && { stream_options: ownOptions }),
    };
  };
}
