import type { ChatRequest } from './chat.ts';
import { CHAT_MESSAGE, CHAT_REQUEST, CONTENT_PART } from './chat-schemas.ts';
import { hasNulls, isAddress, isLooseTool, isSource, type Reach, reachOf, SENT_AS, tokensOfPart } from './content.ts';
import type { DialectEffects, DialectNeed } from './dialect.ts';
import {
  freezing,
  isHalved,
  isObject,
  isPlain,
  type JsonObject,
  type JsonPlace,
  readArray,
  readObject,
  refusal,
  type Schema,
  tooDeep,
  toParam,
} from './json.ts';
import { estimateTextTokens, tokensOf } from './units.ts';

/**
 * Single walk over a request. It freezes the request, rejects forbidden content, and collects facts for gates, reservations and
 * codecs. Facts are cached by object, so values that a hook did not change are not walked again.
 */

/** URL that a vendor would fetch, and its path. */
export interface MediaAddress {
  readonly address: string;
  readonly param: string;
}

export interface DisguisedField {
  readonly param: string;
  readonly known: string;
}

/** Kind of a body, for the walk. */
export interface BodyShape {
  /** True for a canonical chat request, whose facts are collected. */
  readonly isChat: boolean;
  /** Fields with effects at the vendor, for dialects whose bodies may be forwarded. */
  readonly effects?: DialectEffects | undefined;
}

/** Shared empty set. */
const NO_NAMES = new Set<string>();
const NO_DIALECTS = new Map<string, string>();

/** Facts of a request, of a part of it, or of another body. */
class Notes {
  /** Estimated input tokens: messages, and every other field larger than a word or a number. */
  inputTokens = 0;
  /** URLs of images, sounds and files. */
  readonly media: MediaAddress[] = [];
  /** Fields of a body with effects at the vendor. */
  readonly needs: DialectNeed[] = [];
  /** Field whose name differs from a known one only by case. */
  disguised: DisguisedField | undefined;
  /** Dialects of the request's own blocks, tools and fields, each with its first path. */
  dialects = NO_DIALECTS;
  /** Encrypted texts of returned reasoning, in order. */
  readonly reasoning: string[] = [];
  /** Function names in tools, calls, results and the tool choice. */
  toolNames = NO_NAMES;
  /** True if messages or tools contain nulls or empty lists, or omit a `type`. */
  hasLooseMessages = false;
  hasLooseTools = false;
  /** True if a message has the old form, with `function_call` or the role `function`. */
  hasFunctions = false;

  add(other: Notes): void {
    this.inputTokens += other.inputTokens;
    this.disguised ??= other.disguised;
    this.hasLooseMessages ||= other.hasLooseMessages;
    this.hasLooseTools ||= other.hasLooseTools;
    this.hasFunctions ||= other.hasFunctions;
    for (const each of other.media) this.media.push(each);
    for (const each of other.reasoning) this.reasoning.push(each);
    for (const each of other.toolNames) this.recordTool(each);
    for (const [dialect, param] of other.dialects) this.recordDialect(dialect, param);
  }

  recordDialect(dialect: string, param: string): void {
    if (this.dialects === NO_DIALECTS) this.dialects = new Map();
    if (!this.dialects.has(dialect)) this.dialects.set(dialect, param);
  }

  recordTool(name: string): void {
    if (this.toolNames === NO_NAMES) this.toolNames = new Set();
    this.toolNames.add(name);
  }
}

/** Facts of a chat request. */
export interface RequestFacts extends Readonly<Omit<Notes, 'add' | 'recordDialect' | 'recordTool' | 'needs'>> {}

/** Facts of a dialect's body that may be forwarded unchanged. */
export interface BodyFacts extends Readonly<Pick<Notes, 'media' | 'needs'>> {}

/** Facts of frozen requests, message lists and other fields. */
const notesByList = new WeakMap<object, Notes>();
const notesByBody = new WeakMap<object, Notes>();

/**
 * Returns the facts of a chat request, and freezes it on request. Facts of an unfrozen request are not cached, because it may
 * change.
 */
