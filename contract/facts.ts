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
 * One walk over a request, the only one: it freezes, refuses what a body must not hold, and notes the facts that gates, reservations and
 * codecs ask for. Notes are kept by the object they are about, so what a hook left as it was is not looked through again.
 */

/** An address that a vendor would fetch, and where it stands. */
export interface MediaAddress {
  readonly address: string;
  readonly param: string;
}

export interface DisguisedField {
  readonly param: string;
  readonly known: string;
}

/** What a body is, for the walk over it. */
export interface BodyShape {
  /** A chat request in its canonical form: its facts are noted on the way. */
  readonly isChat: boolean;
  /** Fields that act at the vendor, of a dialect whose bodies may be passed on. */
  readonly effects?: DialectEffects | undefined;
}

/** Shared by all notes that hold none. */
const NO_NAMES = new Set<string>();
const NO_DIALECTS = new Map<string, string>();

/** What was noted of a request, of a part of it, or of another body. */
class Notes {
  /** The tokens of the input, estimated: of the messages, and of every other field that is more than a word or a number. */
  inputTokens = 0;
  /** Addresses of images, sounds and files. */
  readonly media: MediaAddress[] = [];
  /** Fields of a body that act at the vendor. */
  readonly needs: DialectNeed[] = [];
  /** A field whose name is a known one in another case. */
  disguised: DisguisedField | undefined;
  /** Dialects whose own blocks, tools and fields the request holds, each with the first place. */
  dialects = NO_DIALECTS;
  /** The encrypted texts of the reasoning that came back, in order. */
  readonly reasoning: string[] = [];
  /** Names of functions that tools, calls, results and the choice of a tool have. */
  toolNames = NO_NAMES;
  /** Whether messages or tools hold nulls or empty lists, or leave a `type` out. */
  hasLooseMessages = false;
  hasLooseTools = false;
  /** Whether a message is of the old form, with `function_call` or the role `function`. */
  hasFunctions = false;

  add(other: Notes): void {
    this.inputTokens += other.inputTokens;
    this.disguised ??= other.disguised;
    this.hasLooseMessages ||= other.hasLooseMessages;
    this.hasLooseTools ||= other.hasLooseTools;
    this.hasFunctions ||= other.hasFunctions;
    for (const each of other.media) this.media.push(each);
    for (const each of other.reasoning) this.reasoning.push(each);
    for (const each of other.toolNames) this.noteTool(each);
    for (const [dialect, param] of other.dialects) this.noteDialect(dialect, param);
  }

  noteDialect(dialect: string, param: string): void {
    if (this.dialects === NO_DIALECTS) this.dialects = new Map();
    if (!this.dialects.has(dialect)) this.dialects.set(dialect, param);
  }

  noteTool(name: string): void {
    if (this.toolNames === NO_NAMES) this.toolNames = new Set();
    this.toolNames.add(name);
  }
}

/** What one walk found in a chat request. */
export interface RequestFacts extends Readonly<Omit<Notes, 'add' | 'noteDialect' | 'noteTool' | 'needs'>> {}

/** What one walk found in a body of a dialect that may be passed on as it is. */
export interface BodyFacts extends Readonly<Pick<Notes, 'media' | 'needs'>> {}

/** Of requests, lists of messages and other fields, all frozen. */
const noted = new WeakMap<object, Notes>();
const notedBodies = new WeakMap<object, Notes>();

/** The facts of a chat request, which is frozen on the way when asked for. One that is not frozen may still change: its facts are not kept. */
export function factsOf(request: ChatRequest, freezes = !freezing.isOn || Object.isFrozen(request)): RequestFacts {
  return noted.get(request) ?? new Walk({ freezes }).chat(request);
}

/** Keeps the facts of a list for the same list in its normal form, which holds no nulls and has every `type`. */
export function copyFacts(list: object, normal: object): void {
  const notes = noted.get(list);
  if (!notes) return;
  noted.set(normal, Object.assign(new Notes(), notes, { hasLooseMessages: false, hasLooseTools: false }));
}

