import type { ChatRequest } from './chat.ts';
import { GatewayError } from './errors.ts';
import { copyFacts, factsOf } from './facts.ts';
import { isObject, type JsonObject, readObject } from './json.ts';

/** Normal form of a value: its null fields are absent, and the fields listed here. */
interface Form {
  /** Fields that are removed if they hold an empty list. */
  readonly lists?: readonly string[];
  /** Fields in which null has its own meaning. */
  readonly nulls?: readonly string[];
  /** Fields that are normalized too. All others stay unchanged: schemas, arguments, `metadata`. */
  readonly fields?: Readonly<Record<string, Form>>;
  /** Items of a list. */
  readonly items?: Form;
  /** Adds fields that clients omit; returns the same object if none is missing. */
  readonly fill?: (value: JsonObject) => JsonObject;
}

const PLAIN: Form = Object.freeze({});

/** Default for calls and tools of clients that omit `type`. */
const FUNCTION: Form = Object.freeze({
  fields: { function: PLAIN },
  fill: (value) => ('type' in value || !('function' in value) ? value : { ...value, type: 'function' }),
} satisfies Form);

const PART: Form = Object.freeze({
  fields: { image_url: PLAIN, file: PLAIN, input_audio: PLAIN, audio_url: PLAIN, video_url: PLAIN },
} satisfies Form);

const MESSAGE: Form = Object.freeze({
  lists: ['tool_calls', 'annotations', 'reasoning_details', 'thinking_blocks'],
  nulls: ['content'],
  fields: { content: { items: PART }, tool_calls: { items: FUNCTION } },
  fill: withContent,
} satisfies Form);

/** Request fields, except the lists of messages and tools. */
const CHAT_FIELDS = Object.freeze({
  audio: PLAIN,
  functions: { items: PLAIN },
  prediction: PLAIN,
  response_format: { fields: { json_schema: PLAIN } },
  stream_options: PLAIN,
  web_search_options: PLAIN,
} satisfies Form['fields']);

/** Returns the form for a request; lists are normalized only if the walk over the request marked them as loose. */
function chatForm(hasLooseMessages: boolean, hasLooseTools: boolean): Form {
  const fields: Record<string, Form> = { ...CHAT_FIELDS };
  if (hasLooseMessages) fields['messages'] = { items: MESSAGE };
  if (hasLooseTools) fields['tools'] = { items: FUNCTION };
  return { lists: ['functions', 'stop', 'tools'], fields };
}

/** Form of almost all requests. */
const PLAIN_CHAT = chatForm(false, false);

/** Fields that refer to a list. Vendors reject them without it. */
const ABOUT: Readonly<Record<'tools' | 'functions', readonly string[]>> = Object.freeze({
  tools: ['tool_choice', 'parallel_tool_calls'],
  functions: ['function_call'],
});

/**
 * Returns a request in its normal form: without empty lists and without nulls that mean "not set". Returns the same object if
 * nothing changes. Throws `invalid_request` for a forced tool choice without tools.
 */
export function normalChat(request: ChatRequest): ChatRequest {
  const { hasLooseMessages, hasLooseTools } = factsOf(request);
  const form = hasLooseMessages || hasLooseTools ? chatForm(hasLooseMessages, hasLooseTools) : PLAIN_CHAT;
  let cleared = clear<JsonObject>(request, form);
  if (!('tools' in cleared) && !('functions' in cleared)) {
    if (isForced(cleared['tool_choice'])) throw noTools('tool_choice');
    if (isForced(cleared['function_call'])) throw noTools('function_call');
    // Only for a list that was empty: without any list, the vendor decides.
    if ('tools' in request) cleared = without(cleared, ABOUT.tools);
    if ('functions' in request) cleared = without(cleared, ABOUT.functions);
  }
  if (cleared === request) return request;
  const normal = cleared as ChatRequest;
  if (!Object.isFrozen(request)) return normal;
  for (const list of ['messages', 'tools']) {
    const [before, after] = [request[list], normal[list]];
    if (before !== after && Array.isArray(before) && Array.isArray(after)) copyFacts(before, after);
  }
  factsOf(Object.freeze(normal));
  return normal;
}

/** Normalizes a value by its form. New objects are frozen, as requests are. */
function clear<T>(value: T, form: Form): T {
  if (Array.isArray(value)) {
    const { items } = form;
    if (!items) return value;
    const cleared = value.map((item: unknown) => clear(item, items));
    return cleared.every((item, at) => item === value[at]) ? value : (Object.freeze(cleared) as T);
  }
  if (!isObject(value)) return value;
  const { lists, nulls, fields, fill } = form;
  let changed: Record<string, unknown> | undefined;
  for (const name of Object.keys(value)) {
    const own = value[name];
    const below = fields && Object.hasOwn(fields, name) ? fields[name] : undefined;
    const cleared = below ? clear(own, below) : own;
    const isAbsent =
      own === undefined ||
      (own === null && nulls?.includes(name) !== true) ||
      (Array.isArray(own) && own.length === 0 && lists?.includes(name) === true);
    if (!isAbsent && cleared === own) continue;
    changed ??= { ...value };
    if (isAbsent) delete changed[name];
    else changed[name] = cleared;
  }
  const result: JsonObject = changed ?? value;
  const filled = fill ? fill(result) : result;
  return filled === value ? value : (Object.freeze(filled) as T);
}

/** Adds content to a message. An assistant message may have only calls; all other roles may have empty content. */
function withContent(message: JsonObject): JsonObject {
  const { role, content, tool_calls: calls } = message;
  const isResult = role === 'tool' || role === 'function';
  const isEmpty = Array.isArray(content) && content.length === 0;
  if (!isEmpty && content !== undefined && !(content === null && isResult)) return message;
  const isSilent = role === 'assistant' && (calls !== undefined || !isEmpty);
  return { ...message, content: isSilent ? null : '' };
}

/** Returns whether a tool choice requires a call. */
export function isForced(choice: unknown): boolean {
  if (typeof choice === 'string') return choice !== 'auto' && choice !== 'none';
  const { mode } = readObject(readObject(choice)['allowed_tools']);
  return isObject(choice) && mode !== 'auto';
}

function noTools(param: string): GatewayError {
  const list = param === 'tool_choice' ? 'tools' : 'functions';
  return new GatewayError(
    'invalid_request',
    `\`${param}\` requires a tool call, but the request has no \`${list}\`. Send \`${list}\` or remove \`${param}\`.`,
    { param },
  );
}

function without(value: JsonObject, names: readonly string[]): JsonObject {
  if (!names.some((name) => name in value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
}
