import {
  type ChatChunk,
  type ChatDelta,
  type ChatResponse,
  type ChunkChoice,
  GatewayError,
  isObject,
  type JsonObject,
  type StreamTransform,
} from '../../../contract/index.ts';
import { EXEMPT_FIELDS, JSON_TEXT, NAMED_MEMBERS } from '../../../contract/texts.ts';
import { readTextFile } from './text-file.ts';
import { streamOfText, type TextMatch, type TextSearch, type TextStream } from './text-stream.ts';

/** Position of a text. */
export interface TextPlace {
  readonly side: 'request' | 'response';
  /** Such as `messages[0].content`; for responses `choices[0].content`, streamed or not. */
  readonly path: string;
}

/** Search in all texts of a call, with the replacement of matches. */
export interface TextTransformOptions<M extends TextMatch = TextMatch> extends TextSearch<M> {
  /** Replacement of a match; the same text keeps it. An error ends the call, and buffered text is not passed on. */
  replace(text: string, place: TextPlace, match: M): string;
}

/** Transform of all texts of a call. */
export interface TextTransform {
  /** For `prepare`: any operation's request; undefined if nothing changed. `paths`: its texts; default: every string. */
  request<R extends object>(request: R, paths?: readonly string[]): R | undefined;
  /** For `receive`; undefined if nothing changed. */
  response(response: ChatResponse): ChatResponse | undefined;
  /** For `receive` of an operation other than chat; undefined if nothing changed. */
  result<R extends object>(result: R, paths?: readonly string[]): R | undefined;
  /** For `stream`. */
  stream(): StreamTransform;
}

/**
 * Names that programs use as references. A match in one rejects the request, since a different name has another
 * meaning.
 */
const NAME_FIELDS: ReadonlySet<string> = new Set(['name', 'required', 'pattern']);

/** Roles of messages whose `name` is that of a participant: data, not the name of a tool. */
const PARTICIPANTS: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant']);

/** Participant names that vendors accept. */
const PARTICIPANT_NAME = /^[^\s<|\\/>]{1,64}$/;

type Change = (text: string, path: string, kind: 'plain' | 'json') => string;