/** The facts of a frozen body of a dialect whose bodies may be passed on. */
export function bodyFactsOf(body: unknown, effects: DialectEffects): BodyFacts {
  const known = isObject(body) ? notedBodies.get(body) : undefined;
  return known ?? new Walk({ freezes: true, effects }).body(body);
}

/**
 * Freezes a body from outside. Throws `invalid_json` for what JSON can say and is not taken: numbers beyond a double, half surrogate pairs
 * (where some may be), names that reach an object's prototype, levels below `maxDepth`. Returns the bytes of heap that it takes beside
 * its texts.
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

/** A field of a request of another operation whose name is a known one in another case. */
export function findDisguised(request: object, schema: Schema): DisguisedField | undefined {
  return new Walk({ freezes: false }).fields(request, schema);
}

/** Fields of a request that no model reads: they may be long and cost nothing. */
const UNREAD: ReadonlySet<string> = new Set(['metadata', 'logit_bias', 'stream_options', 'stop', 'modalities']);

/** What a message costs beside its text, in tokens. */
const TOKENS_PER_MESSAGE = 4;

/** Names that are written as they are known: nothing else folds to them. */
const PLAIN = /^[a-z0-9_]+$/;

/** Where the walk stands: an object or a list. */
interface Place extends JsonPlace {
  node: object;
  readonly within: Place | undefined;
  at: JsonPlace['at'];
  /** Levels of objects and lists, this one included. */
  readonly depth: number;
  readonly schema: Schema | undefined;
  readonly reach: Reach;
}

/** More objects and lists than a body may hold, by far: what a hook made may hold itself. */
const MAX_NODES = 1_000_000;

/** Bytes of heap of one of these, beside its text: a member is a name with its value. */
const HEAP_BYTES = Object.freeze({ container: 100, member: 120, item: 40 });

interface WalkOptions extends Pick<BodyShape, 'effects'> {
  readonly freezes: boolean;
  /** Whether what it looks through came from outside as it is, and may hold half surrogate pairs. */
  readonly isStrict?: boolean;
  readonly mayHoldSurrogates?: boolean;
  /** Most levels of objects and lists; any number unless set. */
  readonly maxDepth?: number;
}

/** One walk. It does not recurse, however deep a request nests. */
class Walk {
  readonly #options: WalkOptions;
  readonly #waiting: Place[] = [];
  #notes = new Notes();
  /** What is looked through now. */
  #texts: 'json' | 'part' | 'body' = 'json';
  /** Of what was looked through last: bytes of its texts, or of all of it as JSON, and whether it is content in base64. */
  #bytes = 0;
  #isSent = false;
  #nodes = 0;
  #names = 0;
  #items = 0;

  constructor(options: WalkOptions) {
    this.#options = options;
  }

  /** Bytes of heap of what was looked through, beside its texts: at least as many as `measureJson` counts. */
  get heapBytes(): number {
    return this.#nodes * HEAP_BYTES.container + this.#names * HEAP_BYTES.member + this.#items * HEAP_BYTES.item;
  }