export function factsOf(request: ChatRequest, freezes = !freezing.isOn || Object.isFrozen(request)): RequestFacts {
  return notesByList.get(request) ?? new Walk({ freezes }).chat(request);
}

/** Copies the facts of a list to its normal form, which contains no nulls and every `type`. */
export function copyFacts(list: object, normal: object): void {
  const notes = notesByList.get(list);
  if (!notes) return;
  notesByList.set(normal, Object.assign(new Notes(), notes, { hasLooseMessages: false, hasLooseTools: false }));
}

/** Returns the facts of a frozen body of a dialect whose bodies may be forwarded. */
export function bodyFactsOf(body: unknown, effects: DialectEffects): BodyFacts {
  const known = isObject(body) ? notesByBody.get(body) : undefined;
  return known ?? new Walk({ freezes: true, effects }).body(body);
}

/**
 * Freezes a body from outside. Returns its heap size in bytes, without its texts. Throws `invalid_json` for valid JSON that is not
 * accepted: numbers beyond a double, names that reach an object's prototype, levels below `maxDepth`. Lone surrogates are rejected
 * too, if the body may contain some.
 */
export function takeBody(
  value: unknown,
  mayHoldSurrogates: boolean,
  shape?: BodyShape,
  maxDepth = Number.POSITIVE_INFINITY,
): number {
  const walk = new Walk({ freezes: true, effects: shape?.effects, isStrict: true, mayHoldSurrogates, maxDepth });
  if (shape?.isChat && isObject(value) && Array.isArray(value['messages'])) walk.chat(value);
  else walk.body(value);
  return walk.heapBytes;
}

/** Finds a field of another operation's request whose name differs from a known one only by case. */
export function findDisguised(request: object, schema: Schema): DisguisedField | undefined {
  return new Walk({ freezes: false }).fields(request, schema);
}

/** Request fields that no model reads: they may be long and cost nothing. */
const UNREAD: ReadonlySet<string> = new Set(['metadata', 'logit_bias', 'stream_options', 'stop', 'modalities']);

/** Token overhead per message, without its text. */
const TOKENS_PER_MESSAGE = 4;

/** Matches names in their canonical case: no other name folds to them. */
const PLAIN = /^[a-z0-9_]+$/;

/** Position of the walk: an object or a list. */
interface WalkPosition extends JsonPlace {
  node: object;
  readonly within: WalkPosition | undefined;
  at: JsonPlace['at'];
  /** Nesting depth, including this level. */
  readonly depth: number;
  readonly schema: Schema | undefined;
  readonly reach: Reach;
}

/** Maximum number of objects and lists, far above the limit of a body: a value made by a hook may contain itself. */
const MAX_NODES = 1_000_000;

/** Heap size in bytes, without text. A member is a name with its value. */
const HEAP_BYTES = Object.freeze({ container: 100, member: 120, item: 40 });

interface WalkOptions extends Pick<BodyShape, 'effects'> {
  readonly freezes: boolean;
  /** True for unmodified input from outside, which may contain lone surrogates. */
  readonly isStrict?: boolean;
  readonly mayHoldSurrogates?: boolean;
  /** Maximum nesting depth; default: unlimited. */
  readonly maxDepth?: number;
}

/** One walk. It is iterative, so nesting depth is safe. */
class Walk {
  readonly #options: WalkOptions;
  readonly #waiting: WalkPosition[] = [];
  #notes = new Notes();
  /** Kind of the current value. */
  #texts: 'json' | 'part' | 'body' = 'json';
  /** Size of the last value: bytes of its texts, or of its JSON, and whether it is base64 content. */
  #bytes = 0;
  #isSent = false;
  #nodes = 0;
  #names = 0;
  #items = 0;

  constructor(options: WalkOptions) {
    this.#options = options;
  }

  /** Heap size of the walked values in bytes, without texts; at least the size from `measureJson`. */
  get heapBytes(): number {
    return this.#nodes * HEAP_BYTES.container + this.#names * HEAP_BYTES.member + this.#items * HEAP_BYTES.item;
  }