/** Limits a change to the texts at these paths and below them. */
function changeAt(paths: readonly string[] | undefined, change: Change): Change {
  if (!paths) return change;
  return (text, path, kind) => {
    const plain = path.replace(/\[\d+\]/g, '[]');
    const isText = paths.some(
      (each) => plain === each || (plain.startsWith(each) && /^[.[]/.test(plain.slice(each.length))),
    );
    return isText ? change(text, path, kind) : text;
  };
}

/** Change of the texts on one side of a call. */
interface Walk {
  readonly change: Change;
  /** True for requests, whose names are checked. Names in responses are those of the caller's own tools. */
  readonly checksNames: boolean;
}

/** Changes all texts in a value, at any depth; returns the same value if none changes. */
function changeTexts<T>(value: T, path: string, walk: Walk, key = ''): T {
  const { change, checksNames } = walk;
  if (typeof value === 'string') {
    // Here in a list; a string that is a field itself may have a media type next to it.
    if (EXEMPT_FIELDS.has(key)) return changeFile({}, key, value, path, change) as T;
    if (checksNames && NAME_FIELDS.has(key)) checkName(value, path, change);
    else if (!NAME_FIELDS.has(key)) return change(value, path, JSON_TEXT.has(key) ? 'json' : 'plain') as T;
    return value;
  }
  if (Array.isArray(value)) {
    const members: readonly unknown[] = value;
    const changed = members.map((member, at) => changeTexts(member, `${path}[${at}]`, walk, key));
    return changed.some((member, at) => member !== members[at]) ? (changed as T) : value;
  }
  if (!isObject(value)) return value;
  let changed: Record<string, unknown> | undefined;
  for (const [name, member] of Object.entries(value)) {
    const at = path === '' ? name : `${path}.${name}`;
    if (checksNames && NAMED_MEMBERS.has(key)) checkName(name, at, change);
    // Below `properties`, any name is a property.
    const field = NAMED_MEMBERS.has(key) ? '' : name;
    const next =
      EXEMPT_FIELDS.has(field) && typeof member === 'string'
        ? changeFile(value, field, member, at, change)
        : isParticipant(value, field)
          ? changeParticipant(member, at, change)
          : changeTexts(member, at, walk, field);
    if (next === member) continue;
    changed ??= { ...value };
    changed[name] = next;
  }
  if (!changed) return value;
  // A vendor verifies a text of reasoning by its signature, which a change invalidates.
  if (changed['kind'] === 'text' || 'thinking' in changed) delete changed['signature'];
  if (changed['kind'] === 'text') delete changed['data'];
  return changed as T;
}

/** Returns true if a field is the name of a message's author. */
function isParticipant(owner: JsonObject, field: string): boolean {
  return field === 'name' && PARTICIPANTS.has(owner['role']);
}

/** Changes the name of a participant if vendors accept the new one; otherwise rejects the request. */
function changeParticipant(name: unknown, path: string, change: Change): unknown {
  if (typeof name !== 'string') return name;
  const next = change(name, path, 'plain');
  if (next !== name && !PARTICIPANT_NAME.test(next)) throw nameRefusal(path);
  return next;
}

function checkName(name: string, path: string, change: Change): void {
  if (change(name, path, 'plain') !== name) throw nameRefusal(path);
}

function nameRefusal(path: string): GatewayError {
  return new GatewayError(
    'content_filtered',
    `A policy of this gateway rejected this request: the name at \`${path.slice(0, 200)}\` contains text to replace, and names cannot be replaced. Rename it and try again.`,
    { param: path.slice(0, 200) },
  );
}

/**
 * Changes text files in fields with encoded content: as text, in base64 or as a data URL. A changed file is encoded
 * again.
 */
function changeFile(owner: JsonObject, field: string, value: string, path: string, change: Change): string {
  const isContent = field === 'data' || field === 'file_data';
  if (owner['type'] === 'text' && isContent) return change(value, path, 'plain');
  if (!isContent && !/^data:/i.test(value)) return value;
  const mediaType = owner['media_type'] ?? owner['mime_type'] ?? owner['mimeType'];
  const file = readTextFile(value, typeof mediaType === 'string' ? mediaType : undefined);
  if (!file) return value;
  const next = change(file.text, path, 'plain');
  return next === file.text ? value : file.write(next);
}

/** Returns true if a path holds encoded content, whose texts are decoded before they are checked. */
export function isCodedAt(path: string): boolean {
  return EXEMPT_FIELDS.has(/[^.[\]]*$/.exec(path.replace(/(?:\[\d+\])+$/, ''))?.[0] ?? '');
}

/**
 * Open texts of one choice of a stream, by field. A text may continue in a field after another field began, so its
 * buffer was flushed before.
 */
interface OpenText {
  readonly field: string;
  readonly stream: TextStream;
  readonly deltaOf: (text: string) => ChatDelta;
}

/** Piece of a delta's text that continues in later deltas. */
interface Piece extends Pick<OpenText, 'field' | 'deltaOf'> {
  readonly text: string;
  readonly kind: 'plain' | 'json';
}

class TextsOfStream implements StreamTransform {
  readonly #streamOf: (kind: 'plain' | 'json', path: string) => TextStream;
  readonly #change: Change;
  readonly #texts = new Map<string, OpenText>();
  /** Open text of each choice. */
  readonly #open = new Map<number, OpenText>();
  #last: ChatChunk | undefined;

  constructor(streamOf: (kind: 'plain' | 'json', path: string) => TextStream, change: Change) {
    this.#streamOf = streamOf;
    this.#change = change;
  }

  push(chunk: ChatChunk): readonly ChatChunk[] {
    this.#last = chunk;
    const before: ChatChunk[] = [];
    // Unchanged chunks pass as the same object, which is cheapest for later hooks.
    let choices: ChunkChoice[] | undefined;
    for (let at = 0; at < chunk.choices.length; at += 1) {
      const choice = chunk.choices[at] as ChunkChoice;
      const next = this.#pushChoice(choice, before);
      if (next !== choice) choices ??= chunk.choices.slice(0, at);
      if (next) choices?.push(next);
    }
    if (!choices) return before.length === 0 ? [chunk] : [...before, chunk];
    return choices.length === 0 ? before : [...before, { ...chunk, choices }];
  }

  end(): readonly ChatChunk[] {
    return [...this.#open].flatMap(([index, open]) => this.#release(index, open));
  }

  /** Returns a choice to pass on now; undefined if all of it is buffered. */
  #pushChoice(choice: ChunkChoice, before: ChatChunk[]): ChunkChoice | undefined {
    const delta = this.#pushDelta(choice, before);
    if (delta === choice.delta && (choice.logprobs ?? null) === null) return choice;
    const isEmpty = Object.keys(delta).length === 0 && Object.keys(choice.delta).length > 0;
    return isEmpty && choice.finish_reason === null ? undefined : { ...choice, delta, logprobs: null };
  }

  /**
   * Returns the delta to pass on now; the same delta if nothing changes. The buffer of an earlier text goes into a
   * chunk before it.
   */
  #pushDelta({ index, delta }: ChunkChoice, before: ChatChunk[]): ChatDelta {
    const pieces = piecesOf(delta);
    const open = this.#open.get(index);
    if (open && pieces.length > 0 && !pieces.some(({ field }) => field === open.field))
      before.push(...this.#release(index, open));
    const said: string[] = [];
    let isSaid = true;
    for (const piece of pieces) {
      const text = this.#textOf(index, piece, open);
      const next = pieces[said.length + 1];
      const out = text.stream.push(piece.text, next !== undefined && next.field !== piece.field);
      said.push(out);
      isSaid &&= out === piece.text;
      if (!next && text !== open) this.#open.set(index, text);
    }
    if (isSaid && !delta.tool_calls && pieces.length === Object.keys(delta).length) return delta;
    const rest = restOf(delta);
    const changed = changeTexts(rest, `choices[${index}]`, { change: this.#change, checksNames: false });
    if (isSaid && changed === rest) return delta;
    return pieces.reduce((joined, { deltaOf }, at) => {
      const text = said[at] ?? '';
      return text === '' ? joined : joinDeltas(joined, deltaOf(text));
    }, changed);
  }

  /** Text that a piece continues, usually the open one. */
  #textOf(index: number, { field, kind, deltaOf }: Piece, open: OpenText | undefined): OpenText {
    if (open?.field === field) return open;
    const key = `${index} ${field}`;
    const known = this.#texts.get(key);
    if (known) return known;
    const made = { field, stream: this.#streamOf(kind, `choices[${index}].${field}`), deltaOf };
    this.#texts.set(key, made);
    return made;
  }

  #release(index: number, { stream, deltaOf }: OpenText): readonly ChatChunk[] {
    const text = stream.isHolding ? stream.push('', true) : '';
    if (!this.#last || text === '') return [];
    const { id, object, created, model } = this.#last;
    return [
      { id, object, created, model, choices: [{ index, delta: deltaOf(text), finish_reason: null, logprobs: null }] },
    ];
  }
}

/** Texts of a delta that continue in later ones, in message order. */
function piecesOf(delta: ChatDelta): readonly Piece[] {
  const pieces: Piece[] = [];
  for (const [field, text] of Object.entries(delta))
    if (isPiece(field, text)) pieces.push({ field, text, kind: 'plain', deltaOf: (out) => ({ [field]: out }) });
  if (pieces.length > 1) pieces.sort((a, b) => rankOf(a) - rankOf(b));
  for (const { index, function: part, custom } of delta.tool_calls ?? []) {
    const field = `tool_calls[${index}]`;
    if (isObject(custom)) {
      const deltaOf = (input: string): ChatDelta => ({ tool_calls: [{ index, custom: { input } }] });
      pieces.push({ field: `${field}.custom.input`, text: String(custom['input'] ?? ''), kind: 'plain', deltaOf });
    } else {
      const deltaOf = (text: string): ChatDelta => ({ tool_calls: [{ index, function: { arguments: text } }] });
      pieces.push({ field: `${field}.function.arguments`, text: part?.arguments ?? '', kind: 'json', deltaOf });
    }
  }
  return pieces;
}

const isPiece = (field: string, text: unknown): text is string =>
  typeof text === 'string' && text !== '' && !EXEMPT_FIELDS.has(field) && !NAME_FIELDS.has(field);

const rankOf = ({ field }: Piece): number => (field.startsWith('reasoning') ? 0 : 1);

/** Other fields of a delta: role, names of tools, annotations, complete reasoning details. */
function restOf({ tool_calls, ...delta }: ChatDelta): ChatDelta {
  const rest = Object.fromEntries(Object.entries(delta).filter(([field, text]) => !isPiece(field, text)));
  if (!tool_calls) return rest;
  const calls = tool_calls.map(({ function: part, custom, ...call }) => ({
    ...call,
    ...(part && { function: without(part, 'arguments') }),
    ...(isObject(custom) && { custom: without(custom, 'input') }),
  }));
  const named = calls.filter(
    ({ function: part, ...call }) => call.id !== undefined || Object.keys(part ?? {}).length > 0,
  );
  return named.length > 0 ? { ...rest, tool_calls: named } : rest;
}

function without(part: object, name: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(part).filter(([key]) => key !== name));
}

/** Joins a delta with a text of {@link piecesOf}; a new tool call gets its arguments with its name. */
function joinDeltas(delta: ChatDelta, { tool_calls: [added] = [], ...texts }: ChatDelta): ChatDelta {
  if (!added) return { ...delta, ...texts };
  const calls = delta.tool_calls ?? [];
  const known = calls.findIndex(({ index }) => index === added.index);
  if (known < 0) return { ...delta, tool_calls: [...calls, added] };
  const join = (call: (typeof calls)[number]) => ({
    ...call,
    ...(added.function && { function: { ...call.function, ...added.function } }),
    ...(isObject(added['custom']) && { custom: { ...(call['custom'] as object | undefined), ...added['custom'] } }),
  });
  return { ...delta, tool_calls: calls.map((call, at) => (at === known ? join(call) : call)) };
}

/**
 * Replaces matches in all texts of a call. In requests, these are the texts of all messages, tools and fields. In
 * responses, they are the content, reasoning, refusals and tool arguments of every choice, with equal results whole
 * and streamed. Log probabilities of a response, which contain its text, are removed. Text files are searched,
 * including in base64; images, audio, other files and URLs are not. Names of tools and properties in a request are
 * checked: a match there rejects the request. Names of participants are replaced.
 */
export function textTransform<M extends TextMatch = TextMatch>(options: TextTransformOptions<M>): TextTransform {
  const streamOf = (kind: 'plain' | 'json', place: TextPlace): TextStream =>
    streamOfText<M>(kind, options, (text, match) => options.replace(text, place, match));
  const changeOn =
    (side: TextPlace['side']): Change =>
    (text, path, kind) => {
      const seen = { isReplaced: false };
      const place = { side, path };
      const replace = (found: string, match: M): string => {
        const replacement = options.replace(found, place, match);
        if (replacement !== found) seen.isReplaced = true;
        return replacement;
      };
      const changed = streamOfText<M>(kind, options, replace).push(text, true);
      return seen.isReplaced ? changed : text;
    };
  return {
    request(request, paths) {
      if (paths?.length === 0) return undefined;
      const changed = changeTexts(request, '', { change: changeAt(paths, changeOn('request')), checksNames: true });
      return changed === request ? undefined : changed;
    },
    result(result, paths) {
      if (paths?.length === 0) return undefined;
      const changed = changeTexts(result, '', { change: changeAt(paths, changeOn('response')), checksNames: false });
      return changed === result ? undefined : changed;
    },
    response(response) {
      const walk: Walk = { change: changeOn('response'), checksNames: false };
      const choices = response.choices.map((choice) => {
        const message = changeTexts(choice.message, `choices[${choice.index}]`, walk);
        const isSame = message === choice.message && (choice.logprobs ?? null) === null;
        return isSame ? choice : { ...choice, message, logprobs: null };
      });
      return choices.some((choice, at) => choice !== response.choices[at]) ? { ...response, choices } : undefined;
    },
    stream: () => new TextsOfStream((kind, path) => streamOf(kind, { side: 'response', path }), changeOn('response')),
  };
}