  /** A chat request, field by field. */
  chat(request: JsonObject): Notes {
    const place = placeOf(request, undefined, '', CHAT_REQUEST);
    const all = this.#notes;
    this.#open(place);
    for (const name of Object.keys(request)) {
      const value = request[name];
      const schema = this.#name(name, place);
      if (typeof value !== 'object' || value === null) this.#refuse(value, place, name);
      else all.add(noted.get(value) ?? this.#field(name, value, place, schema));
    }
    if (this.#options.freezes) noted.set(request, all);
    return all;
  }

  /** Any other body. */
  body(value: unknown): Notes {
    this.#texts = 'body';
    if (typeof value !== 'object' || value === null) this.#refuse(value, undefined, '');
    else {
      this.#look(placeOf(value));
      if (this.#options.effects) notedBodies.set(value, this.#notes);
    }
    return this.#notes;
  }

  /** What the fields that a schema names are called. */
  fields(request: object, schema: Schema): DisguisedField | undefined {
    this.#look(placeOf(request, undefined, '', schema));
    return this.#notes.disguised;
  }

  /** A list of messages, or another field of a request. */
  #field(name: string, value: object, within: Place, schema: Schema | undefined): Notes {
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
        this.#noteNames(value);
        this.#noteOpaque(value, place);
      }
      if (name === 'tool_choice')
        this.#noteNames([value, ...readArray(readObject(readObject(value)['allowed_tools'])['tools'])]);
      if (name === 'dialect_fields') this.#noteDialects(value, 'dialect_fields');
    }
    this.#notes = outer;
    if (this.#options.freezes) noted.set(value, notes);
    return notes;
  }

  #messages(messages: readonly unknown[], place: Place): void {
    this.#open(place);
    // One for all of them: nothing below a message is looked through after it.
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

  #message(message: JsonObject, place: Place): void {
    const notes = this.#notes;
    const { role, content } = message;
    const isResult = role === 'tool' || role === 'function';
    let isLoose = content === undefined || (content === null && isResult);
    this.#open(place);
    notes.inputTokens += TOKENS_PER_MESSAGE;
    if (role === 'function' || isObject(message['function_call'])) notes.hasFunctions = true;
    if (role === 'tool' && typeof message['name'] === 'string') notes.noteTool(message['name']);
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
          this.#noteNames(value);
        } else if (name === 'reasoning_details') this.#noteReasoning(value);
        else if (name === 'opaque') this.#noteOpaque(value, inner);
        else if (name === 'dialect_fields') this.#noteDialects(value, toParam(place, name));
      }
    }
    notes.hasLooseMessages ||= isLoose;
  }

  #parts(parts: readonly unknown[], place: Place): void {
    this.#open(place);
    for (let index = 0; index < parts.length; index += 1) {
      const part = parts[index];
      if (isObject(part))
        this.#part(part, placeOf(part, place, index, CONTENT_PART, part['type'] === 'opaque' ? 'all' : 'every'));
      else this.#other(part, place, index);
    }
  }

  #part(part: JsonObject, place: Place): void {
    const { type, text } = part;
    this.#texts = 'part';
    this.#bytes = 0;
    this.#isSent = false;
    this.#look(place);
    this.#texts = 'json';
    this.#notes.inputTokens +=
      typeof text === 'string' ? estimateTextTokens(text) : tokensOfPart(part, this.#bytes, this.#isSent);
    if (type === 'opaque') this.#notes.noteDialect(String(part['dialect']), toParam(place.within, place.at));
    this.#notes.hasLooseMessages ||= hasNulls(part) || hasNulls(part[String(type)]);
  }

  /** The tokens of a value as JSON. */
  #measure(place: Place): number {
    this.#bytes = 0;
    this.#look(place);
    return tokensOf(this.#bytes);
  }

  /** Whatever else stands in a list of messages or parts: the schema refuses it later. */
  #other(value: unknown, within: Place, at: number): void {
    if (typeof value === 'object' && value !== null) this.#look(placeOf(value, within, at));
    else this.#refuse(value, within, at);
  }

  /** Everything below a place, and itself. */
  #look(first: Place): void {
    const waiting = this.#waiting;
    for (let place: Place | undefined = first; place; place = waiting.pop()) {
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

  #member(value: unknown, place: Place, at: string | number, schema?: Schema): void {
    if (typeof value === 'string') {
      this.#refuse(value, place, at);
      this.#text(value, place, at);
    } else if (typeof value === 'object' && value !== null) {
      const reach = this.#guards && typeof at === 'string' ? reachOf(place.node, place.reach, at) : place.reach;
      if (typeof at === 'string') this.#noteEffect(value, place, at);
      this.#waiting.push(placeOf(value, place, at, schema, reach));
    } else {
      this.#refuse(value, place, at);
      if (this.#texts === 'json') this.#bytes += String(value).length;
    }
  }

  #text(text: string, place: Place, at: string | number): void {
    if (this.#texts === 'json') this.#bytes += Buffer.byteLength(text) + 2;
    else if (this.#texts === 'part' && !(at === 'text' && place.schema === CONTENT_PART)) {
      const isData = SENT_AS.has(String(at)) || text.startsWith('data:');
      this.#isSent ||= isData;
      this.#bytes += isData ? (text.length * 3) / 4 : Buffer.byteLength(text);
    }
    if (!this.#guards || place.reach === 'nothing') return;
    if (typeof at === 'string') this.#noteEffect(text, place, at);
    const name = String(typeof at === 'string' ? at : place.at);
    if (place.reach === 'effects' || !isAddress(text, name, this.#texts === 'part')) return;
    if (place.reach === 'every' || !isSource(place.node))
      this.#notes.media.push({ address: text, param: toParam(place, at) });
  }

  /** Whether addresses and effects are looked for in what is looked through now. */
  get #guards(): boolean {
    return this.#texts === 'part' || (this.#texts === 'body' && this.#options.effects !== undefined);
  }

  /** Freezes what is plain data; false for what is something else, such as bytes. */
  #open({ node, depth }: Place): boolean {
    const { isStrict, freezes, maxDepth } = this.#options;
    if (!isStrict && !isPlain(node)) return false;
    this.#nodes += 1;
    if (Array.isArray(node)) this.#items += node.length;
    if (this.#nodes > MAX_NODES) throw new TypeError('a request has too many values, or contains itself');
    if (maxDepth !== undefined && depth > maxDepth) throw tooDeep(maxDepth);
    if (freezes && freezing.isOn) Object.freeze(node);
    return true;
  }

  /** The schema of a field; notes and refuses what its name must not be. */
  #name(name: string, place: Place): Schema | undefined {
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

  /** Refuses a text, number or word from outside that JSON can say and is not taken. */
  #refuse(value: unknown, place: Place | undefined, at: string | number): void {
    const { isStrict, mayHoldSurrogates } = this.#options;
    if (typeof value === 'string' && mayHoldSurrogates && isHalved(value))
      throw refusal('contains half a surrogate pair', place, at);
    if (typeof value === 'number' && isStrict && !Number.isFinite(value))
      throw refusal('is a number too large to hold', place, at);
  }

  #noteEffect(value: unknown, place: Place, at: string): void {
    const { effects } = this.#options;
    if (!effects || place.reach === 'nothing' || !Object.hasOwn(effects, at)) return;
    const effect = effects[at];
    if (effect && (typeof value === 'string' || readArray(value).length > 0))
      this.#notes.needs.push({ ...effect, param: toParam(place, at) });
  }

  #noteNames(items: readonly unknown[]): void {
    for (const item of items) {
      const called = isObject(item) ? item['function'] : undefined;
      if (isObject(called) && typeof called['name'] === 'string') this.#notes.noteTool(called['name']);
    }
  }

  #noteReasoning(details: unknown): void {
    for (const detail of readArray(details)) {
      const data = isObject(detail) ? detail['data'] : undefined;
      if (typeof data === 'string') this.#notes.reasoning.push(data);
    }
  }

  #noteOpaque(items: unknown, place: Place): void {
    for (const [index, item] of readArray(items).entries())
      if (isObject(item) && item['type'] === 'opaque')
        this.#notes.noteDialect(String(item['dialect']), toParam(place, index));
  }

  #noteDialects(fields: unknown, param: string): void {
    for (const dialect of Object.keys(readObject(fields))) this.#notes.noteDialect(dialect, `${param}.${dialect}`);
  }
}

function placeOf(node: object, within?: Place, at: Place['at'] = '', schema?: Schema, reach: Reach = 'all'): Place {
  return { node, within, depth: within ? within.depth + 1 : 1, at, schema, reach };
}

/** Through upper case, because U+017F has no lower case but an upper one: S. */
function foldCase(field: string): string {
  return field.toUpperCase().toLowerCase();
}
