import type { ChatRequest } from '../../contract/chat.ts';
import { isObject, type JsonObject, parseJson, readString } from '../../contract/json.ts';
import { EXEMPT_FIELDS, JSON_TEXT, NAMED_MEMBERS } from '../../contract/texts.ts';

/**
 * Request field with texts that only the caller's own body has, so that hooks can check everything that is sent. A
 * vendor of the caller's format gets that body, with members that the dialect does not read. `prepare` hooks find the
 * texts of these members in this field. If a hook changes the field, the request is translated, and these members are
 * not sent.
 */
const FIELD = 'native_texts';

/** Maximum depth of the search in JSON within a text. A body of the gateway is not deeper. */
const MAX_DEPTH = 128;

/** Request of a call, with the chat that brought it. */
interface Requested {
  readonly request: object;
  readonly client: { readonly isNative: boolean; readonly body: unknown; readonly request: ChatRequest } | undefined;
}

/** Returns the request for `prepare` hooks. Its texts are collected when the first hook reads them. */
export function withNativeTexts({ client, request }: Requested): object {
  if (!client?.isNative) return request;
  let texts: unknown;
  let isKnown = false;
  const shown = Object.defineProperty({ ...request }, FIELD, {
    enumerable: true,
    get(): unknown {
      if (!isKnown) texts = unreadOf(client.body, textsOf(client.request));
      isKnown = true;
      return texts;
    },
  });
  return Object.freeze(shown);
}

/**
 * Removes the field from the request that `prepare` hooks returned. `isNative`: the vendor may get the caller's own
 * body.
 */
export function withoutNativeTexts(
  shown: object,
  prepared: object,
): { readonly request: object; readonly isNative: boolean } {
  const { [FIELD]: texts, ...request } = prepared as JsonObject;
  return { request, isNative: texts === (shown as JsonObject)[FIELD] };
}

/** Converts a path within the field to a path in the caller's body; undefined for other paths. */
export function placeInBody(param: string): string | undefined {
  return param.startsWith(`${FIELD}.`) ? param.slice(FIELD.length + 1) : undefined;
}

/**
 * Texts of a canonical request: those that guardrails check, and encoded content, in which they search for text files.
 */
interface Texts {
  readonly read: Set<string>;
  readonly coded: Set<string>;
}

function textsOf(request: ChatRequest): Texts {
  const texts: Texts = { read: new Set(), coded: new Set() };
  addTexts(request, '', texts, 0);
  return texts;
}

function addTexts(value: unknown, field: string, texts: Texts, depth: number): void {
  if (depth > MAX_DEPTH) return;
  if (typeof value === 'string') {
    if (EXEMPT_FIELDS.has(field)) texts.coded.add(value).add(contentOf(value));
    else texts.read.add(value);
    if (JSON_TEXT.has(field)) addTexts(parseJson(value), '', texts, depth + 1);
  } else if (Array.isArray(value)) for (const member of value) addTexts(member, field, texts, depth + 1);
  else if (isObject(value))
    for (const [name, member] of Object.entries(value)) {
      const isName = NAMED_MEMBERS.has(field);
      if (isName) texts.read.add(name);
      addTexts(member, isName ? '' : name, texts, depth + 1);
    }
}

/** Returns the content of a data URL without decoding it. */
function contentOf(text: string): string {
  return /^data:/i.test(text) ? text.slice(text.indexOf(',') + 1) : text;
}

/** Members that specify the kind of the other members. */
const KINDS: readonly string[] = ['type', 'role', 'media_type', 'mime_type', 'mimeType'];

/**
 * Returns the parts of a value that no canonical text contains, in the structure of the value; undefined if there are
 * none. List members without such parts become null.
 */
function unreadOf(value: unknown, texts: Texts, field = ''): unknown {
  if (typeof value === 'string') return isUnread(value, field, texts) ? value : undefined;
  if (Array.isArray(value)) {
    const members = value.map((member) => unreadOf(member, texts, field));
    const last = members.findLastIndex((member) => member !== undefined);
    return last < 0 ? undefined : Object.freeze(members.slice(0, last + 1).map((member) => member ?? null));
  }
  if (!isObject(value)) return undefined;
  const isNamed = NAMED_MEMBERS.has(field);
  const unread: (readonly [name: string, member: unknown])[] = [];
  for (const [name, member] of Object.entries(value)) {
    const left = unreadOf(member, texts, isNamed ? '' : name);
    if (left !== undefined) unread.push([name, left]);
    else if (isNamed && !texts.read.has(name)) unread.push([name, null]);
  }
  if (unread.length === 0) return undefined;
  const kinds = KINDS.flatMap((name) => {
    const kind = isNamed ? undefined : readString(value[name]);
    return kind === undefined ? [] : [[name, kind] as const];
  });
  return Object.freeze(Object.fromEntries([...kinds, ...unread]));
}

function isUnread(text: string, field: string, { read, coded }: Texts): boolean {
  if (text === '' || read.has(text)) return false;
  if (!EXEMPT_FIELDS.has(field)) return true;
  const isContent = field === 'data' || field === 'file_data' || /^data:/i.test(text);
  if (!isContent || coded.has(text) || coded.has(contentOf(text))) return false;
  // The canonical request contains plain text files in encoded form.
  return !coded.has(Buffer.from(text).toString('base64'));
}