  /** Walks a chat request, field by field. */
  chat(request: JsonObject): Notes {
    const place = placeOf(request, undefined, '', CHAT_REQUEST);
    const all = this.#notes;
    this.#open(place);
    for (const name of Object.keys(request)) {
      const value = request[name];
      const schema = this.#name(name, place);
      if (typeof value !== 'object' || value === null) this.#refuse(value, place, name);
      else all.add(notesByList.get(value) ?? this.#field(name, value, place, schema));
    }
    if (this.#options.freezes) notesByList.set(request, all);
    return all;
  }

  /** Walks any other body. */
  body(value: unknown): Notes {
    this.#texts = 'body';
    if (typeof value !== 'object' || value === null) this.#refuse(value, undefined, '');
    else {
      this.#walk(placeOf(value));
      if (this.#options.effects) notesByBody.set(value, this.#notes);
    }
    return this.#notes;
  }

  /** Checks the names of the fields that a schema lists. */
  fields(request: object, schema: Schema): DisguisedField | undefined {
    this.#walk(placeOf(request, undefined, '', schema));
    return this.#notes.disguised;
  }

  /** Walks a list of messages or another field of a request. */
  #field(name: string, value: object, within: WalkPosition, schema: Schema | undefined): Notes {
    const outer = this.#notes;
    const notes = new Notes();
    const place = placeOf(value, within, name, schema);
    this.#notes = notes;
    if (name === 'messages' && Array.isArray(value)) this.#messages(value, place);
    else {
      const tokens = this.#measure(place);
      if (!UNREAD.has(name)) notes.inputTokens += tokens;
      if (name === 'tools' && Array.isArray(value)) {
        notes.hasLooseTools = value.some(isLooseTool);
        this.#recordNames(value);
        this.#recordOpaque(value, place);
      }
      if (name === 'tool_choice')
        this.#recordNames([value, ...readArray(readObject(readObject(value)['allowed_tools'])['tools'])]);
      if (name === 'dialect_fields') this.#recordDialects(value, 'dialect_fields');
    }
    this.#notes = outer;
    if (this.#options.freezes) notesByList.set(value, notes);
    return notes;
  }

  #messages(messages: readonly unknown[], place: WalkPosition): void {
    this.#open(place);
    // One place for all messages: the walk never returns to a previous message.
    const own = placeOf(messages, place, 0, CHAT_MESSAGE);
    for (let index = 0; index < messages.length; index += 1) {
      const message = messages[index];
      if (isObject(message)) {
        own.node = message;
        own.at = index;
        this.#message(message, own);
      } else this.#other(message, place, index);
    }
  }

  #message(message: JsonObject, place: WalkPosition): void {
    const notes = this.#notes;
    const { role, content } = message;
    const isResult = role === 'tool' || role === 'function';
    let isLoose = content === undefined || (content === null && isResult);
    this.#open(place);
    notes.inputTokens += TOKENS_PER_MESSAGE;
    if (role === 'function' || isObject(message['function_call'])) notes.hasFunctions = true;
    if (role === 'tool' && typeof message['name'] === 'string') notes.recordTool(message['name']);
    for (const name in message) {
      const value = message[name];
      const schema = this.#name(name, place);
      if (typeof value === 'string') {
        this.#refuse(value, place, name);
        if (name !== 'role' && name !== 'tool_call_id') notes.inputTokens += estimateTextTokens(value);
      } else if (typeof value !== 'object' || value === null) {
        this.#refuse(value, place, name);
        isLoose ||= name !== 'content' && (value === null || value === undefined);
      } else if (name === 'content' && Array.isArray(value)) {
        isLoose ||= value.length === 0;
        this.#parts(value, placeOf(value, place, name));
      } else {
        const inner = placeOf(value, place, name, schema);
        isLoose ||= Array.isArray(value) && value.length === 0;
        notes.inputTokens += this.#measure(inner);
        if (name === 'tool_calls' && Array.isArray(value)) {
          isLoose ||= value.some(isLooseTool);
          this.#recordNames(value);
        } else if (name === 'reasoning_details') this.#recordReasoning(value);
        else if (name === 'opaque') this.#recordOpaque(value, inner);
        else if (name === 'dialect_fields') this.#recordDialects(value, toParam(place, name));
      }
    }
    notes.hasLooseMessages ||= isLoose;
  }

  #parts(parts: readonly unknown[], place: WalkPosition): void {
    this.#open(place);
    for (let index = 0; index < parts.length; index += 1) {
      const part = parts[index];
      if (isObject(part))
        this.#part(part, placeOf(part, place, index, CONTENT_PART, part['type'] === 'opaque' ? 'all' : 'every'));
      else this.#other(part, place, index);
    }
  }

  #part(part: JsonObject, place: WalkPosition): void {
    const { type, text } = part;
    this.#texts = 'part';
    this.#bytes = 0;
    this.#isSent = false;
    this.#walk(place);
    this.#texts = 'json';
    this.#notes.inputTokens +=
      typeof text === 'string' ? estimateTextTokens(text) : tokensOfPart(part, this.#bytes, this.#isSent);
    if (type === 'opaque') this.#notes.recordDialect(String(part['dialect']), toParam(place.within, place.at));
    this.#notes.hasLooseMessages ||= hasNulls(part) || hasNulls(part[String(type)]);
  }

  /** Returns the tokens of a value as JSON. */
  #measure(place: WalkPosition): number {
    this.#bytes = 0;
    this.#walk(place);
    return tokensOf(this.#bytes);
  }

  /** Walks an unexpected value in a list of messages or parts. The schema rejects it later. */
  #other(value: unknown, within: WalkPosition, at: number): void {
    if (typeof value === 'object' && value !== null) this.#walk(placeOf(value, within, at));
    else this.#refuse(value, within, at);
  }

  /** Walks a value and everything below it. */
  #walk(first: WalkPosition): void {
    const waiting = this.#waiting;
    for (let place: WalkPosition | undefined = first; place; place = waiting.pop()) {
      const { node, schema } = place;
      if (!this.#open(place)) continue;
      if (Array.isArray(node)) {
        const items = schema && readObject(schema['items']);
        this.#bytes += this.#texts === 'part' ? 0 : Math.max(node.length + 1, 2);
        for (let index = 0; index < node.length; index += 1) this.#member(node[index], place, index, items);
      } else {
        const fields = node as JsonObject;
        const names = Object.keys(fields);
        this.#bytes += this.#texts === 'part' ? 0 : Math.max(names.length + 1, 2);
        for (const name of names) {
          if (this.#texts !== 'part') this.#bytes += Buffer.byteLength(name) + 3;
          this.#member(fields[name], place, name, this.#name(name, place));
        }
      }
    }
  }

  #member(value: unknown, place: WalkPosition, at: string | number, schema?: Schema): void {
    if (typeof value === 'string') {
      this.#refuse(value, place, at);
      this.#text(value, place, at);
    } else if (typeof value === 'object' && value !== null) {
      const reach = this.#guards && typeof at === 'string' ? reachOf(place.node, place.reach, at) : place.reach;
      if (typeof at === 'string') this.#recordEffect(value, place, at);
      this.#waiting.push(placeOf(value, place, at, schema, reach));
    } else {
      this.#refuse(value, place, at);
      if (this.#texts === 'json') this.#bytes += String(value).length;
    }
  }

  #text(text: string, place: WalkPosition, at: string | number): void {
    if (this.#texts === 'json') this.#bytes += Buffer.byteLength(text) + 2;
    else if (this.#texts === 'part' && !(at === 'text' && place.schema === CONTENT_PART)) {
      const isData = SENT_AS.has(String(at)) || text.startsWith('data:');
      this.#isSent ||= isData;
      this.#bytes += isData ? (text.length * 3) / 4 : Buffer.byteLength(text);
    }
    if (!this.#guards || place.reach === 'nothing') return;
    if (typeof at === 'string') this.#recordEffect(text, place, at);
    const name = String(typeof at === 'string' ? at : place.at);
    if (place.reach === 'effects' || !isAddress(text, name, this.#texts === 'part')) return;
    if (place.reach === 'every' || !isSource(place.node))
      this.#notes.media.push({ address: text, param: toParam(place, at) });
  }

  /** True if the walk currently searches for URLs and effects. */
  get #guards(): boolean {
    return this.#texts === 'part' || (this.#texts === 'body' && this.#options.effects !== undefined);
  }

  /** Freezes plain data; returns false for other values, such as bytes. */
  #open({ node, depth }: WalkPosition): boolean {
    const { isStrict, freezes, maxDepth } = this.#options;
    if (!isStrict && !isPlain(node)) return false;
    this.#nodes += 1;
    if (Array.isArray(node)) this.#items += node.length;
    if (this.#nodes > MAX_NODES) throw new TypeError('a request has too many values, or contains itself');
    if (maxDepth !== undefined && depth > maxDepth) throw tooDeep(maxDepth);
    if (freezes && freezing.isOn) Object.freeze(node);
    return true;
  }

  /** Returns the schema of a field; records and rejects forbidden names. */
  #name(name: string, place: WalkPosition): Schema | undefined {
    const { isStrict, mayHoldSurrogates } = this.#options;
    if (isStrict) {
      this.#names += 1;
      if (name === '__proto__') throw refusal('is a name that is not allowed', place, name);
      if (name === 'prototype' && place.at === 'constructor')
        throw refusal('is a name that is not allowed', place.within, place.at);
      if (mayHoldSurrogates && isHalved(name)) throw refusal('contains half a surrogate pair', place.within, place.at);
    }
    const known = place.schema?.['properties'];
    if (!isObject(known)) return undefined;
    if (Object.hasOwn(known, name)) return readObject(known[name]);
    if (!PLAIN.test(name) && Object.hasOwn(known, foldCase(name)))
      this.#notes.disguised ??= { param: toParam(place, name), known: foldCase(name) };
    return undefined;
  }

  /** Rejects texts, numbers and words from outside that are valid JSON but not accepted. */
  #refuse(value: unknown, place: WalkPosition | undefined, at: string | number): void {
    const { isStrict, mayHoldSurrogates } = this.#options;
    if (typeof value === 'string' && mayHoldSurrogates && isHalved(value))
      throw refusal('contains half a surrogate pair', place, at);
    if (typeof value === 'number' && isStrict && !Number.isFinite(value))
      throw refusal('is a number too large to hold', place, at);
  }

  #recordEffect(value: unknown, place: WalkPosition, at: string): void {
    const { effects } = this.#options;
    if (!effects || place.reach === 'nothing' || !Object.hasOwn(effects, at)) return;
    const effect = effects[at];
    if (effect && (typeof value === 'string' || readArray(value).length > 0))
      this.#notes.needs.push({ ...effect, param: toParam(place, at) });
  }

  #recordNames(items: readonly unknown[]): void {
    for (const item of items) {
      const called = isObject(item) ? item['function'] : undefined;
      if (isObject(called) && typeof called['name'] === 'string') this.#notes.recordTool(called['name']);
    }
  }

  #recordReasoning(details: unknown): void {
    for (const detail of readArray(details)) {
      const data = isObject(detail) ? detail['data'] : undefined;
      if (typeof data === 'string') this.#notes.reasoning.push(data);
    }
  }

  #recordOpaque(items: unknown, place: WalkPosition): void {
    for (const [index, item] of readArray(items).entries())
      if (isObject(item) && item['type'] === 'opaque')
        this.#notes.recordDialect(String(item['dialect']), toParam(place, index));
  }

  #recordDialects(fields: unknown, param: string): void {
    for (const dialect of Object.keys(readObject(fields))) this.#notes.recordDialect(dialect, `${param}.${dialect}`);
  }
}

function placeOf(
  node: object,
  within?: WalkPosition,
  at: WalkPosition['at'] = '',
  schema?: Schema,
  reach: Reach = 'all',
): WalkPosition {
  return { node, within, depth: within ? within.depth + 1 : 1, at, schema, reach };
}

/** Folds through upper case: U+017F has no lower case, but its upper case is S. */
function foldCase(field: string): string {
  return field.toUpperCase().toLowerCase();
}
